// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several files of one cluster as one graph: files of one host are matched, measured values land on the links they belong
// to, contradictions are shown, and what stays unknown is listed.
//
//   TRY_INTO(Assembly assembly, assemble(std::move(documents)));
//   assembly.cluster.hosts[0].host ...
#include <chokepoint/topology/fabric_graph.hpp>
#include <chokepoint/topology/topology.hpp>
#include <chokepoint/wiring/document.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::assemble {

/// Two files (or two places) that cannot both be right about the same thing.
struct Contradiction {
  std::string what;
  SourcePos first;
  SourcePos second;
};

struct Assembly {
  topology::Cluster cluster;                            ///< no hosts when no file describes one
  std::vector<wiring::Document> documents;              ///< in the order given
  std::vector<std::vector<std::size_t>> documents_of;   ///< by host group: indices into documents
  std::optional<topology::FabricGraph> fabric;          ///< every cable, where a discovery file is among them
  topology::FabricShape shape;                          ///< of `fabric`
  std::vector<Contradiction> contradictions;
  std::vector<std::string> matched;                     ///< which files were taken for the same host, and why
  std::vector<std::string> unknown;                     ///< what no file says

  /// First document of this type, or null.
  template <class Value>
  const Value* first() const {
    for (const wiring::Document& document : documents) {
      if (const Value* value = std::get_if<Value>(&document.content)) return value;
    }
    return nullptr;
  }
};

Result<Assembly> assemble(std::vector<wiring::Document> documents);

/// What is known only after options have named the accelerator, the fabric and so on.
void list_unknown(Assembly& assembly);

}  // namespace chokepoint::assemble

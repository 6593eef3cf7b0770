// SPDX-License-Identifier: Apache-2.0
#pragma once
// One file of whatever kind as a value, and the facts a person would take from it.
//
//   TRY_INTO(std::vector<Document> documents, read_documents(text, "node0.txt"));
//   for (const Fact& fact : facts_of(documents.front())) ...
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/measured_network.hpp>
#include <chokepoint/topology/topology.hpp>
#include <chokepoint/wiring/fabric_files.hpp>
#include <chokepoint/wiring/gpu_tools.hpp>
#include <chokepoint/wiring/host_files.hpp>
#include <chokepoint/wiring/lspci.hpp>
#include <chokepoint/wiring/nccl_log.hpp>
#include <chokepoint/wiring/tables.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace chokepoint::wiring {

/// `nvidia-smi topo -m` gives host groups, NCCL's topology XML one host.
using Content = std::variant<std::vector<topology::HostGroup>, topology::Host, topology::Cluster, PeerMatrix, NvLinkStatus, SmiQuery, NcclGraphs, NcclLog,
                             HwlocTopology, PciListing, FabricListing, IbPorts, CounterFile, GuidList, SlurmTopology, RocmTopology, MeasuredTable, PairTables,
                             TrainingLog, topology::MeasuredNetwork>;

struct Document {
  Format format = Format::kUnknown;
  std::string file;
  std::string host_name;       ///< from a shell prompt ("user@node7:~$"), empty when there is none
  Content content;
  std::vector<Note> notes;     ///< repairs and what the importer could not read
};

/// Everything a file holds. Text is repaired first (encodings, colour codes); each repair is a note of the first document.
Result<std::vector<Document>> read_documents(std::string_view text, const std::string& file);

/// The host a document describes; no value for documents about a job or a fabric.
std::optional<topology::Host> host_in(const Document& document);

struct Fact {
  std::string name;                ///< stable: "gpus", "links_up", "via.NET/IB/n"
  std::string text;                ///< when it is no number
  std::optional<double> number;
};
std::vector<Fact> facts_of(const Document& document);

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
#pragma once
// An assembled cluster for other programs, and without the names that say whose it is.
#include <chokepoint/assemble/assemble.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chokepoint::assemble {

/// A cluster file of ours and the host files it refers to. `stem`: "out/mine" gives out/mine.yaml's text and
/// "mine-host0.xml", ... beside it.
struct YamlExport {
  std::string cluster;
  std::vector<std::pair<std::string, std::string>> host_files;  ///< name relative to the cluster file, content
};
YamlExport to_yaml(const topology::Cluster& cluster, std::string_view stem);

/// NCCL topology XML of one host, as NCCL_TOPO_FILE takes it. Links that were assumed are written as assumed values.
std::string to_nccl_xml(const topology::Host& host);

/// Graphviz: each kind of host once, and the fabric above.
std::string to_dot(const Assembly& assembly);

/// Slurm's topology.conf: switches with the nodes or switches below them.
Result<std::string> to_slurm(const Assembly& assembly);

/// Replaces what tells whose cluster it is, the same name by the same alias everywhere: host, switch and file names,
/// GUIDs, UUIDs, IP and MAC addresses. Words that formats share (GPU0, mlx5_0, PCI addresses) stay.
class Anonymiser {
 public:
  explicit Anonymiser(const Assembly& assembly);
  std::string apply(std::string_view text) const;
  /// Names inside the assembly itself, for exports.
  void apply(Assembly& assembly) const;

 private:
  std::string alias(std::string_view word) const;
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace chokepoint::assemble

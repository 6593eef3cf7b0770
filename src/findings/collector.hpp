// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where checks put what they find; each group of checks is one function over the assembled cluster.
#include <chokepoint/findings/findings.hpp>

namespace chokepoint::findings {

class Collector {
 public:
  explicit Collector(const assemble::Assembly& assembly) : assembly_(assembly) {}
  const assemble::Assembly& assembly() const { return assembly_; }
  /// Title, fix and source come from the catalogue.
  Finding& add(std::string_view id, std::string where, std::string what, std::vector<SourcePos> evidence = {});
  Finding& add(Severity severity, std::string_view id, std::string where, std::string what, std::vector<SourcePos> evidence = {});
  std::vector<Finding> take();

 private:
  const assemble::Assembly& assembly_;
  std::vector<Finding> found_;
};

void check_paths(Collector& out);      ///< GPU to GPU, GPU to NIC
void check_links(Collector& out);      ///< PCIe and NVLink states
void check_topology_file(Collector& out);
void check_logs(Collector& out);
void check_fabric(Collector& out);
void check_ports(Collector& out);      ///< ibstat, perfquery
void check_pairs(Collector& out);      ///< pair tables
void check_tables(Collector& out);     ///< benchmarks
void check_files(Collector& out);      ///< contradictions

}  // namespace chokepoint::findings

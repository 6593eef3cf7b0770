// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cluster's wiring for people (terminal, SVG) and for programs (JSON), and the table of collectives it should give.
#include <chokepoint/assemble/assemble.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/findings/findings.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::report {

/// One operation over one group of ranks, at rising sizes.
struct ExpectedTable {
  collective::Op op = collective::Op::kAllReduce;
  collective::Group group;
  std::string accelerator;
  struct Row {
    double bytes = 0;
    collective::Cost cost;
    std::optional<double> measured_time_s;            ///< of a benchmark's table passed along
    std::optional<double> measured_bus_bytes_per_s;
  };
  std::vector<Row> rows;
  std::string measured_file;                          ///< empty without a measured table
};

/// All that `chokepoint wiring` has to say.
struct WiringReport {
  assemble::Assembly assembly;
  std::vector<ExpectedTable> expected;
  std::vector<findings::Finding> findings;
  std::string job;                  ///< whose step the costs are about; empty without a job
  bool own_cluster = false;         ///< costs are for the cluster of the files, not for the job's own
  std::vector<Error> unreadable;    ///< files that could not be read, beside those that could
};

std::string wiring_text(const topology::Cluster& cluster, const Style& style, bool quiet);
/// nccl-tests' columns, then what decides each row.
std::string expected_text(const ExpectedTable& table, const Style& style);
/// Files, drawing, findings, what stays unknown.
std::string wiring_text(const WiringReport& report, const Style& style, bool quiet);
std::string findings_text(const WiringReport& report, const Style& style);
/// Schema: docs/formats/json.md.
std::string wiring_json(const WiringReport& report);
std::string wiring_json(const topology::Cluster& cluster, const std::vector<ExpectedTable>& expected);
/// The first kind of host, and the fabric above it.
std::string wiring_svg(const topology::Cluster& cluster);

}  // namespace chokepoint::report

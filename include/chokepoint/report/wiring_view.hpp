// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cluster's wiring for people (terminal, SVG) and for programs (JSON), and the table of collectives it should give.
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/topology/topology.hpp>
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
  };
  std::vector<Row> rows;
};

std::string wiring_text(const topology::Cluster& cluster, const Style& style, bool quiet);
/// nccl-tests' columns, then what decides each row.
std::string expected_text(const ExpectedTable& table, const Style& style);
/// Schema: docs/formats/json.md.
std::string wiring_json(const topology::Cluster& cluster, const std::vector<ExpectedTable>& expected);
/// The first kind of host, and the fabric above it.
std::string wiring_svg(const topology::Cluster& cluster);

}  // namespace chokepoint::report

// SPDX-License-Identifier: Apache-2.0
// Published tables of collectives (nccl-tests and the like) against the collective model. The wiring is what the row's
// words say; nothing is looked up by the name of a system.
#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/validate/validate.hpp>
#include <chokepoint/wiring/describe.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>

#include "csv.hpp"
#include "summary.hpp"

namespace chokepoint::validate {
namespace {

using collective::Group;
using collective::Network;
using collective::Op;

constexpr double kGigabyte = 1e9;
constexpr double kMicrosecond = 1e-6;

/// Networks by the words that describe them; an error is kept as well, so that it is worked out once.
class Machines {
 public:
  const Result<Network>& find(const std::array<std::string, 5>& words) {
    const auto found = networks_.find(words);
    if (found != networks_.end()) return found->second;
    return networks_.emplace(words, build(words)).first->second;
  }

 private:
  static Result<Network> build(const std::array<std::string, 5>& words) {
    const int gpus = to_int(words[1]).value_or(0);
    const int hosts = to_int(words[2]).value_or(0);
    TRY_INTO(const topology::Cluster cluster, wiring::cluster_from_words(words[0], gpus, hosts, words[3], words[4]));
    TRY_INTO(const hardware::Accelerator accelerator, hardware::find_accelerator(cluster.hosts.front().host.accelerator));
    return Network(cluster, accelerator);
  }
  std::map<std::array<std::string, 5>, Result<Network>> networks_;
};

/// The whole number a field begins with ("128 by ratio, 144 by rank list").
std::optional<int> leading_count(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  return to_int(text.substr(0, end));
}

/// Seconds, from whichever of time, bus and algorithm bandwidth the row prints.
std::optional<double> measured_time(const CsvTable& table, const CsvRow& row, double bytes, double factor) {
  const auto value = [&](std::string_view column) { return table.number(row, column).value_or(std::nullopt).value_or(0.0); };
  if (value("time_us") > 0) return value("time_us") * kMicrosecond;
  if (value("busbw_GBs") > 0) return bytes * factor / (value("busbw_GBs") * kGigabyte);
  if (value("algbw_GBs") > 0) return bytes / (value("algbw_GBs") * kGigabyte);
  return std::nullopt;
}

/// Ranks laid evenly over hosts.
Result<Group> group_of(const CsvTable& table, const CsvRow& row) {
  const auto ranks = leading_count(table.text(row, "n_gpus"));
  const int hosts = leading_count(table.text(row, "n_nodes")).value_or(1);
  if (!ranks || *ranks < 2 || hosts < 1) return fail("no group of two or more ranks");
  if (*ranks % hosts != 0) return fail(std::to_string(*ranks) + " ranks do not divide over " + std::to_string(hosts) + " hosts");
  return Group{.ranks = *ranks, .ranks_per_host = *ranks / hosts};
}

Result<bool> predict(const CsvTable& table, const CsvRow& source, Machines& machines, CollectiveRow& row) {
  if (!source.refused.empty()) return fail(source.refused);
  const std::string op_text = row.op == "p2p_write_unidirectional" ? "send_recv" : row.op;
  TRY_INTO(const Op op, collective::parse_op(op_text));
  TRY_INTO(const std::optional<double> bytes, table.number(source, "message_bytes"));
  if (!bytes) return fail("message size not stated");
  if (*bytes <= 0) return fail("empty message");
  row.bytes = *bytes;
  TRY_INTO(const Group group, group_of(table, source));
  row.measured_time_s = measured_time(table, source, *bytes, collective::bus_factor(op, group.ranks));
  if (!row.measured_time_s) return fail("no time and no bandwidth");
  const int per_host = std::max(leading_count(table.text(source, "gpus_per_node")).value_or(0), group.ranks_per_host);
  const auto text = [&](std::string_view column) { return std::string(table.text(source, column)); };
  const Result<Network>& network = machines.find({text("accelerator"), std::to_string(per_host), std::to_string(group.hosts()), text("intra_link"), text("inter_link")});
  if (!network) return tl::make_unexpected(network.error());
  row.predicted_time_s = network->cost(op, *bytes, group).time_s;
  row.error = *row.predicted_time_s / *row.measured_time_s - 1;
  return true;
}

std::vector<Summary> group_by(const std::vector<CollectiveRow>& rows, const std::function<std::string(const CollectiveRow&)>& key) {
  std::vector<std::string> order;
  std::map<std::string, std::pair<int, std::vector<double>>> groups;
  for (const CollectiveRow& row : rows) {
    const std::string name = key(row);
    if (name.empty()) continue;
    if (groups.find(name) == groups.end()) order.push_back(name);
    auto& [count, errors] = groups[name];
    count += row.measured_time_s ? 1 : 0;
    if (row.error) errors.push_back(*row.error);
  }
  std::vector<Summary> summaries;
  for (const std::string& name : order) summaries.push_back(summarise(name, groups[name].first, groups[name].second));
  return summaries;
}

/// "1 KiB .. 16 KiB": bins of a factor of sixteen.
std::string size_bin(double bytes) {
  static constexpr std::array<std::string_view, 9> kBins{"below 1 KiB", "1 KiB to 16 KiB", "16 KiB to 256 KiB", "256 KiB to 4 MiB", "4 MiB to 64 MiB",
                                                         "64 MiB to 1 GiB", "1 GiB to 16 GiB", "16 GiB and more", ""};
  if (bytes <= 0) return "";
  double limit = 1024;
  std::size_t bin = 0;
  while (bin < 7 && bytes >= limit) {
    limit *= 16;
    ++bin;
  }
  return std::string(kBins[bin]);
}

}  // namespace

Result<CollectivesReport> validate_collectives(std::string_view csv, const std::string& file) {
  TRY_INTO(const CsvTable table, CsvTable::parse(csv, file));
  for (const std::string_view column : {"accelerator", "n_gpus", "op", "message_bytes"}) {
    if (!table.has(column)) return fail("table of collectives without column '" + std::string(column) + "'", {file, 1, 1});
  }
  CollectivesReport report;
  Machines machines;
  for (const CsvRow& source : table.rows()) {
    CollectiveRow row;
    row.row = source.number;
    row.system = std::string(table.text(source, "system"));
    row.op = std::string(table.text(source, "op"));
    row.refused = !source.refused.empty();
    if (const auto done = predict(table, source, machines, row); !done) row.reason = done.error().pos.line > 0 ? one_line(done.error()) : done.error().message;
    report.rows.push_back(std::move(row));
  }
  report.by_system = group_by(report.rows, [](const CollectiveRow& row) { return row.system; });
  report.by_op = group_by(report.rows, [](const CollectiveRow& row) { return row.op; });
  report.by_size = group_by(report.rows, [](const CollectiveRow& row) { return size_bin(row.bytes); });
  const std::vector<Summary> all = group_by(report.rows, [](const CollectiveRow&) { return std::string("all"); });
  if (!all.empty()) report.overall = all.front();
  std::vector<double> medians;
  for (const Summary& system : report.by_system) {
    if (system.predicted > 0) medians.push_back(system.median_absolute);
  }
  report.median_of_system_medians = quantile(medians, 0.5);
  return report;
}

}  // namespace chokepoint::validate

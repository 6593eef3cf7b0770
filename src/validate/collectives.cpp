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
#include <utility>

#include "csv.hpp"
#include "summary.hpp"

namespace chokepoint::validate {
namespace {

using collective::Group;
using collective::NcclVersion;
using collective::Network;
using collective::Op;

constexpr double kGigabyte = 1e9;
constexpr double kMicrosecond = 1e-6;

/// How the benchmark ran, as far as the row's words about its software tell.
struct Harness {
  NcclVersion nccl = 0;      ///< 0: the release usual for the accelerator
  bool one_process = false;  ///< one process launches for all GPUs of the host
  bool list_gather = false;  ///< torch.distributed.all_gather: outputs are copied out of one flat buffer
};

/// nccl-tests drives a single host from one process unless MPI starts it (its README); over hosts MPI starts one process
/// for each GPU. Tables in its format of before 2022 ("old") come with NCCL 2.12 at the latest.
Harness harness_of(std::string_view software, int hosts) {
  constexpr NcclVersion kBeforeNewFormat = 21200;
  const std::string words = lower(software);
  const auto says = [&words](std::string_view word) { return words.find(word) != std::string::npos; };
  Harness harness;
  harness.nccl = collective::parse_nccl(words);
  if (harness.nccl == 0 && says("(old)")) harness.nccl = kBeforeNewFormat;
  harness.one_process = hosts == 1 && says("nccl-tests") && !says("profiler") && !says("mpi");
  harness.list_gather = says("torch.distributed");
  return harness;
}

/// What the harness adds. Launches and kernels of a stream of operations wait for each other, so the two join between their
/// maximum and their sum. Broadcast and reduce flow one way and hide the launches.
double with_harness(double time_s, Op op, double bytes, int ranks, const Harness& harness, const hardware::Accelerator& accelerator,
                    const collective::Constants& constants) {
  constexpr double kCopyShare = 0.65;  // of the memory's rate: published samples on two and four A100
  const bool one_way = op == Op::kBroadcast || op == Op::kReduce || op == Op::kSendRecv;
  if (harness.one_process && !one_way) time_s = std::hypot(time_s, constants.launch_gpu_s * ranks);
  if (harness.list_gather && op == Op::kAllGather && accelerator.memory_bytes_per_s > 0) time_s += 2 * bytes / (accelerator.memory_bytes_per_s * kCopyShare);
  return time_s;
}

struct Machine {
  Network network;
  hardware::Accelerator accelerator;
};

/// Machines by the words that describe them; an error is kept as well, so that it is worked out once.
class Machines {
 public:
  using Words = std::array<std::string, 5>;
  explicit Machines(const collective::Constants& constants) : constants_(constants) {}
  const collective::Constants& constants() const { return constants_; }

  const Result<Machine>& find(const Words& words, NcclVersion nccl) {
    const auto found = machines_.find({words, nccl});
    if (found != machines_.end()) return found->second;
    return machines_.emplace(std::pair(words, nccl), build(words, nccl)).first->second;
  }

 private:
  Result<Machine> build(const Words& words, NcclVersion nccl) const {
    const int gpus = to_int(words[1]).value_or(0);
    const int hosts = to_int(words[2]).value_or(0);
    TRY_INTO(const topology::Cluster cluster, wiring::cluster_from_words(words[0], gpus, hosts, words[3], words[4]));
    TRY_INTO(const hardware::Accelerator accelerator, hardware::find_accelerator(cluster.hosts.front().host.accelerator));
    return Machine{Network(cluster, accelerator, {}, constants_, nccl), accelerator};
  }
  const collective::Constants& constants_;
  std::map<std::pair<Words, NcclVersion>, Result<Machine>> machines_;
};

/// The whole number a field begins with ("128 by ratio, 144 by rank list").
std::optional<int> leading_count(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  return to_int(text.substr(0, end));
}

/// What a row prints about its time.
struct Figures {
  double time_s = 0;
  double algorithm_bytes_per_s = 0;
  double bus_bytes_per_s = 0;
};

std::string shown(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

/// Printed bandwidths have two decimals; below this they say nothing about each other.
constexpr double kTellingRate = 0.5 * kGigabyte;

/// Time and the two bandwidths follow from each other, so columns that were swapped or changed unit show.
Result<bool> agree(const Figures& row, double bytes, double factor, Op op, int ranks) {
  constexpr double kRounding = 0.006 * kGigabyte;
  const bool both = row.algorithm_bytes_per_s > kTellingRate && row.bus_bytes_per_s > kTellingRate;
  if (both) {
    const double ratio = row.bus_bytes_per_s / row.algorithm_bytes_per_s;
    const double slack = 0.05 + kRounding / row.bus_bytes_per_s + kRounding / row.algorithm_bytes_per_s;
    if (std::abs(ratio / factor - 1) > slack) {
      const bool swapped = std::abs(ratio * factor - 1) <= slack;
      return fail(swapped ? "algbw_GBs and busbw_GBs are swapped"
                          : "busbw_GBs is " + shown(ratio) + " times algbw_GBs, expected " + shown(factor) + " for " + std::string(name(op)) + " of " +
                                std::to_string(ranks) + " ranks");
    }
  }
  const double rate = row.algorithm_bytes_per_s > kTellingRate ? row.algorithm_bytes_per_s : row.bus_bytes_per_s / factor;
  if (row.time_s > 0 && rate > kTellingRate) {
    const double ratio = row.time_s * rate / bytes;
    if (ratio < 0.5 || ratio > 2) {
      const bool milli = ratio < 2e-3 && ratio > 0.5e-3;
      return fail("time_us and the bandwidth differ by a factor of " + shown(ratio) + (milli ? ": is the time in milliseconds?" : ""));
    }
  }
  return true;
}

/// Seconds, from whichever of time, bus and algorithm bandwidth the row prints.
Result<double> measured_time(const CsvTable& table, const CsvRow& row, double bytes, Op op, int ranks) {
  const double factor = collective::bus_factor(op, ranks);
  TRY_INTO(const std::optional<double> time, table.number(row, "time_us"));
  TRY_INTO(const std::optional<double> algorithm, table.number(row, "algbw_GBs"));
  TRY_INTO(const std::optional<double> bus, table.number(row, "busbw_GBs"));
  const Figures figures{time.value_or(0) * kMicrosecond, algorithm.value_or(0) * kGigabyte, bus.value_or(0) * kGigabyte};
  if (figures.time_s < 0 || figures.algorithm_bytes_per_s < 0 || figures.bus_bytes_per_s < 0) return fail("negative time or bandwidth");
  if (const auto fine = agree(figures, bytes, factor, op, ranks); !fine) return tl::make_unexpected(fine.error());
  if (figures.time_s > 0) return figures.time_s;
  if (figures.bus_bytes_per_s > 0) return bytes * factor / figures.bus_bytes_per_s;
  if (figures.algorithm_bytes_per_s > 0) return bytes / figures.algorithm_bytes_per_s;
  return fail("no time and no bandwidth");
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
  TRY_INTO(row.measured_time_s, measured_time(table, source, *bytes, op, group.ranks));
  const int per_host = std::max(leading_count(table.text(source, "gpus_per_node")).value_or(0), group.ranks_per_host);
  const auto text = [&](std::string_view column) { return std::string(table.text(source, column)); };
  const Harness harness = harness_of(text("software"), group.hosts());
  const Result<Machine>& machine =
      machines.find({text("accelerator"), std::to_string(per_host), std::to_string(group.hosts()), text("intra_link"), text("inter_link")}, harness.nccl);
  if (!machine) return tl::make_unexpected(machine.error());
  const collective::Cost cost = machine->network.cost(op, *bytes, group);
  row.predicted_time_s = with_harness(cost.time_s, op, *bytes, group.ranks, harness, machine->accelerator, machines.constants());
  row.floor_s = cost.floor_s;
  row.algorithm = std::string(cost.algorithm);
  row.protocol = std::string(cost.protocol);
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

/// Median of measured / floor where the links and not the start bound a message.
double large_over_floor(const std::vector<CollectiveRow>& rows) {
  constexpr double kLargeBytes = 64.0 * 1024 * 1024;
  std::vector<double> ratios;
  for (const CollectiveRow& row : rows) {
    if (const auto ratio = row.measured_over_floor(); ratio && row.bytes >= kLargeBytes) ratios.push_back(*ratio);
  }
  return ratios.empty() ? 0 : quantile(ratios, 0.5);
}

}  // namespace

Result<CollectivesReport> validate_collectives(std::string_view csv, const std::string& file, const collective::Constants& constants) {
  TRY_INTO(const CsvTable table, CsvTable::parse(csv, file));
  for (const std::string_view column : {"accelerator", "n_gpus", "op", "message_bytes"}) {
    if (!table.has(column)) return fail("table of collectives without column '" + std::string(column) + "'", {file, 1, 1});
  }
  CollectivesReport report;
  Machines machines(constants);
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
  report.median_over_floor = large_over_floor(report.rows);
  return report;
}

}  // namespace chokepoint::validate

// SPDX-License-Identifier: Apache-2.0
// Measured tables as observations. The importers have read the text; here a row becomes a time of the model: which
// collective on which group, at which size. Rows that contradict themselves are refused with a note.
#include <chokepoint/calibrate/inputs.hpp>

#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/document.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace chokepoint::calibrate {

namespace {

using collective::Group;
using collective::Op;

/// A rate printed with two digits and the time beside it agree this well; algbw and busbw exchanged do not.
constexpr double kRateTolerance = 0.15;
constexpr double kPairBytes = 256e6;

/// A network that is built again only when its constants change.
class Wires {
 public:
  Wires(const topology::Cluster& cluster, const hardware::Accelerator& accelerator)
      : cluster_(cluster), accelerator_(accelerator), network_(cluster, accelerator) {}
  const collective::Network& under(const collective::Constants& constants) {
    if (!(constants == constants_)) {
      network_ = collective::Network(cluster_, accelerator_, {}, constants);
      constants_ = constants;
    }
    return network_;
  }

 private:
  topology::Cluster cluster_;
  hardware::Accelerator accelerator_;
  collective::Constants constants_;
  collective::Network network_;
};

Observation collective_observation(const Machine& machine, Op op, double bytes, const Group& group, double time_s, std::string source) {
  auto wires = std::make_shared<Wires>(*machine.cluster, *machine.accelerator);
  return {std::move(source), time_s, 1,
          [=](const simulate::Parameters& p) { return wires->under(p.collective).cost(op, bytes, group).time_s; }};
}

Result<bool> needs_wiring(const Machine& machine, const std::string& file) {
  if (machine.cluster && machine.accelerator) return true;
  return fail("a table of transfers says nothing without the wiring it was measured on", {file, 0, 0},
              {"give --cluster (a catalogue name or file) and, where the wiring does not say it, --accelerator"});
}

/// Ranks over as few hosts as they fit in.
Result<Group> group_of(int ranks, const topology::Cluster& cluster, const std::string& file) {
  const int per_host = std::max(1, cluster.gpus_per_host());
  if (ranks < 2) return fail("the table does not say on how many ranks it was measured", {file, 0, 0}, {"keep the lines '# Rank ...' of nccl-tests"});
  if (ranks > cluster.gpu_count()) {
    return fail(fmt::format("measured on {} ranks, but the cluster has {} accelerators", ranks, cluster.gpu_count()), {file, 0, 0},
                {"give --hosts, or the cluster it was measured on"});
  }
  Group group;
  group.ranks = ranks;
  group.ranks_per_host = std::min(ranks, per_host);
  if (ranks > per_host && ranks % per_host != 0) {
    return fail(fmt::format("{} ranks do not fill hosts of {}", ranks, per_host), {file, 0, 0}, {"give the cluster it was measured on"});
  }
  return group;
}

/// Why a row cannot be believed: time and rate contradict each other, as they do where columns are exchanged.
std::string contradiction(const wiring::TableRow& row, double factor) {
  if (!(row.time_s > 0)) return "has no time";
  const auto off = [](double a, double b) { return std::abs(a / b - 1) > kRateTolerance; };
  const double algorithm = row.bytes / row.time_s;
  if (row.algorithm_bytes_per_s < 1e8) return "";  // printed with too few digits to be compared
  if (!off(algorithm, row.algorithm_bytes_per_s)) {
    if (row.bus_bytes_per_s > 0 && factor > 0 && off(row.algorithm_bytes_per_s * factor, row.bus_bytes_per_s)) {
      return fmt::format("busbw is {:.2f} x algbw, expected {:.2f} x on these ranks", row.bus_bytes_per_s / row.algorithm_bytes_per_s, factor);
    }
    return "";
  }
  if (row.bus_bytes_per_s > 0 && !off(algorithm, row.bus_bytes_per_s)) return "algbw and busbw seem exchanged";
  return fmt::format("{} in {} is {}, the table says {}", format_bytes(row.bytes), format_duration(row.time_s), format_rate(algorithm),
                     format_rate(row.algorithm_bytes_per_s));
}

Result<Input> from_collectives(const wiring::MeasuredTable& table, const std::string& file, const Machine& machine) {
  if (auto known = needs_wiring(machine, file); !known) return tl::make_unexpected(known.error());
  const auto op = collective::parse_op(table.op);
  if (!op) return fail(fmt::format("'{}' is not a collective that the model knows", table.op.empty() ? "?" : table.op), {file, table.header_line, 0}, op.error().notes);
  const int ranks = table.stated_ranks() > 1 ? table.stated_ranks() : table.implied_ranks();
  TRY_INTO(const Group group, group_of(ranks, *machine.cluster, file));
  Input input{fmt::format("{} ({})", file, table.op), std::string(wiring::name(table.kind)), {}, {}, table.notes};
  const double factor = collective::bus_factor(*op, ranks);
  for (const wiring::TableRow& row : table.rows) {
    if (row.bytes <= 0) continue;
    if (const std::string why = contradiction(row, factor); !why.empty()) {
      input.notes.push_back({"row left out: " + why, {file, row.line, 0}});
      continue;
    }
    input.observations.push_back(collective_observation(machine, *op, row.bytes, group, row.time_s, input.name));
    input.labels.push_back(fmt::format("{} of {} on {} ranks", table.op, format_bytes(row.bytes), ranks));
  }
  if (input.observations.empty()) return fail("no row of this table can be used", {file, table.header_line, 0}, {});
  share_weight(input);
  return input;
}

/// One NIC against another: the rate of the largest message.
Result<Input> from_perftest(const wiring::MeasuredTable& table, const std::string& file, const Machine& machine) {
  if (auto known = needs_wiring(machine, file); !known) return tl::make_unexpected(known.error());
  if (machine.cluster->host_count() < 2) {
    return fail("this table was measured between two hosts, the cluster has one", {file, 0, 0}, {"give --hosts 2"});
  }
  const double rate = table.peak_bus_bytes_per_s() > 0 ? table.peak_bus_bytes_per_s() : (table.largest() ? table.largest()->algorithm_bytes_per_s : 0);
  if (!(rate > 0)) return fail("the table has no bandwidth", {file, table.header_line, 0}, {});
  Input input{file, std::string(wiring::name(table.kind)), {}, {}, table.notes};
  const double one_way = table.bidirectional ? rate / 2 : rate;
  input.observations.push_back(collective_observation(machine, Op::kSendRecv, kPairBytes, {2, 1, 1, 1}, kPairBytes / one_way, file));
  input.labels.push_back(fmt::format("{} between two hosts", format_rate(one_way)));
  return input;
}

/// Copies between the GPUs of a host: the median pair.
Result<Input> from_pairs(const wiring::PairTables& tables, const std::string& file, const Machine& machine) {
  if (auto known = needs_wiring(machine, file); !known) return tl::make_unexpected(known.error());
  Input input{file, "pairs", {}, {}, tables.notes};
  for (const wiring::PairMatrix& matrix : tables.matrices) {
    if (matrix.unit != wiring::PairUnit::kBytesPerS || matrix.host_memory || matrix.peer_access == false) continue;
    std::vector<double> rates;
    for (std::size_t i = 0; i < matrix.cells.size(); ++i) {
      for (std::size_t j = 0; j < matrix.cells[i].size(); ++j) {
        if (i != j && matrix.cells[i][j] && *matrix.cells[i][j] > 0) rates.push_back(*matrix.cells[i][j]);
      }
    }
    if (rates.empty()) continue;
    std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
    const double rate = rates[rates.size() / 2] / (matrix.bidirectional ? 2 : 1);
    input.observations.push_back(collective_observation(machine, Op::kSendRecv, kPairBytes, {2, 2, 1, 1}, kPairBytes / rate, file));
    input.labels.push_back(fmt::format("{} between two accelerators of a host", format_rate(rate)));
  }
  if (input.observations.empty()) return fail("no matrix of bandwidths between accelerators in this file", {file, 0, 0}, {});
  return input;
}

Result<Input> from_table(const wiring::MeasuredTable& table, const std::string& file, const Machine& machine) {
  const bool between_two = table.kind == wiring::TableKind::kPerftest || (table.kind == wiring::TableKind::kOsu && table.op.find("bandwidth") != std::string::npos);
  if (between_two) return from_perftest(table, file, machine);
  return from_collectives(table, file, machine);
}

}  // namespace

void share_weight(Input& input) {
  const double rows = static_cast<double>(input.observations.size());
  for (Observation& row : input.observations) row.weight = std::min(1.0, kTableRows / rows);
}

Result<std::vector<Input>> read_measurements(std::string_view text, const std::string& file, const Machine& machine) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start != std::string_view::npos && text[start] == '{') {
    TRY_INTO(Input input, read_kernel_timings(text, file, machine));
    return std::vector<Input>{std::move(input)};
  }
  TRY_INTO(const std::vector<wiring::Document> documents, wiring::read_documents(text, file));
  std::vector<Input> inputs;
  std::optional<Error> refused;
  for (const wiring::Document& document : documents) {
    Result<Input> input = fail("");
    if (const auto* table = std::get_if<wiring::MeasuredTable>(&document.content)) {
      input = from_table(*table, file, machine);
    } else if (const auto* pairs = std::get_if<wiring::PairTables>(&document.content)) {
      input = from_pairs(*pairs, file, machine);
    } else {
      continue;
    }
    if (input) {
      inputs.push_back(std::move(*input));
    } else if (!refused) {
      refused = std::move(input).error();
    }
  }
  if (!inputs.empty()) return inputs;
  if (refused) return tl::make_unexpected(std::move(*refused));
  return fail("no measured times in this file", {file, 0, 0},
              {"expected a table of nccl-tests, rccl-tests, OSU, perftest or nvbandwidth, kernel timings (JSON), or training runs (CSV)"});
}

}  // namespace chokepoint::calibrate

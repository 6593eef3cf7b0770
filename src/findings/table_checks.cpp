// SPDX-License-Identifier: Apache-2.0
// What benchmarks' numbers alone say.
#include "collector.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace chokepoint::findings {

using namespace wiring;

namespace {

bool is_gpu_matrix(const PairMatrix& matrix) { return matrix.unit == PairUnit::kBytesPerS && !matrix.host_memory && matrix.rows.size() == matrix.columns.size() && matrix.rows.size() >= 2; }

/// Median of the cells off the diagonal.
double median_of(const PairMatrix& matrix) {
  std::vector<double> values;
  for (std::size_t i = 0; i < matrix.rows.size(); ++i) {
    for (std::size_t j = 0; j < matrix.columns.size(); ++j) {
      if (i != j && matrix.cells[i][j]) values.push_back(*matrix.cells[i][j]);
    }
  }
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void check_detour(Collector& out, const PairTables& tables, const std::string& file) {
  for (const PairMatrix& on : tables.matrices) {
    if (!on.peer_access.value_or(false) || !is_gpu_matrix(on)) continue;
    for (const PairMatrix& off : tables.matrices) {
      if (off.peer_access.value_or(true) || !is_gpu_matrix(off) || off.bidirectional != on.bidirectional) continue;
      const double with = median_of(on);
      const double without = median_of(off);
      // Without peer access the same copies are staged through memory: both numbers agree within noise then.
      if (with <= 0 || without <= 0 || with > 0.7 * without) continue;
      out.add("p2p-detour", file, fmt::format("median pair {:.3g} GB/s with peer-to-peer, {:.3g} GB/s without", with / 1e9, without / 1e9), {{file, on.line, 0}, {file, off.line, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
      return;
    }
  }
}

/// Each GPU has one partner that it reaches worse than all others, and the partners choose each other.
void check_near_pairs(Collector& out, const PairTables& tables, const std::string& file) {
  for (const PairMatrix& matrix : tables.matrices) {
    const std::size_t n = matrix.rows.size();
    if (!is_gpu_matrix(matrix) || n < 4 || n % 2 != 0) continue;
    std::vector<std::size_t> partner(n, n);
    std::vector<double> share(n, 1);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> others;
      double lowest = 0;
      for (std::size_t j = 0; j < n; ++j) {
        if (i == j || !matrix.cells[i][j]) continue;
        others.push_back(*matrix.cells[i][j]);
        if (partner[i] == n || *matrix.cells[i][j] < lowest) {
          lowest = *matrix.cells[i][j];
          partner[i] = j;
        }
      }
      if (others.size() + 1 < n) return;
      std::sort(others.begin(), others.end());
      share[i] = lowest / others[1];
    }
    bool mutual = true;
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      mutual = mutual && partner[i] < n && partner[partner[i]] == i;
      worst = std::max(worst, share[i]);
    }
    // Noise between equal pairs stays within a few per cent.
    if (!mutual || worst > 0.93) continue;
    std::string pairs;
    for (std::size_t i = 0; i < n; ++i) {
      if (i < partner[i] && pairs.size() < 60) pairs += fmt::format("{}{}-{}", pairs.empty() ? "" : ", ", i, partner[i]);
    }
    const double near = *matrix.cells[0][partner[0]];
    const std::string what = fmt::format("pairs {} reach {:.3g} GB/s, pairs further apart {:.3g}", pairs, near / 1e9, near / share[0] / 1e9);
    if (worst < 0.75) {
      out.add("acs-redirect", file, what + ": copies inside a switch go up to the root complex and down again", {{file, matrix.line, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
    } else {
      out.add("uplink-shared", file, what, {{file, matrix.line, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
    }
    return;
  }
}

/// One GPU slower than all others in every pair: its slot.
void check_slow_card(Collector& out, const PairTables& tables, const std::string& file) {
  for (const PairMatrix& matrix : tables.matrices) {
    const std::size_t n = matrix.rows.size();
    if (!is_gpu_matrix(matrix) || n < 3 || !matrix.peer_access.value_or(true)) continue;
    const double median = median_of(matrix);
    std::vector<double> best(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        best[i] = std::max({best[i], matrix.cells[i][j].value_or(0), matrix.cells[j][i].value_or(0)});
      }
    }
    std::vector<double> sorted = best;
    std::sort(sorted.begin(), sorted.end());
    if (sorted[0] <= 0 || sorted[0] > 0.7 * sorted[1] || sorted[1] < 0.7 * median) continue;
    const auto which = static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
    out.add("pcie-unequal", fmt::format("GPU{}", which), fmt::format("every pair with GPU{} stays below {:.3g} GB/s, the others reach {:.3g}: its slot is slower (fewer lanes, or behind the chipset)", which, best[which] / 1e9, sorted[1] / 1e9), {{file, matrix.line, 0}})
        .effect = {EffectKind::kGpuSlot, best[which] / sorted[1], {}};
    return;
  }
}

void check_access(Collector& out, const PairTables& tables, const std::string& file) {
  if (tables.no_access.empty()) return;
  const std::size_t n = tables.devices.size();
  const bool geforce = std::any_of(tables.devices.begin(), tables.devices.end(), [](const TableDevice& device) { return device.name.find("GeForce") != std::string::npos; });
  const bool all = n > 1 && tables.no_access.size() >= n * (n - 1);
  const std::string what = fmt::format("{} ordered pairs of {} GPUs without peer access{}", tables.no_access.size(), n, geforce ? ": GeForce drivers refuse it" : "");
  if (all) out.add(geforce ? Severity::kInfo : Severity::kWarning, "p2p-off", file, what, {{file, 0, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
  else out.add("p2p-islands", file, what, {{file, 0, 0}}).effect = {EffectKind::kNoPeerToPeer, 1, {}};
}

/// Numbers of ranks whose ratio prints like this one: both rates carry two decimals.
std::pair<int, int> rank_range(const MeasuredTable& table) {
  const TableRow* row = table.largest();
  const double step = 0.005e9;
  const double factor = table.op == "all_reduce" ? 2 : 1;
  const double low = (row->bus_bytes_per_s - step) / (row->algorithm_bytes_per_s + step) / factor;
  const double high = (row->bus_bytes_per_s + step) / (row->algorithm_bytes_per_s - step) / factor;
  const auto ranks = [](double share) { return share >= 1 ? 1 << 20 : static_cast<int>(std::lround(std::clamp(1 / (1 - share), 1.0, 1048576.0))); };
  return {ranks(low), ranks(high)};
}

void check_ranks(Collector& out, const MeasuredTable& table, const std::string& file) {
  const int implied = table.implied_ranks();
  if (implied < 2 || table.kind != TableKind::kNcclTests) return;
  const auto [low, high] = rank_range(table);
  const int stated = table.stated_ranks();
  const SourcePos at{file, table.largest()->line, 0};
  const double ratio = table.largest()->bus_bytes_per_s / table.largest()->algorithm_bytes_per_s;
  if (stated > 0 && (stated < low || stated > high)) {
    // A paste may leave out ranks before the last, never after it.
    out.add("rank-list-contradicts", file, fmt::format("the last rank listed is {} ({} ranks), bus over algorithm bandwidth {:.4g} says {} ranks", stated - 1, stated, ratio, implied), {at, {file, table.header_line, 0}});
  } else if (stated == 0) {
    out.add("rank-count-derived", file, fmt::format("no list of devices; bus over algorithm bandwidth {:.4g} says {} ranks: one host of {} GPUs unless the devices are spread thinner", ratio, implied, implied), {at});
  }
}

void check_collapse(Collector& out, const MeasuredTable& table, const std::string& file) {
  if (table.kind != TableKind::kNcclTests || table.rows.size() < 4) return;
  constexpr double kLarge = 1 << 20;
  const TableRow* peak = nullptr;
  for (const TableRow& row : table.rows) {
    if (peak == nullptr || row.bus_bytes_per_s > peak->bus_bytes_per_s) peak = &row;
  }
  const TableRow* last = table.largest();
  if (last->bytes <= peak->bytes * 3 || peak->bytes < kLarge || last->bus_bytes_per_s > 0.5 * peak->bus_bytes_per_s || last->bus_bytes_per_s <= 0) return;
  out.add("bandwidth-collapses", file, fmt::format("{:.3g} GB/s at {:.3g} MiB, {:.3g} GB/s at {:.3g} MiB", peak->bus_bytes_per_s / 1e9, peak->bytes / 1048576, last->bus_bytes_per_s / 1e9, last->bytes / 1048576), {{file, peak->line, 0}, {file, last->line, 0}});
}

void check_wire(Collector& out, const MeasuredTable& table, const std::string& file) {
  if (table.kind != TableKind::kPerftest || table.rows.empty()) return;
  static constexpr std::array<double, 8> kRates{25, 40, 50, 56, 100, 200, 400, 800};  // Gb/s, common RDMA ports
  const double gigabit = table.peak_bus_bytes_per_s() * 8 / 1e9 * (table.bidirectional ? 0.5 : 1);
  for (const double rate : kRates) {
    if (gigabit < 0.9 * rate || gigabit > 1.01 * rate) continue;
    out.add("wire-at-line-rate", file, fmt::format("{} reaches {:.4g} Gb/s one way, {:.0f} % of a {:g} Gb/s port: the wire is not what is slow", table.op, gigabit, 100 * gigabit / rate, rate), {{file, table.largest()->line, 0}});
    return;
  }
}

}  // namespace

void check_pairs(Collector& out) {
  for (const Document& document : out.assembly().documents) {
    const auto* tables = std::get_if<PairTables>(&document.content);
    if (tables == nullptr) continue;
    check_detour(out, *tables, document.file);
    check_near_pairs(out, *tables, document.file);
    check_slow_card(out, *tables, document.file);
    check_access(out, *tables, document.file);
  }
}

void check_tables(Collector& out) {
  for (const Document& document : out.assembly().documents) {
    const auto* table = std::get_if<MeasuredTable>(&document.content);
    if (table == nullptr || table->rows.empty()) continue;
    if (table->wrong > 0) out.add("results-wrong", document.file, fmt::format("{} rows with wrong results", table->wrong), {{document.file, table->header_line, 0}});
    check_ranks(out, *table, document.file);
    check_collapse(out, *table, document.file);
    check_wire(out, *table, document.file);
  }
}

std::optional<Finding> judge(const std::vector<Reached>& rows, std::string_view op, std::string_view limit, const SourcePos& evidence) {
  constexpr double kLarge = 64.0 * 1024 * 1024;
  constexpr double kFar = 0.6;  // beyond the model's own error (docs/validation.md)
  double best = 0;
  const Reached* at = nullptr;
  for (const Reached& row : rows) {
    if (row.bytes < kLarge || row.share() <= best) continue;
    best = row.share();
    at = &row;
  }
  if (at == nullptr || best >= kFar) return std::nullopt;
  assemble::Assembly empty;
  Collector out(empty);
  return out.add("measured-below-expected", std::string(limit),
                 fmt::format("{} reaches at best {:.0f} % of what this wiring should give ({:.3g} of {:.3g} GB/s at {:.3g} MiB)", op, 100 * best, at->measured_bytes_per_s / 1e9, at->expected_bytes_per_s / 1e9, at->bytes / 1048576), {evidence});
}

}  // namespace chokepoint::findings

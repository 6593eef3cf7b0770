// SPDX-License-Identifier: Apache-2.0
// Tables of achieved matrix rates. Dense products stand in the columns m, n, k; grouped products and attention kernels
// leave them empty and give their sizes as key=value pairs in the notes.
#include "csv.hpp"
#include "summary.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <chokepoint/compute/kernels.hpp>
#include <map>

namespace chokepoint::validate {
namespace {

using compute::AttentionKernel;
using compute::AttentionShape;
using compute::Clock;
using compute::KernelModel;
using hardware::Architecture;
using hardware::Dtype;

/// A hundred runs of it are over in 30 ms.
constexpr double kBriefKernel_s = 300e-6;

/// The part of a repository address before its path and edition: one publisher.
std::string publisher(std::string_view where) { return std::string(where.substr(0, where.find(':'))); }

/// Value of `key` in "..., key=value, ..."; empty when absent.
std::string_view noted(std::string_view notes, std::string_view key) {
  for (std::size_t at = notes.find(key); at != std::string_view::npos; at = notes.find(key, at + 1)) {
    const bool starts = at == 0 || notes[at - 1] == ' ' || notes[at - 1] == ',';
    const std::size_t equals = at + key.size();
    if (!starts || equals >= notes.size() || notes[equals] != '=') continue;
    const std::string_view rest = notes.substr(equals + 1);
    return rest.substr(0, rest.find_first_of(",; "));
  }
  return {};
}
double noted_number(std::string_view notes, std::string_view key) {
  return to_number(noted(notes, key)).value_or(0);
}

struct Measured {
  double flops_per_s = 0;
  double m = 0;
  double n = 0;
  double k = 0;
  Dtype dtype = Dtype::kBf16;
  std::string notes;
};

struct Timing {
  std::string kernel;
  double flops = 0;        ///< as the table counts them
  double predicted_s = 0;
};

AttentionKernel fastest_attention(Architecture architecture) {
  if (architecture == Architecture::kBlackwell) return AttentionKernel::kFlash4;
  return architecture == Architecture::kHopper ? AttentionKernel::kFlash3 : AttentionKernel::kFlash2;
}

std::optional<Timing> attention(const KernelModel& model, const Measured& row, bool backward) {
  AttentionShape shape;
  shape.batch = noted_number(row.notes, "batch");
  shape.heads = noted_number(row.notes, "head_num");
  shape.kv_heads = noted_number(row.notes, "kv_head_num");
  shape.sequence = shape.kv_sequence = noted_number(row.notes, "seq_len");
  const double qk = noted_number(row.notes, "qk_head_dim");
  const double v = noted_number(row.notes, "v_head_dim");
  shape.head_dim = (qk + v) / 2;  // same FLOPs forward; the backward's three qk products against two v products differ
  const double square = shape.batch * shape.heads * shape.sequence * shape.sequence;
  if (!(square > 0 && shape.kv_heads > 0 && qk > 0 && v > 0)) return std::nullopt;
  const AttentionKernel kernel = fastest_attention(model.accelerator().architecture);
  if (!backward)
    return Timing{"attention-forward", 2 * square * (qk + v), model.attention_forward_s(kernel, row.dtype, shape)};
  return Timing{"attention-backward", square * (6 * qk + 4 * v),
                model.attention_backward_s(kernel, row.dtype, shape)};
}

std::optional<Timing> grouped(const KernelModel& model, const Measured& row) {
  const double groups = noted_number(row.notes, "ng");
  const double m = noted_number(row.notes, "M");
  const double n = noted_number(row.notes, "N");
  const double k = noted_number(row.notes, "K");
  if (!(groups > 0 && m > 0 && n > 0 && k > 0)) return std::nullopt;
  Timing out{"grouped", 2 * groups * m * n * k, 0};
  const std::string_view stage = noted(row.notes, "stage");
  compute::GroupedShape shape{groups, m, n, k, 1};
  double accumulate_bytes = 0;
  if (stage == "bwd_grad_act") {
    shape = {groups, m, k, n, 1};
  } else if (stage == "bwd_grad_w") {
    shape = {groups, n, k, m, 1};
    accumulate_bytes = noted(row.notes, "main_grad_dtype") == "fp32" ? 4 : 2;
  }
  out.predicted_s = model.grouped_gemm_s(compute::GroupedKernel::kStreams, row.dtype, shape, accumulate_bytes);
  return out;
}

std::optional<Timing> timing(const KernelModel& model, const Measured& row) {
  if (row.notes.find("sdp_fwd") != std::string_view::npos) return attention(model, row, false);
  if (row.notes.find("sdp_bwd") != std::string_view::npos) return attention(model, row, true);
  if (row.notes.find("group_matmul") != std::string_view::npos) return grouped(model, row);
  if (!(row.m > 0 && row.n > 0 && row.k > 0)) return std::nullopt;
  const double flops = 2 * row.m * row.n * row.k;
  if (noted(row.notes, "accumulate") == "True") {
    const double element = noted(row.notes, "out_dtype") == "fp32" ? 4 : 2;
    return Timing{"product-accumulate", flops, model.gemm_accumulate_s(row.dtype, row.m, row.n, row.k, 1, element)};
  }
  return Timing{"product", flops, model.gemm_s(row.dtype, row.m, row.n, row.k)};
}

/// Numbers of the row, or the reason why it has none.
Result<Measured> read(const CsvTable& table, const CsvRow& row) {
  Measured out;
  auto number = [&](std::string_view column) { return table.number(row, column); };
  TRY_INTO(const std::optional<double> rate, number("measured_tflops"));
  TRY_INTO(const std::optional<double> m, number("m"));
  TRY_INTO(const std::optional<double> n, number("n"));
  TRY_INTO(const std::optional<double> k, number("k"));
  if (!rate || !(*rate > 0)) return fail("no measured rate", table.position(row, "measured_tflops"));
  TRY_INTO(out.dtype, hardware::parse_dtype(table.text(row, "dtype")));
  out.flops_per_s = *rate * 1e12;
  out.m = m.value_or(0);
  out.n = n.value_or(0);
  out.k = k.value_or(0);
  out.notes = std::string(table.text(row, "notes"));
  return out;
}

MatmulRow predict_row(const CsvTable& table, const CsvRow& row, const compute::Constants& constants) {
  MatmulRow out;
  out.row = row.number;
  if (!row.refused.empty()) {
    out.reason = row.refused;
    out.refused = true;
    return out;
  }
  out.accelerator = std::string(table.text(row, "accelerator"));
  out.table = out.accelerator + " " + std::string(table.text(row, "dtype")) + ", " + publisher(table.text(row, "where"));
  const auto measured = read(table, row);
  if (!measured) {
    out.reason = one_line(measured.error());
    return out;
  }
  const auto part = hardware::find_accelerator(out.accelerator);
  if (!part) {
    out.reason = part.error().message;
    return out;
  }
  // Benchmarks loop a kernel some hundred times. A loop over within tens of milliseconds ends before the board's power
  // controller reacts, and so does a "maximum achievable" rate; everything else runs at the clocks of training.
  Clock clock = starts_with_ignoring_case(measured->notes, "MAMF") ? Clock::kBurst : Clock::kSustained;
  auto time = timing(KernelModel(*part, clock, constants), *measured);
  if (time && time->flops / measured->flops_per_s < kBriefKernel_s) {
    clock = Clock::kBurst;
    time = timing(KernelModel(*part, clock, constants), *measured);
  }
  if (!time) {
    out.reason = "the row gives no sizes: m, n, k are empty and the notes name no known operator";
    return out;
  }
  out.kernel = time->kernel;
  out.flops = time->flops;
  out.peak_flops_per_s = part->peak(measured->dtype);
  out.measured_time_s = time->flops / measured->flops_per_s;
  out.predicted_time_s = time->predicted_s;
  out.error = time->predicted_s / *out.measured_time_s - 1;
  out.part = part->name;
  out.architecture = part->architecture;
  out.time_s = [part = *part, clock, row = *measured](const compute::Constants& other) {
    const auto again = timing(KernelModel(part, clock, other), row);
    return again ? again->predicted_s : 0.0;
  };
  return out;
}

}  // namespace

Result<MatmulReport> validate_matmul(std::string_view csv, const std::string& file, const compute::Constants& constants) {
  TRY_INTO(const CsvTable table, CsvTable::parse(csv, file));
  for (const char* column : {"accelerator", "dtype", "m", "n", "k", "measured_tflops"})
    if (!table.has(column))
      return fail("found no column \"" + std::string(column) + "\", which a table of matrix rates needs",
                  SourcePos{file, 1, 1}, {"expected accelerator,dtype,m,n,k,measured_tflops[,where,notes]"});
  MatmulReport report;
  std::map<std::string, std::vector<std::optional<double>>> by_table;
  std::vector<std::optional<double>> all;
  for (const CsvRow& row : table.rows()) {
    report.rows.push_back(predict_row(table, row, constants));
    const MatmulRow& last = report.rows.back();
    by_table[last.kernel.empty() ? last.table : last.table + ", " + last.kernel].push_back(last.error);
    all.push_back(last.error);
  }
  for (const auto& [name, errors] : by_table) report.by_table.push_back(summarise(name, errors));
  report.overall = summarise("all kernels", all);
  return report;
}

}  // namespace chokepoint::validate

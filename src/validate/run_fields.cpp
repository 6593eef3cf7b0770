// SPDX-License-Identifier: Apache-2.0
#include "run_fields.hpp"

#include <cmath>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

struct TextColumn {
  const char* name;
  std::string RunFields::*field;
};
struct IntColumn {
  const char* name;
  std::optional<int> RunFields::*field;
  double low, high;
};
struct NumberColumn {
  const char* name;
  std::optional<double> RunFields::*field;
  double low, high;
};

using F = RunFields;
/// Utilisations are shares; some sources reach a little above one by their own counting.
constexpr double kMostShare = 1.5;
constexpr TextColumn kTexts[] = {
    {"source_id", &F::source_id}, {"source", &F::source}, {"where", &F::where}, {"model", &F::model},
    {"mlp", &F::mlp}, {"tied_embeddings", &F::tied_embeddings}, {"precision", &F::precision},
    {"accelerator", &F::accelerator}, {"intra_link", &F::intra_link}, {"inter_link", &F::inter_link},
    {"sequence_parallel", &F::sequence_parallel}, {"shard", &F::shard}, {"framework", &F::framework},
    {"recompute", &F::recompute}, {"attention", &F::attention}, {"offload", &F::offload},
    {"optimizer", &F::optimizer}, {"pp_schedule", &F::pp_schedule}, {"trust", &F::trust}, {"notes", &F::notes},
};
constexpr IntColumn kInts[] = {
    {"n_layers", &F::n_layers, 1, 1e5}, {"hidden", &F::hidden, 1, 1e7}, {"ffn_hidden", &F::ffn_hidden, 1, 1e8},
    {"n_heads", &F::n_heads, 1, 1e5}, {"n_kv_heads", &F::n_kv_heads, 1, 1e5}, {"head_dim", &F::head_dim, 1, 1e5},
    {"vocab", &F::vocab, 1, 1e8}, {"moe_experts", &F::moe_experts, 1, 1e5}, {"moe_topk", &F::moe_topk, 1, 1e4},
    {"moe_ffn_hidden", &F::moe_ffn_hidden, 1, 1e8}, {"seq_len", &F::seq_len, 1, 1e9}, {"n_gpus", &F::n_gpus, 1, 1e7},
    {"gpus_per_node", &F::gpus_per_node, 1, 1e5}, {"tp", &F::tp, 1, 1e5}, {"pp", &F::pp, 1, 1e5},
    {"vpp", &F::vpp, 1, 1e4}, {"dp", &F::dp, 1, 1e7}, {"cp", &F::cp, 1, 1e5}, {"ep", &F::ep, 1, 1e5},
};
constexpr NumberColumn kNumbers[] = {
    {"params_b", &F::params_b, 1e-6, 1e7}, {"micro_batch", &F::micro_batch, 1e-6, 1e7},
    {"grad_accum", &F::grad_accum, 1e-6, 1e7}, {"global_batch", &F::global_batch, 1e-6, 1e9},
    {"step_time_s", &F::step_time_s, 1e-9, 1e9}, {"tok_s_gpu", &F::tok_s_gpu, 1e-9, 1e12},
    {"model_tflops_gpu", &F::model_tflops_gpu, 1e-9, 1e7}, {"mfu", &F::mfu, 1e-9, kMostShare}, {"hfu", &F::hfu, 1e-9, kMostShare},
    {"peak_mem_gib", &F::peak_mem_gib, 1e-6, 1e5}, {"bw_all_reduce_GBs", &F::bw_all_reduce, 1e-6, 1e5},
    {"bw_all_gather_GBs", &F::bw_all_gather, 1e-6, 1e5}, {"bw_reduce_scatter_GBs", &F::bw_reduce_scatter, 1e-6, 1e5},
    {"bw_intra_all_reduce_GBs", &F::bw_intra_all_reduce, 1e-6, 1e5},
    {"bw_intra_all_gather_GBs", &F::bw_intra_all_gather, 1e-6, 1e5},
    {"bw_intra_reduce_scatter_GBs", &F::bw_intra_reduce_scatter, 1e-6, 1e5},
};

Result<std::optional<double>> number_within(const CsvTable& table, const CsvRow& row, const char* column, double low,
                                            double high) {
  TRY_INTO(const std::optional<double> value, table.number(row, column));
  if (value && (*value < low || *value > high)) {
    std::vector<std::string> notes;
    if (high == kMostShare && *value > high && *value <= 100) notes.push_back(fmt::format("write the share {:g}", *value / 100));
    return fail(fmt::format("{} is {}, expected {:g} to {:g}", column, table.text(row, column), low, high),
                table.position(row, column), std::move(notes));
  }
  return value;
}

}  // namespace

const std::vector<std::string>& run_columns() {
  static const std::vector<std::string> columns = {
      "source_id", "source", "where", "model", "params_b", "n_layers", "hidden", "ffn_hidden", "n_heads",
      "n_kv_heads", "head_dim", "vocab", "mlp", "tied_embeddings", "moe_experts", "moe_topk", "moe_ffn_hidden",
      "seq_len", "precision", "accelerator", "n_gpus", "gpus_per_node", "intra_link", "inter_link", "tp", "pp", "vpp",
      "dp", "cp", "ep", "sequence_parallel", "shard", "framework", "micro_batch", "grad_accum", "global_batch",
      "recompute", "attention", "offload", "optimizer", "pp_schedule", "step_time_s", "tok_s_gpu", "model_tflops_gpu",
      "mfu", "hfu", "peak_mem_gib", "bw_all_reduce_GBs", "bw_all_gather_GBs", "bw_reduce_scatter_GBs",
      "bw_intra_all_reduce_GBs", "bw_intra_all_gather_GBs", "bw_intra_reduce_scatter_GBs", "trust", "notes"};
  return columns;
}

Result<RunFields> read_run_fields(const CsvTable& table, const CsvRow& row) {
  RunFields fields;
  for (const TextColumn& column : kTexts) fields.*column.field = std::string(table.text(row, column.name));
  if (!row.refused.empty()) return fail(row.refused);  // says its place itself
  for (const NumberColumn& column : kNumbers) {
    TRY_INTO(fields.*column.field, number_within(table, row, column.name, column.low, column.high));
  }
  for (const IntColumn& column : kInts) {
    TRY_INTO(const std::optional<double> value, number_within(table, row, column.name, column.low, column.high));
    if (!value) continue;
    if (std::floor(*value) != *value) {
      return fail(fmt::format("{} is {}, expected a whole number", column.name, table.text(row, column.name)),
                  table.position(row, column.name));
    }
    fields.*column.field = static_cast<int>(*value);
  }
  return fields;
}

}  // namespace chokepoint::validate

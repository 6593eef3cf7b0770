// SPDX-License-Identifier: Apache-2.0
#pragma once
// One row of a table of training runs with its columns typed; empty fields stay empty, nothing is assumed here.
#include "csv.hpp"

#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::validate {

struct RunFields {
  std::string source_id, source, where, model, notes, trust;
  std::string mlp, tied_embeddings, precision, accelerator, intra_link, inter_link;
  std::string sequence_parallel, shard, framework, recompute, attention, offload, optimizer, pp_schedule;
  std::optional<double> params_b;
  std::optional<int> n_layers, hidden, ffn_hidden, n_heads, n_kv_heads, head_dim, vocab;
  std::optional<int> moe_experts, moe_topk, moe_ffn_hidden;
  std::optional<int> seq_len, n_gpus, gpus_per_node, tp, pp, vpp, dp, cp, ep;
  std::optional<double> micro_batch, grad_accum, global_batch;
  std::optional<double> step_time_s, tok_s_gpu, model_tflops_gpu, mfu, hfu, peak_mem_gib;
  std::optional<double> bw_all_reduce, bw_all_gather, bw_reduce_scatter;                    ///< GB/s, whole allocation
  std::optional<double> bw_intra_all_reduce, bw_intra_all_gather, bw_intra_reduce_scatter;  ///< GB/s, one node
};

/// Column names of a table of runs, in the order of its schema.
const std::vector<std::string>& run_columns();

/// The typed row, or why it cannot be read (refused by the CSV reader, not a number, out of range).
Result<RunFields> read_run_fields(const CsvTable& table, const CsvRow& row);

}  // namespace chokepoint::validate

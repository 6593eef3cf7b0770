// SPDX-License-Identifier: Apache-2.0
#include "run_job.hpp"
#include "run_words.hpp"

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/describe.hpp>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

constexpr int kUsualGpusPerHost = 8;
/// Share of memory that the states of a whole model take on the smallest cluster assumed for it.
constexpr double kStatesShare = 0.3;

/// Usual sequence lengths by generation: GPT-2 and GPT-3 papers, then Llama 1, then Llama 2 and later.
int usual_sequence(int year) { return year <= 2021 ? 1024 : year <= 2022 ? 2048 : 4096; }

void note(MappedRun& run, std::string text) { run.job.assumptions.push_back({std::move(text), {}}); }

std::optional<double> bytes_per_s(std::optional<double> gigabytes_per_s) {
  if (!gigabytes_per_s) return std::nullopt;
  return gbyte(*gigabytes_per_s);
}

/// A rate per GPU without the number of GPUs: what the notes say in words, else hosts enough for the model's states.
Result<int> gpus_of(const RunFields& row, MappedRun& run) {
  if (row.n_gpus) return *row.n_gpus;
  const int per_host = row.gpus_per_node.value_or(kUsualGpusPerHost);
  const auto said = mentions(row.notes, {"single-node"}) ? std::optional<double>(1) : number_before(row.notes, " nodes");
  int hosts = said && *said >= 1 && *said <= 1e4 ? static_cast<int>(*said) : 0;
  if (hosts == 0 && !row.params_b) return fail("neither the number of GPUs nor the parameters are stated");
  if (hosts == 0) hosts = 1;
  const double states = kStateBytesPerParameter * row.params_b.value_or(0) * 1e9;
  while (!said && states > kStatesShare * run.job.accelerator.memory_bytes * per_host * hosts && hosts < 4096) hosts *= 2;
  note(run, fmt::format("GPUs not stated: {}", hosts * per_host));
  return hosts * per_host;
}

Result<bool> fill_cluster(const RunFields& row, MappedRun& run) {
  TRY_INTO(run.job.gpus, gpus_of(row, run));
  const int per_host = row.gpus_per_node.value_or(std::min(kUsualGpusPerHost, run.job.gpus));
  if (!row.gpus_per_node) note(run, fmt::format("GPUs of a host not stated: {}", per_host));
  const int hosts = std::max(1, run.job.gpus / per_host);
  if (run.job.gpus > per_host && run.job.gpus % per_host != 0) {
    return fail(fmt::format("{} GPUs do not fill hosts of {}", run.job.gpus, per_host));
  }
  TRY_INTO(run.job.cluster, wiring::cluster_from_words(row.accelerator, per_host, hosts, row.intra_link, row.inter_link));
  for (const Note& said : run.job.cluster.notes) run.job.assumptions.push_back(said);
  topology::MeasuredCollectives& measured = run.job.cluster.measured;
  measured.all_reduce = bytes_per_s(row.bw_all_reduce);
  measured.all_gather = bytes_per_s(row.bw_all_gather);
  measured.reduce_scatter = bytes_per_s(row.bw_reduce_scatter);
  measured.host_all_reduce = bytes_per_s(row.bw_intra_all_reduce);
  measured.host_all_gather = bytes_per_s(row.bw_intra_all_gather);
  measured.host_reduce_scatter = bytes_per_s(row.bw_intra_reduce_scatter);
  return true;
}

/// Sequence length, or the tokens of a micro-batch that the notes state instead.
Result<int> sequence_of(const RunFields& row, MappedRun& run) {
  if (row.seq_len) return *row.seq_len;
  if (const auto thousands = number_before(row.notes, "k tokens per gpu"); thousands && *thousands < 1e4) {
    const int tokens = static_cast<int>(*thousands * 1024);
    note(run, fmt::format("sequence length not stated: one sequence of the {} tokens of a GPU", tokens));
    return std::max(1, tokens);
  }
  const int usual = usual_sequence(year_from_words(row).value_or(2024));
  note(run, fmt::format("sequence length not stated: {}", usual));
  return usual;
}

}  // namespace

Result<MappedRun> map_run(const RunFields& row) {
  MappedRun run;
  run.job.frozen_weights = mentions(row.model, {"lora"}) || mentions(row.notes, {"base weights frozen"});
  if (run.job.frozen_weights) {
    const auto rank = number_after(row.notes, "lora rank ");
    if (rank && *rank >= 1 && *rank < 1e4) run.job.adapter_rank = static_cast<int>(*rank);
    note(run, fmt::format("adapters only (LoRA), rank {} on every product: their own time is neglected", run.job.adapter_rank));
  }
  if (row.accelerator.empty()) return fail("the accelerator is not stated");
  TRY_INTO(run.job.accelerator, wiring::accelerator_from_words(row.accelerator, row.intra_link, run.job.assumptions));
  if (auto filled = fill_cluster(row, run); !filled) return tl::make_unexpected(filled.error());
  TRY_INTO(run.job.sequence, sequence_of(row, run));
  TRY_INTO(run.job.model, model_of(row, run.job.assumptions));
  if (!row.seq_len && run.job.model.max_positions > 0 && run.job.model.max_positions < run.job.sequence) {
    run.job.sequence = run.job.model.max_positions;
    note(run, fmt::format("sequence no longer than the model's {} positions", run.job.sequence));
  }
  fill_software(row, run);
  if (auto filled = fill_degrees(row, run); !filled) return tl::make_unexpected(filled.error());
  fill_sharding(row, run);
  if (auto filled = fill_batch(row, run); !filled) return tl::make_unexpected(filled.error());
  if (auto filled = fill_schedule(row, run); !filled) return tl::make_unexpected(filled.error());
  fill_overlap(row, run);
  return run;
}

}  // namespace chokepoint::validate

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
/// Chips of a TPU host (Google Cloud: v4, v5p and Ironwood 4). Tables print the chips of a slice as if it were a host.
constexpr int kTpuHostChips = 4;

void note(MappedRun& run, std::string text) { run.job.assumptions.push_back({std::move(text), {}}); }

std::optional<double> bytes_per_s(std::optional<double> gigabytes_per_s) {
  if (!gigabytes_per_s) return std::nullopt;
  return gbyte(*gigabytes_per_s);
}

Result<bool> fill_cluster(const RunFields& row, MappedRun& run) {
  if (!row.n_gpus) return fail("the number of GPUs is not stated");
  run.job.gpus = *row.n_gpus;
  int per_host = row.gpus_per_node.value_or(std::min(kUsualGpusPerHost, run.job.gpus));
  if (!row.gpus_per_node) note(run, fmt::format("GPUs of a host not stated: {}", per_host));
  int slice_hosts = 1;
  if (run.job.accelerator.architecture == hardware::Architecture::kTpu && per_host > kTpuHostChips &&
      per_host % kTpuHostChips == 0) {
    slice_hosts = per_host / kTpuHostChips;
    per_host = kTpuHostChips;
    note(run, fmt::format("a slice of {} hosts with {} chips, joined by ICI", slice_hosts, per_host));
  }
  const int hosts = std::max(1, run.job.gpus / per_host);
  if (run.job.gpus > per_host && run.job.gpus % per_host != 0) {
    return fail(fmt::format("{} GPUs do not fill hosts of {}", run.job.gpus, per_host));
  }
  TRY_INTO(run.job.cluster, wiring::cluster_from_words(row.accelerator, per_host, hosts, row.intra_link, row.inter_link));
  topology::Host& host = run.job.cluster.hosts.front().host;
  host.nvlink_domain_hosts = std::max(host.nvlink_domain_hosts, slice_hosts);
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
  return fail("the sequence length is not stated");
}

}  // namespace

Result<MappedRun> map_run(const RunFields& row) {
  MappedRun run;
  if (mentions(row.model, {"lora"}) || mentions(row.notes, {"base weights frozen"})) {
    return fail("adapters only (LoRA): training with frozen weights is not modelled");
  }
  if (mentions(row.notes, {"zero++;", "zero++ with", "quantised collectives", "quantized collectives"})) {
    return fail("quantised collectives (ZeRO++) are not modelled");
  }
  if (row.accelerator.empty()) return fail("the accelerator is not stated");
  TRY_INTO(run.job.accelerator, wiring::accelerator_from_words(row.accelerator, row.intra_link, run.job.assumptions));
  if (auto filled = fill_cluster(row, run); !filled) return tl::make_unexpected(filled.error());
  TRY_INTO(run.job.sequence, sequence_of(row, run));
  TRY_INTO(run.job.model, model_of(row, run.job.assumptions));
  fill_software(row, run);
  if (auto filled = fill_degrees(row, run); !filled) return tl::make_unexpected(filled.error());
  fill_sharding(row, run);
  if (auto filled = fill_batch(row, run); !filled) return tl::make_unexpected(filled.error());
  if (auto filled = fill_schedule(row, run); !filled) return tl::make_unexpected(filled.error());
  fill_overlap(row, run);
  return run;
}

}  // namespace chokepoint::validate

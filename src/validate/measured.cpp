// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"
#include "run_words.hpp"

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

using model::FlopConvention;

/// Forward, backward (twice the forward) and, where layers are recomputed, one forward more.
constexpr double kWithRecomputedForward = 4.0 / 3.0;
/// A printed peak within this share of the device's memory means "full".
constexpr double kFullShare = 0.985;
/// Boost clocks reach a little above the data sheet, and sources count FLOPs differently; a digit or a unit is a factor
/// of ten.
constexpr double kMostOfPeak = 1.2;
constexpr double kContradiction = 3;

/// FLOPs of the step as the row's own FLOP figures count them.
double counted_flops(const RunFields& row, const parallel::Job& job, const parallel::Strategy& strategy,
                     FlopsCounted counted) {
  const double tokens = job.global_batch * job.sequence;
  if (const auto factor = flops_per_parameter_and_token(row.notes)) {
    const double parameters = row.params_b ? *row.params_b * 1e9 : model::count_parameters(job.model).total;
    return *factor * parameters * tokens;
  }
  if (counted == FlopsCounted::kHardware) {
    const bool recomputed = strategy.recompute == parallel::Recompute::kFull;
    const bool megatron_formula = !job.model.gated_mlp && job.model.kv_heads == job.model.heads;
    if (recomputed && megatron_formula) {
      return model::step_flops(job.model, job.sequence, job.global_batch, FlopConvention::kHardwareMegatron);
    }
    return model::step_flops(job.model, job.sequence, job.global_batch, FlopConvention::kModelFullAttention) *
           (recomputed ? kWithRecomputedForward : 1.0);
  }
  return model::step_flops(job.model, job.sequence, job.global_batch,
                           counted == FlopsCounted::kModelCausal ? FlopConvention::kModelCausalAttention
                                                                 : FlopConvention::kModelFullAttention);
}

/// Peak over which the row's utilisation is counted: the one its notes print, else the 16-bit data-sheet rate.
double utilisation_peak(const RunFields& row, const parallel::Job& job) {
  for (const std::string_view phrase : {"tflop/s/chip over ", "tflops over ", "mfu vs ", "peak "}) {
    const auto teraflops = number_after(row.notes, phrase);
    if (teraflops && *teraflops > 50) return *teraflops * 1e12;
  }
  const double peak = job.accelerator.peak(hardware::Dtype::kBf16);
  return peak > 0 ? peak : job.accelerator.peak(hardware::Dtype::kFp16);
}

/// "local 940M": parameters of the rank whose figures the row prints.
std::optional<double> rank_parameters(const std::string& notes) {
  const auto number = number_after(notes, "local ");
  if (!number || *number <= 0) return std::nullopt;
  const std::size_t end = notes.find_first_not_of("0123456789.", notes.find("local ") + 6);
  if (end == std::string::npos) return std::nullopt;
  if (notes[end] == 'G' || notes[end] == 'B') return *number * 1e9;
  if (notes[end] == 'M') return *number * 1e6;
  return std::nullopt;
}

}  // namespace

std::string_view name(Figure figure) {
  switch (figure) {
    case Figure::kSeconds: return "seconds";
    case Figure::kTokens: return "tokens/s";
    case Figure::kFlops: return "FLOP/s";
    case Figure::kMfu: return "mfu";
    case Figure::kHfu: return "hfu";
  }
  return "";
}

namespace {

Result<Measured> first_figure(const RunFields& row, const parallel::Job& job, const parallel::Strategy& strategy) {
  if (row.step_time_s) return Measured{*row.step_time_s, Figure::kSeconds};
  const double gpus = job.gpus;
  if (row.tok_s_gpu) return Measured{job.global_batch * job.sequence / (gpus * *row.tok_s_gpu), Figure::kTokens};
  const FlopsCounted counted = flops_counted(row);
  if (row.model_tflops_gpu) {
    const double flops = counted_flops(row, job, strategy, counted);
    return Measured{flops / (gpus * *row.model_tflops_gpu * 1e12), Figure::kFlops};
  }
  if (row.mfu) {
    const FlopsCounted model = counted == FlopsCounted::kHardware ? FlopsCounted::kModel : counted;
    return Measured{counted_flops(row, job, strategy, model) / (gpus * *row.mfu * utilisation_peak(row, job)), Figure::kMfu};
  }
  if (row.hfu) {
    const auto printed = number_after(row.notes, "hw_tflops_gpu=");
    const double rate = printed ? *printed * 1e12 : *row.hfu * utilisation_peak(row, job);
    return Measured{counted_flops(row, job, strategy, FlopsCounted::kHardware) / (gpus * rate), Figure::kHfu};
  }
  return fail("no measured time or rate");
}

/// No run is faster than the arithmetic units it ran on.
Result<bool> within_peak(const parallel::Job& job, const Measured& measured) {
  if (job.frozen_weights) return true;
  const auto& peaks = job.accelerator.peak_flops_per_s;
  double peak = std::max(job.accelerator.peak(hardware::Dtype::kBf16), job.accelerator.peak(hardware::Dtype::kFp16));
  if (hardware::bytes_per_element(job.dtype) < 2) peak = *std::max_element(peaks.begin(), peaks.end());
  const double flops = model::step_flops(job.model, job.sequence, job.global_batch, FlopConvention::kModelCausalAttention);
  const double share = flops / (measured.step_time_s * job.gpus * peak);
  if (peak <= 0 || share <= kMostOfPeak) return true;
  return fail(fmt::format("the measured {} would be {:.1f} times the peak of {}; is it retyped, or in another unit?",
                          name(measured.figure), share, job.accelerator.name));
}

/// A time and a rate in one row are one measurement.
Result<bool> figures_agree(const RunFields& row, const parallel::Job& job) {
  if (!row.step_time_s || !row.tok_s_gpu) return true;
  const double rate = job.global_batch * job.sequence / (job.gpus * *row.step_time_s);
  const double factor = std::max(rate / *row.tok_s_gpu, *row.tok_s_gpu / rate);
  if (factor <= kContradiction) return true;
  return fail(fmt::format("step_time_s ({:g}, {:.4g} tokens/s per GPU) and tok_s_gpu ({:g}) contradict each other by a "
                          "factor of {:.3g}; is one retyped, or in another unit?",
                          *row.step_time_s, rate, *row.tok_s_gpu, factor));
}

}  // namespace

Result<Measured> measured_step(const RunFields& row, const parallel::Job& job, const parallel::Strategy& strategy) {
  TRY_INTO(const Measured measured, first_figure(row, job, strategy));
  if (auto possible = within_peak(job, measured); !possible) return tl::make_unexpected(possible.error());
  if (auto same = figures_agree(row, job); !same) return tl::make_unexpected(same.error());
  return measured;
}

std::optional<MeasuredMemory> measured_memory(const RunFields& row, const parallel::Job& job) {
  if (!row.peak_mem_gib) return std::nullopt;
  MeasuredMemory measured;
  measured.bytes = *row.peak_mem_gib * kGiB;
  if (measured.bytes >= kFullShare * job.accelerator.memory_bytes) return std::nullopt;
  if (mentions(row.notes, {"peak allocated", "max_memory_allocated", "allocated memory"})) {
    measured.kind = MemoryKind::kAllocated;
  } else if (mentions(row.notes, {"nvidia-smi"})) {
    measured.kind = MemoryKind::kDevice;
  }
  measured.rank_parameters = rank_parameters(row.notes);
  return measured;
}

}  // namespace chokepoint::validate

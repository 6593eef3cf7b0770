// SPDX-License-Identifier: Apache-2.0
// Software side of a row: framework, generation, kernels, number formats.
#include "run_job.hpp"
#include "run_words.hpp"

#include <chokepoint/base/text.hpp>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

using compute::AttentionKernel;
using hardware::Architecture;
using hardware::Dtype;
using parallel::Framework;

void note(MappedRun& run, std::string text) { run.job.assumptions.push_back({std::move(text), {}}); }

/// Year in which the generation of the accelerator was mostly in use; only for rows that carry no date at all.
int usual_year(Architecture architecture) {
  switch (architecture) {
    case Architecture::kVolta:
    case Architecture::kTuring: return 2020;
    case Architecture::kAmpere: return 2022;
    case Architecture::kCdna2: return 2023;
    default: return 2025;
  }
}

void fill_dtype(const RunFields& row, MappedRun& run) {
  const std::string text = lower(row.precision);
  if (const auto parsed = hardware::parse_dtype(text)) {
    run.job.dtype = *parsed;
    return;
  }
  if (mentions(text, {"fp4"})) {
    run.job.dtype = Dtype::kFp4;
  } else if (mentions(text, {"fp8"})) {
    run.job.dtype = Dtype::kFp8;
  } else {
    run.job.dtype = run.job.accelerator.peak(Dtype::kBf16) > 0 ? Dtype::kBf16 : Dtype::kFp16;
    note(run, fmt::format("precision {}: {}", text.empty() ? "not stated" : "'" + text + "' not known",
                          hardware::name(run.job.dtype)));
  }
}

/// Fused attention of Transformer Engine (cuDNN) on this generation.
AttentionKernel engine_attention(Architecture architecture) {
  if (architecture == Architecture::kHopper) return AttentionKernel::kFlash3;
  if (architecture == Architecture::kBlackwell) return AttentionKernel::kFlash4;
  return AttentionKernel::kFlash2;
}

/// The kernel a framework of that year takes when nothing is said.
AttentionKernel usual_attention(const RunFields& row, const MappedRun& run) {
  const int year = run.job.year;
  switch (run.job.framework) {
    case Framework::kMegatron:
      if (!is_megatron_core(row.framework, year)) return AttentionKernel::kUnfused;
      return engine_attention(run.job.accelerator.architecture);
    case Framework::kMegatronDeepspeed: return AttentionKernel::kUnfused;  // --use-flash-attn is off by default
    case Framework::kPytorch:
    case Framework::kDeepspeed:
    case Framework::kMaxtext: return year <= 2022 ? AttentionKernel::kUnfused : AttentionKernel::kFlash2;
    default: return AttentionKernel::kFlash2;
  }
}

void fill_attention(const RunFields& row, MappedRun& run) {
  const std::string text = lower(row.attention);
  AttentionKernel& kernel = run.job.attention;
  if (text.empty()) {
    kernel = usual_attention(row, run);
    note(run, fmt::format("attention kernel not stated: {}", compute::name(kernel)));
  } else if (mentions(text, {"unfused", "math", "eager"})) {
    kernel = AttentionKernel::kUnfused;
  } else if (mentions(text, {"triton"})) {
    kernel = AttentionKernel::kTriton;
  } else if (mentions(text, {"flash4"})) {
    kernel = AttentionKernel::kFlash4;
  } else if (mentions(text, {"flash3"})) {
    kernel = AttentionKernel::kFlash3;
  } else if (mentions(text, {"transformerengine", "cudnn"})) {
    kernel = engine_attention(run.job.accelerator.architecture);
  } else if (mentions(text, {"flash1", "xformers", "memory-efficient"})) {
    kernel = AttentionKernel::kFlash1;
  } else if (mentions(text, {"flash2"})) {
    kernel = AttentionKernel::kFlash2;
  } else {  // "flash", "sdpa", "flex": the second generation from 2023 on
    kernel = run.job.year <= 2022 ? AttentionKernel::kFlash1 : AttentionKernel::kFlash2;
    note(run, fmt::format("attention '{}' read as {}", text, compute::name(kernel)));
  }
  run.job.causal = kernel != AttentionKernel::kUnfused;
}

/// torch.compile, XLA or CUDA graphs.
bool is_compiled(const RunFields& row, Framework framework) {
  if (framework == Framework::kMaxtext) return true;
  if (mentions(row.notes, {"no compile", "without compile", "no torch.compile", "compile off"})) return false;
  return mentions(row.notes, {"torch.compile", "inductor", "cudagraph", "cuda graph"});
}

/// What gradients accumulate and reduce in, by the defaults of the frameworks.
bool reduces_in_fp32(const RunFields& row, const MappedRun& run) {
  if (mentions(row.notes, {"accumulated in fp32", "fp32 gradient", "accumulating fp32"})) return true;
  if (mentions(row.notes, {"full bf16 parameters", "pure bf16", "pure-bf16"})) return false;
  // scripts/performance of Megatron-Bridge and NeMo's performance recipes: grad_reduce_in_fp32 = False.
  if (mentions(row.framework, {"megatron-bridge"})) return false;
  switch (run.job.framework) {
    case Framework::kMegatron:
    case Framework::kMegatronDeepspeed: return run.job.dtype != Dtype::kFp16;
    case Framework::kNanotron:
    case Framework::kTorchtitan:
    case Framework::kMaxtext: return true;
    case Framework::kPytorch: return row.shard.empty() || row.shard == "none";  // autocast keeps fp32 weights
    default: return false;
  }
}

/// fp32 master weights and moments; papers of the optimizers in docs/validation.md.
double optimizer_bytes(const RunFields& row) {
  const double master = mentions(row.notes, {"full bf16 parameters"}) ? 0 : 4;
  if (mentions(row.optimizer, {"sgd"})) return master + 4;
  if (mentions(row.optimizer, {"8bit", "8-bit"})) return master + 2;
  if (mentions(row.optimizer, {"lion"})) return master + 4;
  if (mentions(row.optimizer, {"adafactor"})) return master;
  return master > 0 ? master + 8 : 4;
}

}  // namespace

void fill_software(const RunFields& row, MappedRun& run) {
  parallel::Job& job = run.job;
  const auto stated = framework_from_words(row.framework);
  job.framework = stated.value_or(framework_from_words(row.source_id + " " + row.source).value_or(Framework::kPytorch));
  job.framework_assumed = !stated;
  if (!stated) {
    note(run, fmt::format("framework {}: {}", row.framework.empty() ? "not stated" : "'" + row.framework + "' not known",
                          parallel::name(job.framework)));
  }
  const auto year = year_from_words(row);
  job.year = year.value_or(usual_year(job.accelerator.architecture));
  if (!year) note(run, fmt::format("year not stated: {}", job.year));
  fill_dtype(row, run);
  fill_attention(row, run);
  job.token_once_per_host = mentions(row.notes, {"deepep", "hybridep"}) && !mentions(row.notes, {"alltoall dispatcher", "no deepep"});
  if (mentions(row.framework, {"automodel"})) job.token_once_per_host = true;  // its experts are dispatched by DeepEP
  job.compiled = is_compiled(row, job.framework);
  job.fp8_rowwise = mentions(row.notes, {"rowwise", "row-wise"});
  job.chunked_loss = mentions(row.notes, {"chunkedce", "chunked cross", "chunked loss", "liger", "fused linear cross"});
  // Megatron-Bridge recipes: cross_entropy_loss_fusion with the implementation of Transformer Engine.
  job.fused_loss = mentions(row.notes, {"cross-entropy fusion", "fused cross"}) || mentions(row.framework, {"megatron-bridge"});
  job.fused_operators = mentions(row.notes, {"liger"});
  // Versions of nanotron whose pipeline stalls the host at each transfer say so beside the run.
  job.blocking_sends = mentions(row.notes, {"after_pp_fix=false"});
  job.fp32_gradients = reduces_in_fp32(row, run);
  job.optimizer_bytes_per_parameter = optimizer_bytes(row);
  const bool megatron = job.framework == Framework::kMegatron || job.framework == Framework::kMegatronDeepspeed;
  job.padded_vocab = megatron ? 0 : job.model.vocab;
  if (job.framework == Framework::kMegatronDeepspeed && job.year == 2022) {
    note(run, "launches block (CUDA_LAUNCH_BLOCKING=1), as in the launch scripts of Megatron-DeepSpeed's pipelines of 2022");
  }
}

}  // namespace chokepoint::validate

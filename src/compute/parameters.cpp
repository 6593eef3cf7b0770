// SPDX-License-Identifier: Apache-2.0
#include "attention_constants.hpp"
#include "generations.hpp"
#include "launch_constants.hpp"

#include <chokepoint/compute/kernels.hpp>
#include <string>

namespace chokepoint::compute {
namespace {

constexpr const char* kFitSource = "fit on public GEMM tables, all generations together (docs/models/compute.md)";
constexpr const char* kFlash2Source = "FlashAttention-2, arXiv:2307.08691, figures 5 and 6 (A100)";
constexpr const char* kFlash3Source = "FlashAttention-3, arXiv:2407.08608, figures 5 and 6 (H100)";
constexpr const char* kFlash4Source =
    "cuDNN attention rows of the SimuMax B200 table; FlashAttention-4 reports 0.71 in bursts";
constexpr const char* kTraceSource = "distances between launches in public Kineto traces (docs/models/compute.md)";

void add_generation(std::vector<Parameter>& out, const Generation& gen) {
  const std::string prefix = "compute." + std::string(hardware::name(gen.architecture)) + ".";
  out.push_back({prefix + "tile_fraction", gen.tile_fraction, "", gen.source});
  out.push_back({prefix + "tile_overhead", gen.tile_overhead_s, "s", gen.source});
  out.push_back({prefix + "sustained_fraction", gen.sustained_fraction, "", gen.source});
  out.push_back({prefix + "memory_fraction", gen.memory_fraction, "", gen.source});
  out.push_back({prefix + "attention_mma_fraction", gen.attention_mma_fraction, "", gen.source});
}

}  // namespace

std::vector<Parameter> parameters() {
  std::vector<Parameter> out{
      {"compute.kernel_tail", kKernelTail_s, "s", kFitSource},
      {"compute.tile_traffic", kTrafficElements, "elements", kFitSource},
      {"compute.last_wave_weight", kLastWaveWeight, "", kFitSource},
      {"compute.epilogue_exposed", kEpilogueExposed, "", kFitSource},
      {"compute.group_launch", kGroupLaunch_s, "s", "grouped rows of the SimuMax B200 table with 154 rows a group"},
      {"compute.power_exponent", kPowerExponent, "", "A100-SXM against A100-PCIe, GH200 against H200 (GEMM tables)"},
      {"compute.fp8_over_bf16", kFp8OverBf16, "", "sustained H200: 0.651 of the fp8, 0.716 of the bf16 peak (stas MSMF)"},
      {"compute.fp4_over_bf16", kFp4OverBf16, "", "no sustained table: continues the step from bf16 to fp8"},
      {"attention.softmax_beta", kSoftmaxBeta, "s/FLOP", kFlash2Source},
      {"attention.flash2_backward", kFlash2Backward, "", kFlash2Source},
      {"attention.flash1_forward", kFlash1Forward, "", kFlash2Source},
      {"attention.flash1_backward", kFlash1Backward, "", kFlash2Source},
      {"attention.triton_forward", kTritonForward, "", kFlash2Source},
      {"attention.triton_backward", kTritonBackward, "", kFlash2Source},
      {"attention.flash3_forward", kFlash3Forward, "", kFlash3Source},
      {"attention.flash3_backward", kFlash3Backward, "", kFlash3Source},
      {"attention.flash4_forward", kFlash4Forward, "", kFlash4Source},
      {"attention.flash4_backward", kFlash4Backward, "", kFlash4Source},
      {"attention.wide_head_loss_forward", kWideHeadLossForward, "1/element", "SimuMax attention rows, 192/128 heads"},
      {"attention.wide_head_loss_backward", kWideHeadLossBackward, "1/element", "SimuMax attention rows, 192/128 heads"},
      {"attention.block_overhead_keys", kBlockOverheadKeys, "keys", kFlash2Source},
      {"attention.power_headroom", kPowerHeadroom, "", kFlash4Source},
      {"attention.wide_head_floor", kWideHeadFloor, "", "SimuMax attention rows, 192/128 heads"},
      {"attention.unfused_forward_bytes", kUnfusedForwardBytes, "B/score", "counted from the operators"},
      {"attention.unfused_backward_bytes", kUnfusedBackwardBytes, "B/score", "counted from the operators"},
      {"launch.eager_2021", kEagerLaunch_s, "s", kTraceSource},
      {"launch.yearly_factor", kYearlyFactor, "", kTraceSource},
      {"launch.compiled_over_eager", kCompiledOverEager, "", kTraceSource},
      {"launch.graph", kGraphLaunch_s, "s", "NVIDIA, Getting Started with CUDA Graphs"},
      {"launch.primitive_forward_kernels", kPrimitiveForwardKernels, "", kTraceSource},
      {"launch.fused_forward_kernels", kFusedForwardKernels, "", "counted from the operators"},
      {"launch.compiled_forward_kernels", kCompiledForwardKernels, "", "counted from the operators"},
  };
  for (const Generation& gen : generations()) add_generation(out, gen);
  return out;
}

}  // namespace chokepoint::compute

// SPDX-License-Identifier: Apache-2.0
#include "generations.hpp"

#include <string>

namespace chokepoint::compute {
namespace {

constexpr const char* kFitSource = "fit on public GEMM tables, all generations together (docs/models/compute.md)";
constexpr const char* kFlash2Source = "FlashAttention-2, arXiv:2307.08691, figures 5 and 6 (A100)";
constexpr const char* kFlash3Source = "FlashAttention-3, arXiv:2407.08608, figures 5 and 6 (H100)";
constexpr const char* kFlash4Source =
    "cuDNN attention rows of the SimuMax B200 table; FlashAttention-4 reports 0.71 in bursts";
constexpr const char* kWideHeadSource = "SimuMax attention rows, 192/128 heads";
constexpr const char* kTraceSource = "distances between launches in public Kineto traces (docs/models/compute.md)";

constexpr ParameterKind kFitted = ParameterKind::kFitted;
constexpr ParameterKind kPublished = ParameterKind::kPublished;
constexpr ParameterKind kCounted = ParameterKind::kCounted;
constexpr ParameterKind kEstimate = ParameterKind::kEstimate;

/// Collects references; `add` reads like a row of the table it prints.
struct List {
  std::vector<ParameterRef> refs;
  void add(std::string name, double& value, const char* unit, const char* source, ParameterKind kind, double log_sigma) {
    refs.push_back({{std::move(name), value, unit, source, kind, log_sigma}, &value});
  }
};

void add_gemm(List& list, GemmConstants& c) {
  list.add("compute.kernel_tail", c.kernel_tail_s, "s", kFitSource, kFitted, 0.3);
  list.add("compute.tile_traffic", c.traffic_elements, "elements", kFitSource, kFitted, 0.2);
  list.add("compute.last_wave_weight", c.last_wave_weight, "", kFitSource, kFitted, 0.2);
  list.add("compute.epilogue_exposed", c.epilogue_exposed, "", kFitSource, kFitted, 0.3);
  list.add("compute.group_launch", c.group_launch_s, "s", "grouped rows of the SimuMax B200 table with 154 rows a group",
           kFitted, 0.4);
  list.add("compute.power_exponent", c.power_exponent, "", "A100-SXM against A100-PCIe, GH200 against H200 (GEMM tables)",
           kFitted, 0.3);
  list.add("compute.fp8_over_bf16", c.fp8_over_bf16, "",
           "sustained H200: 0.651 of the fp8, 0.716 of the bf16 peak (stas MSMF)", kPublished, 0.05);
  list.add("compute.fp4_over_bf16", c.fp4_over_bf16, "", "no sustained table: continues the step from bf16 to fp8",
           kEstimate, 0.1);
}

void add_attention(List& list, AttentionConstants& c) {
  list.add("attention.softmax_beta", c.softmax_beta, "s/FLOP", kFlash2Source, kPublished, 0.1);
  list.add("attention.flash2_backward", c.flash2_backward, "", kFlash2Source, kPublished, 0.1);
  list.add("attention.flash1_forward", c.flash1_forward, "", kFlash2Source, kPublished, 0.1);
  list.add("attention.flash1_backward", c.flash1_backward, "", kFlash2Source, kPublished, 0.1);
  list.add("attention.triton_forward", c.triton_forward, "", kFlash2Source, kPublished, 0.1);
  list.add("attention.triton_backward", c.triton_backward, "", kFlash2Source, kPublished, 0.1);
  list.add("attention.flash3_forward", c.flash3_forward, "", kFlash3Source, kPublished, 0.1);
  list.add("attention.flash3_backward", c.flash3_backward, "", kFlash3Source, kPublished, 0.1);
  list.add("attention.flash4_forward", c.flash4_forward, "", kFlash4Source, kFitted, 0.15);
  list.add("attention.flash4_backward", c.flash4_backward, "", kFlash4Source, kFitted, 0.15);
  list.add("attention.wide_head_loss_forward", c.wide_head_loss_forward, "1/element", kWideHeadSource, kFitted, 0.3);
  list.add("attention.wide_head_loss_backward", c.wide_head_loss_backward, "1/element", kWideHeadSource, kFitted, 0.3);
  list.add("attention.wide_head_floor", c.wide_head_floor, "", kWideHeadSource, kEstimate, 0.1);
  list.add("attention.block_overhead_keys", c.block_overhead_keys, "keys", kFlash2Source, kPublished, 0.3);
  list.add("attention.power_headroom", c.power_headroom, "", kFlash4Source, kFitted, 0.1);
  list.add("attention.unfused_forward_bytes", c.unfused_forward_bytes, "B/score", "counted from the operators", kCounted, 0);
  list.add("attention.unfused_backward_bytes", c.unfused_backward_bytes, "B/score", "counted from the operators", kCounted, 0);
}

void add_launch(List& list, LaunchConstants& c) {
  list.add("launch.eager_2021", c.eager_2021_s, "s", kTraceSource, kPublished, 0.4);
  list.add("launch.yearly_factor", c.yearly_factor, "", kTraceSource, kPublished, 0.1);
  list.add("launch.compiled_over_eager", c.compiled_over_eager, "", kTraceSource, kPublished, 0.3);
  list.add("launch.graph", c.graph_s, "s", "NVIDIA, Getting Started with CUDA Graphs", kPublished, 0.3);
  list.add("launch.primitive_forward_kernels", c.primitive_forward_kernels, "", kTraceSource, kCounted, 0);
  list.add("launch.fused_forward_kernels", c.fused_forward_kernels, "", "counted from the operators", kCounted, 0);
  list.add("launch.compiled_forward_kernels", c.compiled_forward_kernels, "", "counted from the operators", kCounted, 0);
}

void add_generation(List& list, hardware::Architecture architecture, GenerationConstants& c) {
  const std::string prefix = "compute." + std::string(hardware::name(architecture)) + ".";
  const char* source = generation_source(architecture);
  list.add(prefix + "tile_fraction", c.tile_fraction, "", source, kFitted, 0.05);
  list.add(prefix + "tile_overhead", c.tile_overhead_s, "s", source, kFitted, 0.3);
  list.add(prefix + "sustained_fraction", c.sustained_fraction, "", source, kFitted, 0.1);
  list.add(prefix + "memory_fraction", c.memory_fraction, "", source, kPublished, 0.05);
  list.add(prefix + "attention_mma_fraction", c.attention_mma_fraction, "", source, kPublished, 0.1);
}

}  // namespace

std::vector<ParameterRef> refs(Constants& constants) {
  List list;
  add_gemm(list, constants.gemm);
  add_attention(list, constants.attention);
  add_launch(list, constants.launch);
  for (std::size_t i = 0; i < constants.generations.size(); ++i)
    add_generation(list, static_cast<hardware::Architecture>(i), constants.generations[i]);
  return std::move(list.refs);
}

std::vector<Parameter> parameters() {
  Constants constants;
  std::vector<Parameter> out;
  for (ParameterRef& ref : refs(constants)) out.push_back(std::move(ref.info));
  return out;
}

}  // namespace chokepoint::compute

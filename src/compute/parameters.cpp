// SPDX-License-Identifier: Apache-2.0
#include "generations.hpp"

#include <string>

namespace chokepoint::compute {
namespace {

constexpr const char* kFitSource = "fit on public GEMM tables, all generations together (docs/models/compute.md)";
constexpr const char* kGroupSource = "grouped rows of the SimuMax tables, A100-PCIe and B200 (multi-stream cuBLAS)";
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
  list.add("compute.memory_exposed", c.memory_exposed, "", kFitSource, kFitted, 0.4);
  list.add("compute.memory_power", c.memory_power, "", kFitSource, kFitted, 0.3);
  list.add("compute.power_exponent", c.power_exponent, "", "A100-SXM against A100-PCIe, GH200 against H200 (GEMM tables)",
           kFitted, 0.3);
  list.add("compute.group_gap", c.group_gap_s, "s", kGroupSource, kFitted, 0.3);
  list.add("compute.group_launch", c.group_launch_s, "s", kGroupSource, kFitted, 0.4);
  list.add("compute.fp8_over_bf16", c.fp8_over_bf16, "",
           "sustained H200 0.651 against 0.716 of the peak, bursts of H100, H200, GH200 0.87-0.95 (stas)", kPublished, 0.05);
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
  list.add("attention.flash4_wide_head_loss", c.flash4_wide_head_loss, "1/element", kWideHeadSource, kFitted, 0.3);
  list.add("attention.wide_head_floor", c.wide_head_floor, "", kWideHeadSource, kEstimate, 0.1);
  list.add("attention.block_overhead_keys", c.block_overhead_keys, "keys", kFlash2Source, kPublished, 0.3);
  list.add("attention.causal_imbalance", c.causal_imbalance, "waves",
           "A100-PCIe attention rows from 4 heads up: longest causal block against the mean", kPublished, 0.2);
  list.add("attention.power_headroom", c.power_headroom, "", kFlash4Source, kFitted, 0.1);
  list.add("attention.unaligned_vector_share", c.unaligned_vector_share, "",
           "BigScience's A100 layouts with heads of 108, 150 and 450 elements against 144, 216 and 224 (in sample)", kFitted, 0.2);
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

struct FamilyOrigins {
  Origin tile_fraction, tile_overhead, memory, attention;
};

FamilyOrigins origins(Family family) {
  constexpr Origin kPeak{"the k-loop reaches the data sheet; operand traffic and tiles explain the rest of the tables", kPublished};
  constexpr Origin kBabel{"BabelStream triad against the data sheet", kPublished};
  switch (family) {
    case Family::kWarpLevel:
      return {kPeak, {"fit on the A100 tables", kFitted}, kBabel, {"A100: flash 2 at 0.69 of peak, with softmax_beta", kPublished}};
    case Family::kAsynchronous:
      return {kPeak, {"fit on the GH200 table", kFitted}, kBabel,
              {"warp-level instructions on H100: flash 2 at 0.35-0.37 of peak (arXiv:2407.08608)", kPublished}};
    case Family::kTensorMemory:
      return {{"B200 bursts, 0.78-0.79 of peak (stas MAMF), 0.65 (SimuMax)", kFitted}, {"as Hopper", kEstimate}, {"as Hopper and Ampere", kEstimate},
              {"continues from Ampere and Hopper", kEstimate}};
    case Family::kMatrixCore:
      return {{"MI300X, MI325X, MI355X bursts (stas MAMF)", kFitted}, {"between Ampere and Hopper", kEstimate},
              {"BabelStream: MI250X 1.3 of 1.6 TB/s, MI300X 4.0-4.3 of 5.3", kPublished}, {"between Ampere and Hopper", kEstimate}};
    case Family::kSystolic:
      return {{"Gaudi 2 0.97-0.99 of peak (stas MAMF)", kPublished}, {"few large units: hardly any", kEstimate},
              {"unknown, as GPUs", kEstimate}, {"unknown, between CDNA and the data sheet", kEstimate}};
  }
  return {kPeak, kPeak, kBabel, kPeak};
}

void add_family(List& list, Family family, FamilyConstants& c) {
  const std::string prefix = "compute." + std::string(name(family)) + ".";
  const FamilyOrigins from = origins(family);
  list.add(prefix + "tile_fraction", c.tile_fraction, "", from.tile_fraction.source, from.tile_fraction.kind, 0.05);
  list.add(prefix + "tile_overhead", c.tile_overhead_s, "s", from.tile_overhead.source, from.tile_overhead.kind, 0.4);
  list.add(prefix + "memory_fraction", c.memory_fraction, "", from.memory.source, from.memory.kind, 0.05);
  list.add(prefix + "attention_fraction", c.attention_fraction, "", from.attention.source, from.attention.kind, 0.1);
}

void add_sustained(List& list, hardware::Architecture architecture, SustainedConstants& c) {
  const Origin from = sustained_origin(architecture);
  list.add("compute." + std::string(hardware::name(architecture)) + ".sustained_fraction", c.fraction, "", from.source,
           from.kind, 0.12);
}

}  // namespace

std::vector<ParameterRef> refs(Constants& constants) {
  List list;
  add_gemm(list, constants.gemm);
  add_attention(list, constants.attention);
  add_launch(list, constants.launch);
  for (std::size_t i = 0; i < constants.families.size(); ++i)
    add_family(list, static_cast<Family>(i), constants.families[i]);
  for (std::size_t i = 0; i < constants.sustained.size(); ++i)
    add_sustained(list, static_cast<hardware::Architecture>(i), constants.sustained[i]);
  return std::move(list.refs);
}

std::vector<Parameter> parameters() {
  Constants constants;
  std::vector<Parameter> out;
  for (ParameterRef& ref : refs(constants)) out.push_back(std::move(ref.info));
  return out;
}

}  // namespace chokepoint::compute

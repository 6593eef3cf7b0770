// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every constant of the kernel and launch models, as one value that fits, leave-out runs and calibration profiles may
// vary. refs() names each of them with unit, source, kind and how far it may move. Fitted on published microbenchmarks
// (docs/models/compute.md), never on training steps.
#include <array>
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <vector>

namespace chokepoint::compute {

/// What a kernel's speed owes to the generation of the accelerator, beyond its data sheet.
struct GenerationConstants {
  double tile_fraction = 1;           ///< of the peak inside the k-loop of a large tile, clocks not limited by power
  double tile_overhead_s = 0;         ///< fill, drain and epilogue of one tile
  double sustained_fraction = 1;      ///< of the bf16 peak at `reference_w_per_flops`
  double reference_w_per_flops = 0;   ///< board power over dense 16-bit peak of the part that fraction was seen on
  double memory_fraction = 1;         ///< of the data-sheet memory bandwidth that streaming kernels reach
  double attention_mma_fraction = 1;  ///< of the peak that warp-level matrix instructions reach (attention before wgmma)
  bool operator==(const GenerationConstants&) const = default;
};
using Generations = std::array<GenerationConstants, hardware::kArchitectureCount>;
Generations default_generations();

struct GemmConstants {
  double kernel_tail_s = 3e-6;     ///< start and drain of one dependent kernel on its stream
  double traffic_elements = 12;    ///< loss of a tile by operand traffic: 1 + c (1/tile_m + 1/tile_n)
  double last_wave_weight = 0.6;   ///< share of an idle last wave that is really lost
  double epilogue_exposed = 0.6;   ///< share of the traffic of an fp32 C that the k-loops do not hide
  double group_launch_s = 7e-6;    ///< least distance of the products of a group over all streams
  double power_exponent = 0.75;    ///< sustained rate against board power per peak FLOP/s
  double fp8_over_bf16 = 0.91;     ///< sustained fraction of fp8 against bf16
  double fp4_over_bf16 = 0.85;
  bool operator==(const GemmConstants&) const = default;
};

/// Shares of the dense peak at head_dim 128 and long sequences, from the papers of the kernels.
struct AttentionConstants {
  /// Per FLOP/s of one unit's peak. A100 (2.89 TFLOP/s per SM): flash 2 forward 0.69 to 0.72 of peak.
  double softmax_beta = 0.0944e-12;
  double flash2_backward = 0.87;  ///< against flash 2 forward on the same part, as the next four
  double flash1_forward = 0.52;
  double flash1_backward = 0.45;
  double triton_forward = 0.65;
  double triton_backward = 0.42;
  double flash3_forward = 0.67;   ///< of the peak of H100-SXM: 640-660 and 540-560 of 989 TFLOP/s
  double flash3_backward = 0.57;
  double flash4_forward = 0.60;   ///< of the peak of B200, once all units are busy
  double flash4_backward = 0.48;
  double wide_head_loss_forward = 0.003;    ///< of the share per element of head_dim above 128
  double wide_head_loss_backward = 0.0065;
  double wide_head_floor = 0.75;
  double block_overhead_keys = 192;  ///< prologue and epilogue of a block, in keys it could have passed
  double power_headroom = 1.2;  ///< attention draws less power than products: how far above their sustained share it runs
  double unfused_forward_bytes = 9;    ///< scale-mask-softmax reads and writes (4), dropout and its mask (5)
  double unfused_backward_bytes = 11;  ///< dropout (5), softmax reads two and writes one (6)
  bool operator==(const AttentionConstants&) const = default;
};

/// Host costs of launches. The profiler itself slows the host: 0.6 of the profiled distance counts as undisturbed.
struct LaunchConstants {
  double eager_2021_s = 25e-6;         ///< 2021: median 37-60 us between launches, profiled, times 0.6
  double yearly_factor = 0.78;         ///< host CPU and framework, until 2025
  double compiled_over_eager = 0.4;    ///< generated code skips the dispatcher and most of Python
  double graph_s = 0.5e-6;             ///< from node to node of a captured graph, without the host
  double primitive_forward_kernels = 43;  ///< per decoder layer
  double fused_forward_kernels = 17;
  double compiled_forward_kernels = 9;
  bool operator==(const LaunchConstants&) const = default;
};

struct Constants {
  Generations generations = default_generations();
  GemmConstants gemm;
  AttentionConstants attention;
  LaunchConstants launch;
  bool operator==(const Constants&) const = default;
};

/// Every constant with its name, source and kind, and the place to write it. Valid as long as `constants`.
std::vector<ParameterRef> refs(Constants& constants);
/// The same for the default values.
std::vector<Parameter> parameters();

}  // namespace chokepoint::compute

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every constant of the kernel and launch models, as one value that fits, leave-out runs and calibration profiles may
// vary. refs() names each of them with unit, source, kind and how far it may move. Fitted on published microbenchmarks
// (docs/models/compute.md), never on training steps.
#include <array>
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <string_view>
#include <vector>

namespace chokepoint::compute {

/// Parts whose matrix units are fed alike share what is not measured for each of them: warp-level instructions (Volta to
/// Ada), asynchronous ones (Hopper), tensor memory (Blackwell), AMD's matrix cores, systolic arrays (Gaudi, TPU).
enum class Family { kWarpLevel, kAsynchronous, kTensorMemory, kMatrixCore, kSystolic };
inline constexpr int kFamilyCount = 5;
std::string_view name(Family family);
Family family_of(hardware::Architecture architecture);

struct FamilyConstants {
  double tile_fraction = 1;       ///< of the peak inside the k-loop of a large tile, before its operand traffic
  double tile_overhead_s = 0;     ///< fill, drain and epilogue of one tile
  double memory_fraction = 1;     ///< of the data-sheet memory bandwidth that streaming kernels reach
  double attention_fraction = 1;  ///< of the peak that attention kernels on warp-level instructions can feed
  bool operator==(const FamilyConstants&) const = default;
};
using Families = std::array<FamilyConstants, kFamilyCount>;
Families default_families();

/// Energy: the share of the bf16 peak that the board sustains at `reference_w_per_flops`, board power over dense 16-bit
/// peak of the part it was seen on (a data-sheet figure). 0: not limited by power.
struct SustainedConstants {
  double fraction = 1;
  double reference_w_per_flops = 0;
  bool operator==(const SustainedConstants&) const = default;
};
using Sustained = std::array<SustainedConstants, hardware::kArchitectureCount>;
Sustained default_sustained();

struct GemmConstants {
  double kernel_tail_s = 3e-6;     ///< start and drain of one dependent kernel on its stream
  double traffic_elements = 10.5;  ///< loss of a tile by operand traffic: 1 + c (1/tile_m + 1/tile_n)
  double last_wave_weight = 0.73;  ///< share of an idle last wave that is really lost
  double memory_exposed = 0.25;    ///< share of the time of the operands' bytes that the k-loops do not hide
  double memory_power = 0.4;       ///< share of the power limit that memory at full bandwidth takes
  double power_exponent = 0.45;    ///< sustained rate against board power per peak FLOP/s
  double group_gap_s = 3.4e-6;     ///< per product of a group run in several streams
  double group_launch_s = 9e-6;    ///< least distance of such products: one library call from the host each
  double fp8_over_bf16 = 0.93;     ///< share of the peak reached by fp8 against bf16
  double fp4_over_bf16 = 0.87;
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
  double flash4_backward = 0.46;
  double wide_head_loss_forward = 0.003;    ///< of the share per element of head_dim above 128
  double wide_head_loss_backward = 0.0065;
  double flash4_wide_head_loss = 0.009;     ///< of its power limit: wide heads feed more operands per FLOP
  double wide_head_floor = 0.7;
  double block_overhead_keys = 192;  ///< prologue and epilogue of a block, in keys it could have passed
  double causal_imbalance = 1.2;  ///< waves lost forward because causal blocks differ in length; half of it backward
  double power_headroom = 1.1;    ///< attention draws less power: how far above the sustained share of products it runs
  double unaligned_vector_share = 0.5;  ///< of the fp32 peak without matrix units: unfused products of heads off 16 bytes
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
  Families families = default_families();
  Sustained sustained = default_sustained();
  GemmConstants gemm;
  AttentionConstants attention;
  LaunchConstants launch;
  bool operator==(const Constants&) const = default;
};

/// The same constants for a generation that nobody measured: its energy per FLOP from the generations that were (Ampere,
/// Hopper, Blackwell), and its family's tiles from the other families unless another generation shares them.
Constants as_if_unmeasured(Constants constants, hardware::Architecture architecture);
/// Whether products of this generation were measured over shapes; else its constants follow bursts and its neighbours.
bool has_product_table(hardware::Architecture architecture);

/// Every constant with its name, source and kind, and the place to write it. Valid as long as `constants`.
std::vector<ParameterRef> refs(Constants& constants);
/// The same for the default values.
std::vector<Parameter> parameters();

}  // namespace chokepoint::compute

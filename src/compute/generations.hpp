// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel's speed owes to the generation of the accelerator, beyond its data sheet. The fitted values come from
// published GEMM tables; the fit, its error and the generations left out of it are in docs/models/compute.md.
#include <array>
#include <chokepoint/hardware/catalogue.hpp>
#include <cstddef>

namespace chokepoint::compute {

struct Generation {
  hardware::Architecture architecture;
  double tile_fraction;           ///< of the peak inside the k-loop of a large tile, clocks not limited by power
  double tile_overhead_s;         ///< fill, drain and epilogue of one tile
  double sustained_fraction;      ///< of the bf16 peak at `reference_w_per_flops`
  double reference_w_per_flops;   ///< board power over dense 16-bit peak of the part that fraction was seen on
  double memory_fraction;         ///< of the data-sheet memory bandwidth that streaming kernels reach
  double attention_mma_fraction;  ///< of the peak that warp-level matrix instructions reach (attention before wgmma)
  const char* source;
};

const Generation& generation(hardware::Architecture architecture);
const std::array<Generation, hardware::kArchitectureCount>& generations();

// Shared by every generation.
inline constexpr double kKernelTail_s = 3e-6;       ///< start and drain of one dependent kernel on its stream
inline constexpr double kTrafficElements = 12;      ///< loss of a tile by operand traffic: 1 + c (1/tile_m + 1/tile_n)
inline constexpr double kLastWaveWeight = 0.6;      ///< share of an idle last wave that is really lost
inline constexpr double kEpilogueExposed = 0.6;     ///< share of the traffic of an fp32 C that the k-loops do not hide
inline constexpr double kGroupLaunch_s = 7e-6;      ///< least distance of the products of a group over all streams
inline constexpr double kPowerExponent = 0.75;      ///< sustained rate against board power per peak FLOP/s
inline constexpr double kFp8OverBf16 = 0.91;        ///< sustained fraction of fp8 against bf16
inline constexpr double kFp4OverBf16 = 0.85;

}  // namespace chokepoint::compute

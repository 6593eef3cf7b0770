// SPDX-License-Identifier: Apache-2.0
#include "generations.hpp"

#include <cmath>

namespace chokepoint::compute {

using hardware::Architecture;

std::string_view name(Family family) {
  switch (family) {
    case Family::kWarpLevel: return "warp-level";
    case Family::kAsynchronous: return "asynchronous";
    case Family::kTensorMemory: return "tensor-memory";
    case Family::kMatrixCore: return "matrix-core";
    case Family::kSystolic: return "systolic";
  }
  return "unknown";
}

Family family_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::kVolta:
    case Architecture::kTuring:
    case Architecture::kAmpere:
    case Architecture::kAda: return Family::kWarpLevel;
    case Architecture::kHopper: return Family::kAsynchronous;
    case Architecture::kBlackwell: return Family::kTensorMemory;
    case Architecture::kCdna2:
    case Architecture::kCdna3:
    case Architecture::kCdna4: return Family::kMatrixCore;
    case Architecture::kGaudi:
    case Architecture::kTpu: return Family::kSystolic;
  }
  return Family::kWarpLevel;
}

Families default_families() {
  Families out;
  const auto set = [&out](Family family, const FamilyConstants& values) { out[static_cast<std::size_t>(family)] = values; };
  set(Family::kWarpLevel, {1.0, 4.0e-6, 0.88, 0.85});
  set(Family::kAsynchronous, {1.0, 0.75e-6, 0.90, 0.53});
  set(Family::kTensorMemory, {0.92, 0.75e-6, 0.88, 0.30});
  set(Family::kMatrixCore, {0.66, 2.0e-6, 0.80, 0.45});
  set(Family::kSystolic, {0.97, 0.05e-6, 0.87, 0.65});
  return out;
}

// Board power over dense 16-bit peak, from data sheets: A100-SXM 400 W / 312 TFLOP/s, H200-SXM 700 / 989,
// B200 1000 / 2250, V100-SXM2 300 / 125, T4 70 / 65, L40S 350 / 362, MI250X 560 / 383, MI300X 750 / 1307,
// MI355X 1400 / 2300, Gaudi 3 900 / 1835.
Sustained default_sustained() {
  Sustained out;
  const auto set = [&out](Architecture part, double fraction, double density) {
    out[static_cast<std::size_t>(part)] = {fraction, density};
  };
  set(Architecture::kVolta, 0.64, 2.40e-12);
  set(Architecture::kTuring, 0.45, 1.08e-12);
  set(Architecture::kAmpere, 0.86, 1.282e-12);
  set(Architecture::kAda, 0.62, 0.967e-12);
  set(Architecture::kHopper, 0.76, 0.708e-12);
  set(Architecture::kBlackwell, 0.505, 0.444e-12);
  set(Architecture::kCdna2, 0.53, 1.462e-12);
  set(Architecture::kCdna3, 0.50, 0.574e-12);
  set(Architecture::kCdna4, 0.52, 0.609e-12);
  set(Architecture::kGaudi, 0.70, 0.490e-12);
  set(Architecture::kTpu, 0.85, 0);
  return out;
}

Constants as_if_unmeasured(Constants constants, Architecture architecture) {
  constexpr std::array<Architecture, 3> kMeasured{Architecture::kAmpere, Architecture::kHopper, Architecture::kBlackwell};
  const auto sustained = [&](Architecture a) -> SustainedConstants& { return constants.sustained[static_cast<std::size_t>(a)]; };
  const Family family = family_of(architecture);
  bool shared = family == Family::kMatrixCore || family == Family::kSystolic;  // each has several generations
  double tile = 0, log_overhead = 0, families = 0, log_energy = 0, generations = 0;
  for (const Architecture other : kMeasured) {
    if (other == architecture) continue;
    shared = shared || family_of(other) == family;
    const FamilyConstants& values = constants.families[static_cast<std::size_t>(family_of(other))];
    tile += values.tile_fraction;
    log_overhead += std::log(values.tile_overhead_s);
    families += 1;
    const SustainedConstants& seen = sustained(other);
    log_energy += std::log(seen.fraction / std::pow(seen.reference_w_per_flops, constants.gemm.power_exponent));
    generations += 1;
  }
  if (!shared) {
    FamilyConstants& own = constants.families[static_cast<std::size_t>(family)];
    own.tile_fraction = tile / families;
    own.tile_overhead_s = std::exp(log_overhead / families);
  }
  SustainedConstants& own = sustained(architecture);
  if (own.reference_w_per_flops > 0)
    own.fraction = std::exp(log_energy / generations) * std::pow(own.reference_w_per_flops, constants.gemm.power_exponent);
  return constants;
}

Origin sustained_origin(Architecture architecture) {
  constexpr ParameterKind kEstimate = ParameterKind::kEstimate;
  constexpr ParameterKind kFitted = ParameterKind::kFitted;
  switch (architecture) {
    case Architecture::kVolta:
      return {"no table: cuBLAS bursts 83-110 of 125 TFLOP/s (arXiv:1803.04014, arXiv:1811.08309), lowered to what "
              "300 W sustain in published V100 steps", kEstimate};
    case Architecture::kTuring:
      return {"no table: T4 cuBLAS about 25-30 of 65 TFLOP/s at 70 W (arXiv:1903.07486)", kEstimate};
    case Architecture::kAmpere: return {"fit on the A100-SXM and A100-PCIe tables (nn.Linear, SimuMax)", kFitted};
    case Architecture::kAda: return {"no table: between Ampere and Hopper; L40S limited by 350 W", kEstimate};
    case Architecture::kHopper:
      return {"fit on the GH200 table (nn.Linear, 900 W) and H200 at 700 W, 708.5 TFLOP/s (stas MSMF)", kFitted};
    case Architecture::kBlackwell:
      return {"fit on the B200 table of SimuMax, 0.485; stas MSMF has 0.647 on the same part, which the energy of Hopper's "
              "process (0.63) explains: boards differ", kFitted};
    case Architecture::kCdna2:
      return {"no table: rocBLAS on one GCD about 0.6-0.7 of peak in bursts, lowered as H200 sustains less than it bursts",
              kEstimate};
    case Architecture::kCdna3: return {"MI300X 0.51-0.58, MI325X 0.60 of peak in bursts (stas MAMF)", kEstimate};
    case Architecture::kCdna4: return {"MI355X 0.63 of peak in a burst (stas MAMF)", kEstimate};
    case Architecture::kGaudi:
      return {"energy per FLOP as Hopper, same class of process; Gaudi 3 reaches 0.47-0.74 (stas MAMF)", kEstimate};
    case Architecture::kTpu: return {"no table: XLA-compiled products near the data sheet; no power figure", kEstimate};
  }
  return {"", kEstimate};
}

bool has_product_table(hardware::Architecture architecture) {
  using hardware::Architecture;
  // The others are known by single bursts at best.
  return architecture == Architecture::kAmpere || architecture == Architecture::kHopper || architecture == Architecture::kBlackwell;
}

}  // namespace chokepoint::compute

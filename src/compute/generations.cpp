// SPDX-License-Identifier: Apache-2.0
#include "generations.hpp"

namespace chokepoint::compute {

// Board power over dense 16-bit peak, from data sheets: A100-SXM 400 W / 312 TFLOP/s, H200-SXM 700 / 989,
// B200 1000 / 2250, V100-SXM2 300 / 125, T4 70 / 65, L40S 350 / 362, MI250X 560 / 383, MI300X 750 / 1307,
// MI355X 1400 / 2300, Gaudi 3 900 / 1835.
Generations default_generations() {
  Generations out;
  const auto set = [&out](hardware::Architecture architecture, const GenerationConstants& values) {
    out[static_cast<std::size_t>(architecture)] = values;
  };
  set(hardware::Architecture::kVolta, {0.90, 5.4e-6, 0.60, 2.40e-12, 0.90, 0.80});
  set(hardware::Architecture::kTuring, {0.90, 5.4e-6, 0.45, 1.08e-12, 0.88, 0.80});
  set(hardware::Architecture::kAmpere, {1.00, 5.4e-6, 0.86, 1.282e-12, 0.88, 0.85});
  set(hardware::Architecture::kAda, {0.97, 4.0e-6, 0.62, 0.967e-12, 0.92, 0.85});
  set(hardware::Architecture::kHopper, {0.97, 1.3e-6, 0.73, 0.708e-12, 0.90, 0.53});
  set(hardware::Architecture::kBlackwell, {0.88, 1.3e-6, 0.50, 0.444e-12, 0.88, 0.30});
  set(hardware::Architecture::kCdna2, {0.80, 5.0e-6, 0.53, 1.462e-12, 0.80, 0.55});
  set(hardware::Architecture::kCdna3, {0.66, 4.0e-6, 0.50, 0.574e-12, 0.80, 0.45});
  set(hardware::Architecture::kCdna4, {0.72, 4.0e-6, 0.52, 0.609e-12, 0.80, 0.45});
  set(hardware::Architecture::kGaudi, {0.97, 5.0e-8, 0.60, 0.490e-12, 0.85, 0.60});
  set(hardware::Architecture::kTpu, {0.95, 5.0e-8, 0.85, 0.0, 0.90, 0.70});
  return out;
}

const char* generation_source(hardware::Architecture architecture) {
  using hardware::Architecture;
  switch (architecture) {
    case Architecture::kVolta:
      return "no GEMM table: cuBLAS tensor-core bursts 83-110 of 125 TFLOP/s (arXiv:1803.04014, arXiv:1811.08309), "
             "lowered to what 300 W sustain in published V100 steps; tile overhead of Ampere";
    case Architecture::kTuring:
      return "no GEMM table: T4 cuBLAS about 25-30 of 65 TFLOP/s at 70 W (arXiv:1903.07486); tile overhead of "
             "Ampere";
    case Architecture::kAmpere:
      return "A100-SXM: best burst 268 of 312 TFLOP/s (stas MAMF); tile time fit on the nn.Linear and A100-PCIe "
             "tables; BabelStream triad 1.75 of 2.04 TB/s";
    case Architecture::kAda:
      return "no GEMM table: between Ampere and Hopper; L40S limited by 350 W";
    case Architecture::kHopper:
      return "fit: GH200 nn.Linear table; sustained H200 708.5 TFLOP/s at 700 W (stas MSMF), shrunk to GH200 at "
             "900 W";
    case Architecture::kBlackwell:
      return "fit: B200 GEMM table of SimuMax and bursts of stas (MAMF), tile overhead of Hopper; sustained "
             "between its 0.485 and 1456 TFLOP/s (stas MSMF)";
    case Architecture::kCdna2:
      return "no GEMM table: rocBLAS bursts on one GCD about 0.6-0.7 of peak, lowered as H200's sustained table "
             "lies below its bursts; BabelStream 1.3 of 1.6 TB/s; tile overhead of Ampere";
    case Architecture::kCdna3:
      return "MI300X 0.51-0.58, MI325X 0.60 of peak (stas MAMF); BabelStream 4.0-4.3 of 5.3 TB/s";
    case Architecture::kCdna4:
      return "MI355X 0.63 of peak (stas MAMF), the rest as CDNA3";
    case Architecture::kGaudi:
      return "Gaudi 2 0.97-0.99 and Gaudi 3 0.47-0.74 of peak (stas MAMF); memory and attention unknown, between "
             "CDNA and TPU; few large units, so hardly any overhead per tile";
    case Architecture::kTpu:
      return "no GEMM table: XLA-compiled matrix products near the data sheet; not power limited in the model";
  }
  return "";
}

}  // namespace chokepoint::compute

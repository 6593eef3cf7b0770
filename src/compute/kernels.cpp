// SPDX-License-Identifier: Apache-2.0
// Constants of one accelerator, dense matrix products and memory-bound operators.
//
// A product C[m,n] = A[m,k] B[k,n] is cut into tiles of C; a compute unit works on one tile at a time, so the device
// needs ceil(tiles / units) waves, of which the last may be nearly empty. Small tiles fill the last wave better but
// move more operand bytes per FLOP. The library's heuristic tries to take the fastest tile, and so does the model:
//
//   t = tail + max( min over tiles of waves * (tile FLOPs / rate * (1 + c/tm + c/tn) + overhead),
//                   FLOPs / sustained rate under the power limit,
//                   bytes / achieved memory bandwidth )
//
// The power limit is a floor of its own, because a kernel that leaves units idle also draws less power.
#include <algorithm>
#include <chokepoint/compute/kernels.hpp>
#include <cmath>

namespace chokepoint::compute {
namespace {

using hardware::Dtype;

struct Tile {
  double m;
  double n;
};
/// The last one needs two units that share a tile (tcgen05 pairs, Blackwell).
constexpr std::array<Tile, 7> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {64, 128}, {128, 64}, {64, 64}, {256, 256}}};
constexpr double kSplitMinimumK = 512;  ///< a k-slice shorter than this does not fill a pipeline

std::size_t index(Dtype dtype) { return static_cast<std::size_t>(dtype); }

/// The dtype whose units run a product of `dtype`: the next wider one that the part has.
Dtype executing_dtype(const hardware::Accelerator& part, Dtype dtype) {
  constexpr std::array<Dtype, 6> kWidening{Dtype::kFp4,  Dtype::kFp8,  Dtype::kBf16,
                                           Dtype::kFp16, Dtype::kTf32, Dtype::kFp32};
  auto at = std::find(kWidening.begin(), kWidening.end(), dtype);
  if (dtype == Dtype::kBf16 && part.peak(dtype) <= 0) return Dtype::kFp32;  // fp16 units cannot hold its exponent
  while (at != kWidening.end() && part.peak(*at) <= 0) ++at;
  return at == kWidening.end() ? Dtype::kFp32 : *at;
}

double dtype_factor(const GemmConstants& gemm, Dtype dtype) {
  if (dtype == Dtype::kFp8) return gemm.fp8_over_bf16;
  if (dtype == Dtype::kFp4) return gemm.fp4_over_bf16;
  return 1;
}

/// Sustained share of the peak: what the generation reaches, scaled by the power the board may spend per FLOP/s.
double sustained_under_power(const hardware::Accelerator& part, const GenerationConstants& gen, double exponent) {
  const double peak = std::max(part.peak(Dtype::kBf16), part.peak(Dtype::kFp16));
  if (gen.reference_w_per_flops <= 0 || part.power_w <= 0 || peak <= 0)
    return std::min(gen.sustained_fraction, gen.tile_fraction);
  const double density = part.power_w / peak / gen.reference_w_per_flops;
  return std::min(gen.sustained_fraction * std::pow(density, exponent), gen.tile_fraction);
}

detail::PartFigures derive(const hardware::Accelerator& part, const Constants& constants) {
  const GenerationConstants& gen = constants.generations[static_cast<std::size_t>(part.architecture)];
  detail::PartFigures out;
  out.compute_units = std::max(1, part.compute_units);
  out.tiles = part.architecture == hardware::Architecture::kBlackwell ? kTiles.size() : kTiles.size() - 1;
  // Systolic arrays hold their operands in large local memories; their generations' tile fraction includes the loss.
  const bool systolic = part.architecture == hardware::Architecture::kTpu ||
                        part.architecture == hardware::Architecture::kGaudi;
  out.traffic_elements = systolic ? 0 : constants.gemm.traffic_elements;
  out.tile_overhead_s = gen.tile_overhead_s;
  out.memory_bytes_per_s = std::max(1.0, gen.memory_fraction * part.memory_bytes_per_s);
  out.attention_matrix_fraction = gen.attention_mma_fraction;
  const double sustained = sustained_under_power(part, gen, constants.gemm.power_exponent);
  for (int i = 0; i < hardware::kDtypeCount; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    const Dtype runs = executing_dtype(part, static_cast<Dtype>(i));
    const double peak = std::max(1.0, part.peak(runs));
    out.unit_peak_flops_per_s[slot] = peak / out.compute_units;
    out.tile_flops_per_s[slot] = gen.tile_fraction * peak / out.compute_units;
    out.sustained_flops_per_s[slot] = sustained * dtype_factor(constants.gemm, runs) * peak;
    out.element_bytes[slot] = hardware::bytes_per_element(runs);
  }
  return out;
}

/// Rows that do not start at 16-byte addresses are loaded in narrower pieces. Source: alignment chart of NVIDIA's
/// "Matrix Multiplication Background User's Guide" (A100).
double alignment_factor(double n, double k) {
  double factor = 1;
  for (const double extent : {n, k}) {
    if (std::fmod(extent, 8) == 0) continue;
    factor = std::min(factor, std::fmod(extent, 4) == 0 ? 0.9 : std::fmod(extent, 2) == 0 ? 0.7 : 0.4);
  }
  return factor;
}

}  // namespace

KernelModel::KernelModel(const hardware::Accelerator& accelerator, Clock clock, const Constants& constants)
    : accelerator_(accelerator),
      clock_(clock),
      figures_(derive(accelerator, constants)),
      gemm_(constants.gemm),
      attention_(constants.attention) {}

double KernelModel::product_s(Dtype dtype, double m, double n, double k, double batch, double c_bytes) const {
  if (!(m > 0 && n > 0 && k > 0 && batch > 0)) return gemm_.kernel_tail_s;
  const std::size_t slot = index(dtype);
  const double aligned = alignment_factor(n, k);
  const double rate = figures_.tile_flops_per_s[slot] * aligned;
  const double units = figures_.compute_units;

  double best = 0;
  for (std::size_t i = 0; i < figures_.tiles; ++i) {
    const Tile& tile = kTiles[i];
    const double loss = 1 + figures_.traffic_elements * (1 / tile.m + 1 / tile.n);
    const double loop_s = 2 * tile.m * tile.n * k * loss / rate;
    const double tiles = std::ceil(m / tile.m) * std::ceil(n / tile.n) * batch;
    // Splitting k feeds idle units; partial sums then cross memory in fp32, written and read.
    for (double splits = 1; splits <= 8; splits *= 2) {
      if (splits > 1 && (tiles * splits > 2 * units || k < splits * kSplitMinimumK)) break;
      const double load = tiles * splits / units;
      const double waves = load < 1 ? 1 : load + gemm_.last_wave_weight * (std::ceil(load) - load);
      const double partial_s = splits > 1 ? 8 * m * n * batch * splits / figures_.memory_bytes_per_s : 0;
      const double time = waves * (loop_s / splits + figures_.tile_overhead_s) + partial_s;
      if (best == 0 || time < best) best = time;
    }
  }
  const double bytes = batch * (figures_.element_bytes[slot] * (m * k + k * n) + c_bytes * m * n);
  const double memory = bytes / figures_.memory_bytes_per_s;
  const double power = clock_ == Clock::kBurst
                           ? 0
                           : 2 * m * n * k * batch / (figures_.sustained_flops_per_s[slot] * aligned);
  return gemm_.kernel_tail_s + std::max({best, memory, power});
}

double KernelModel::gemm_s(Dtype dtype, double m, double n, double k, double batch) const {
  return product_s(dtype, m, n, k, batch, std::max(figures_.element_bytes[index(dtype)], 2.0));
}

double KernelModel::gemm_accumulate_s(Dtype dtype, double m, double n, double k, double batch) const {
  // Where the k-loops bound the product, they hide only a part of the 6 bytes that fp32 adds to a 16-bit C.
  const double exposed_s = gemm_.epilogue_exposed * 6 * std::max(0.0, m * n * batch) / figures_.memory_bytes_per_s;
  return std::max(gemm_s(dtype, m, n, k, batch) + exposed_s, product_s(dtype, m, n, k, batch, 8));
}

double KernelModel::grouped_gemm_s(Dtype dtype, double groups, double m, double n, double k, bool accumulate) const {
  const double together =
      accumulate ? gemm_accumulate_s(dtype, m, n, k, groups) : gemm_s(dtype, m, n, k, groups);
  return std::max(together, std::max(0.0, groups) * gemm_.group_launch_s);
}

double KernelModel::memory_s(double bytes) const {
  return gemm_.kernel_tail_s + std::max(0.0, bytes) / figures_.memory_bytes_per_s;
}

double KernelModel::sustained_fraction(Dtype dtype) const {
  const double peak = accelerator_.peak(executing_dtype(accelerator_, dtype));
  return peak > 0 ? figures_.sustained_flops_per_s[index(dtype)] / peak : 0;
}

}  // namespace chokepoint::compute

// SPDX-License-Identifier: Apache-2.0
// Constants of one accelerator, dense matrix products and memory-bound operators.
//
// A product C[m,n] = A[m,k] B[k,n] is cut into tiles of C; a compute unit works on one tile at a time, so the device
// needs ceil(tiles / units) waves, of which the last may be nearly empty. Small tiles fill the last wave better but
// move more operand bytes per FLOP. The library's heuristic tries to take the fastest tile, and so does the model:
//
//   t = tail + max( min over tiles of waves * (tile FLOPs / rate * (1 + c/tm + c/tn) + overhead) + e * memory,
//                   FLOPs / sustained rate under the power limit + w * memory,
//                   memory = bytes / achieved memory bandwidth )
//
// The power limit is a floor of its own, because a kernel that leaves units idle also draws less power; memory traffic
// takes its share of it.
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
double sustained_under_power(const hardware::Accelerator& part, const SustainedConstants& sustained, double limit,
                             double exponent) {
  const double peak = std::max(part.peak(Dtype::kBf16), part.peak(Dtype::kFp16));
  if (sustained.reference_w_per_flops <= 0 || part.power_w <= 0 || peak <= 0) return std::min(sustained.fraction, limit);
  const double density = part.power_w / peak / sustained.reference_w_per_flops;
  return std::min(sustained.fraction * std::pow(density, exponent), limit);
}

detail::PartFigures derive(const hardware::Accelerator& part, const Constants& constants) {
  const Family family = family_of(part.architecture);
  const FamilyConstants& shared = constants.families[static_cast<std::size_t>(family)];
  detail::PartFigures out;
  out.compute_units = std::max(1, part.compute_units);
  out.tiles = family == Family::kTensorMemory ? kTiles.size() : kTiles.size() - 1;
  // Systolic arrays hold their operands in large local memories; their generations' tile fraction includes the loss.
  out.one_clock = family == Family::kSystolic;
  out.traffic_elements = out.one_clock ? 0 : constants.gemm.traffic_elements;
  out.tile_overhead_s = shared.tile_overhead_s;
  out.memory_bytes_per_s = std::max(1.0, shared.memory_fraction * part.memory_bytes_per_s);
  out.attention_matrix_fraction = shared.attention_fraction;
  const double sustained =
      sustained_under_power(part, constants.sustained[static_cast<std::size_t>(part.architecture)],
                            shared.tile_fraction, constants.gemm.power_exponent);
  for (int i = 0; i < hardware::kDtypeCount; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    const Dtype runs = executing_dtype(part, static_cast<Dtype>(i));
    const double peak = std::max(1.0, part.peak(runs));
    out.unit_peak_flops_per_s[slot] = peak / out.compute_units;
    const double factor = out.one_clock ? 1 : dtype_factor(constants.gemm, runs);
    out.tile_flops_per_s[slot] = shared.tile_fraction * factor * peak / out.compute_units;
    out.sustained_flops_per_s[slot] = sustained * factor * peak;
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

std::string_view name(GroupedKernel kernel) {
  switch (kernel) {
    case GroupedKernel::kLoop: return "loop";
    case GroupedKernel::kStreams: return "streams";
    case GroupedKernel::kFused: return "fused";
  }
  return "unknown";
}

KernelModel::KernelModel(const hardware::Accelerator& accelerator, Clock clock, const Constants& constants)
    : accelerator_(accelerator),
      clock_(clock),
      figures_(derive(accelerator, constants)),
      gemm_(constants.gemm),
      attention_(constants.attention) {}

double KernelModel::tiles_s(std::size_t dtype, double aligned, double m, double n, double k, double batch) const {
  const double seconds_per_flop = 1 / (figures_.tile_flops_per_s[dtype] * aligned);
  const double units = figures_.compute_units;
  const double inverse_units = 1 / units;
  const double partial_s = 8 * m * n * batch / figures_.memory_bytes_per_s;
  double best = 0;
  for (std::size_t i = 0; i < figures_.tiles; ++i) {
    const Tile& tile = kTiles[i];
    const double loss = 1 + figures_.traffic_elements * (1 / tile.m + 1 / tile.n);
    const double loop_s = 2 * tile.m * tile.n * k * loss * seconds_per_flop;
    const double tiles = std::ceil(m / tile.m) * std::ceil(n / tile.n) * batch;
    // Splitting k feeds idle units; partial sums then cross memory in fp32, written and read.
    for (double splits = 1; splits <= 8; splits *= 2) {
      if (splits > 1 && (tiles * splits > 2 * units || k < splits * kSplitMinimumK)) break;
      const double load = tiles * splits * inverse_units;
      const double waves = load < 1 ? 1 : load + gemm_.last_wave_weight * (std::ceil(load) - load);
      double time = waves * (loop_s / splits + figures_.tile_overhead_s);
      if (splits > 1) time += splits * partial_s;
      if (best == 0 || time < best) best = time;
    }
  }
  return best;
}

double KernelModel::product_s(Dtype dtype, double m, double n, double k, double batch, double c_bytes) const {
  if (!(m > 0 && n > 0 && k > 0 && batch > 0)) return gemm_.kernel_tail_s;
  const std::size_t slot = index(dtype);
  const double aligned = alignment_factor(n, k);
  const double bytes = batch * (figures_.element_bytes[slot] * (m * k + k * n) + c_bytes * m * n);
  const double memory = bytes / figures_.memory_bytes_per_s;
  const double tiles = tiles_s(slot, aligned, m, n, k, batch) + gemm_.memory_exposed * memory;
  double power = 0;
  if (clock_ == Clock::kSustained || figures_.one_clock)
    power = 2 * m * n * k * batch / (figures_.sustained_flops_per_s[slot] * aligned) + gemm_.memory_power * memory;
  return gemm_.kernel_tail_s + std::max({tiles, memory, power});
}

double KernelModel::gemm_s(Dtype dtype, double m, double n, double k, double batch) const {
  return product_s(dtype, m, n, k, batch, std::max(figures_.element_bytes[index(dtype)], 2.0));
}

double KernelModel::gemm_accumulate_s(Dtype dtype, double m, double n, double k, double batch,
                                      double c_element_bytes) const {
  return product_s(dtype, m, n, k, batch, 2 * c_element_bytes);
}

double KernelModel::grouped_gemm_s(GroupedKernel kernel, Dtype dtype, const GroupedShape& s,
                                   double accumulate_bytes) const {
  if (!(s.groups > 0 && s.m > 0)) return gemm_.kernel_tail_s;
  const double multiple = std::max(1.0, s.row_multiple);
  const double m = std::ceil(s.m / multiple) * multiple;
  const double c_bytes =
      accumulate_bytes > 0 ? 2 * accumulate_bytes : std::max(figures_.element_bytes[index(dtype)], 2.0);
  if (kernel == GroupedKernel::kLoop) return s.groups * product_s(dtype, m, s.n, s.k, 1, c_bytes);
  const double together = product_s(dtype, m, s.n, s.k, s.groups, c_bytes);
  if (kernel == GroupedKernel::kFused) return together;
  return std::max(together + s.groups * gemm_.group_gap_s, s.groups * gemm_.group_launch_s);
}

double KernelModel::memory_s(double bytes) const {
  return gemm_.kernel_tail_s + std::max(0.0, bytes) / figures_.memory_bytes_per_s;
}

double KernelModel::sustained_fraction(Dtype dtype) const {
  const double peak = accelerator_.peak(executing_dtype(accelerator_, dtype));
  return peak > 0 ? figures_.sustained_flops_per_s[index(dtype)] / peak : 0;
}

}  // namespace chokepoint::compute

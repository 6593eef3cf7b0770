// SPDX-License-Identifier: Apache-2.0
// The attention core. Fused kernels keep the score matrix on chip: their work is cut into blocks of query rows (key
// columns in the backward), and softmax shares the compute unit with the matrix products. The unfused form is two
// batched products and memory-bound passes over the scores.
//
// For kernels built on warp-level matrix instructions (flash 1, Triton, flash 2) the share of peak follows from how
// much matrix rate one unit has beside its special-function unit:
//   1 / fraction = 1 / matrix fraction + beta * peak per unit
// so parts with small matrix units (GeForce) come near their peak and large ones do not.
#include <algorithm>
#include <chokepoint/compute/kernels.hpp>
#include <cmath>

namespace chokepoint::compute {
namespace {

using hardware::Architecture;
using hardware::Dtype;

struct Rate {
  double fraction;  ///< of the dense peak, many blocks, head_dim 128
  double block;     ///< query rows per block
  double head64;    ///< of `fraction` at head_dim 64
  double wide_loss; ///< of `fraction` per element of head_dim above 128
  double wide_power_loss = 0;  ///< of the share under the power limit, likewise
};

/// Kernels that need a newer part run as the best one the part has.
AttentionKernel runnable(AttentionKernel kernel, Architecture architecture) {
  if (kernel == AttentionKernel::kUnfused) return kernel;
  if (architecture == Architecture::kVolta) return AttentionKernel::kUnfused;
  if (kernel == AttentionKernel::kFlash4 && architecture != Architecture::kBlackwell) kernel = AttentionKernel::kFlash3;
  if (kernel == AttentionKernel::kFlash3 && architecture != Architecture::kHopper) kernel = AttentionKernel::kFlash2;
  if (kernel == AttentionKernel::kFlash2 && architecture == Architecture::kTuring) kernel = AttentionKernel::kFlash1;
  return kernel;
}

Rate rate_of(const AttentionConstants& c, AttentionKernel kernel, double warp_level, bool backward) {
  const double wide = backward ? c.wide_head_loss_backward : c.wide_head_loss_forward;
  switch (kernel) {
    case AttentionKernel::kFlash4:
      return backward ? Rate{c.flash4_backward, 128, 0.8, wide} 
                      : Rate{c.flash4_forward, 256, 0.75, wide, c.flash4_wide_head_loss};
    case AttentionKernel::kFlash3:
      return backward ? Rate{c.flash3_backward, 128, 0.8, wide} : Rate{c.flash3_forward, 128, 0.7, wide};
    case AttentionKernel::kTriton:
      return {warp_level * (backward ? c.triton_backward : c.triton_forward), 128, 0.9, wide};
    case AttentionKernel::kFlash1:
      return {warp_level * (backward ? c.flash1_backward : c.flash1_forward), 128, 0.9, wide};
    default: return {backward ? warp_level * c.flash2_backward : warp_level, 128, 0.87, wide};
  }
}

double wide_factor(double loss, double head_dim, double floor) {
  return std::max(floor, 1 - std::max(0.0, head_dim - 128) * loss);
}

/// Narrow heads spend more of their time in softmax; very wide ones lose occupancy.
double head_factor(const Rate& rate, double head_dim, double floor) {
  if (head_dim >= 128) return wide_factor(rate.wide_loss, head_dim, floor);
  if (head_dim >= 64) return rate.head64 + (1 - rate.head64) * (head_dim - 64) / 64;
  return rate.head64 * head_dim / 64;
}

bool well_formed(const AttentionShape& s) {
  return s.batch > 0 && s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.sequence > 0 && s.kv_sequence > 0;
}

}  // namespace

std::string_view name(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kUnfused: return "unfused";
    case AttentionKernel::kFlash1: return "flash1";
    case AttentionKernel::kTriton: return "triton";
    case AttentionKernel::kFlash2: return "flash2";
    case AttentionKernel::kFlash3: return "flash3";
    case AttentionKernel::kFlash4: return "flash4";
  }
  return "unknown";
}

double KernelModel::attention_flash_s(AttentionKernel kernel, Dtype dtype, const AttentionShape& s,
                                      bool backward) const {
  const auto slot = static_cast<std::size_t>(dtype);
  const double unit_peak = figures_.unit_peak_flops_per_s[slot];
  const double peak = unit_peak * figures_.compute_units;
  // A systolic core brings vector units in proportion; the softmax term below describes one GPU unit.
  const double softmax = figures_.one_clock ? 0 : attention_.softmax_beta * unit_peak;
  const double warp_level = 1 / (1 / figures_.attention_matrix_fraction + softmax);
  const Rate rate = rate_of(attention_, kernel, warp_level, backward);
  double fraction = rate.fraction * head_factor(rate, s.head_dim, attention_.wide_head_floor);
  if (clock_ == Clock::kSustained)
    fraction = std::min(fraction, wide_factor(rate.wide_power_loss, s.head_dim, attention_.wide_head_floor) *
                                      attention_.power_headroom * figures_.sustained_flops_per_s[slot] / peak);

  // Scores that causal masking leaves: half of the square where queries and keys are the same positions, plus the
  // masked half of the blocks on the diagonal.
  const double rows = std::min(s.sequence, s.kv_sequence);
  const double masked = s.causal ? std::max(0.0, 0.5 * rows * (rows - std::min(rate.block, rows))) : 0;
  const double scores = s.batch * s.heads * (s.sequence * s.kv_sequence - masked);
  const double rows_of_blocks = backward ? s.kv_sequence : s.sequence;
  const double padding = s.batch * s.heads * rows_of_blocks * attention_.block_overhead_keys;
  // 2 products forward, 5 backward, one of them recomputed.
  const double flops = (backward ? 10 : 4) * (scores + padding) * s.head_dim;

  // Blocks of a causal kernel differ in length by up to 2, so the longest one ends the kernel.
  const double blocks = s.batch * s.heads * std::ceil(rows_of_blocks / rate.block);
  const double load = blocks / figures_.compute_units;
  const double imbalance = backward ? attention_.causal_imbalance / 2 : attention_.causal_imbalance;
  const double uneven = s.causal ? imbalance : gemm_.last_wave_weight * (std::ceil(load) - load);
  const double waves = load < 1 && !s.causal ? 1 : load + uneven;
  const double compute = flops / (fraction * peak) * waves / load;

  const double tensors = backward ? 4 : 2;  // q, o and in the backward dq, do; likewise k, v
  const double bytes = hardware::bytes_per_element(dtype) * tensors * s.batch * s.head_dim *
                       (s.heads * s.sequence + s.kv_heads * s.kv_sequence);
  return gemm_.kernel_tail_s + std::max(compute, bytes / figures_.memory_bytes_per_s);
}

double KernelModel::attention_unfused_s(Dtype dtype, const AttentionShape& s, bool backward) const {
  const double batch = s.batch * s.heads;
  const double scores = batch * s.sequence * s.kv_sequence;
  const double passes_bytes = scores * (backward ? attention_.unfused_backward_bytes : attention_.unfused_forward_bytes);
  double products = gemm_s(dtype, s.sequence, s.kv_sequence, s.head_dim, batch) +
                    gemm_s(dtype, s.sequence, s.head_dim, s.kv_sequence, batch);
  // Heads lie one behind the other, so with a head_dim that is no multiple of 16 bytes most of the batch starts at an
  // address that matrix instructions cannot load from, and the library takes its kernels without them.
  const double vector_peak = accelerator_.peak(Dtype::kFp32);
  if (std::fmod(s.head_dim * hardware::bytes_per_element(dtype), 16) != 0 && vector_peak > 0 && !figures_.one_clock)
    products = std::max(products, 4 * scores * s.head_dim / (attention_.unaligned_vector_share * vector_peak));
  // Two kernels over the scores: scale, mask and softmax; dropout.
  return (backward ? 2 : 1) * products + 2 * memory_s(passes_bytes / 2);
}

double KernelModel::attention_forward_s(AttentionKernel kernel, Dtype dtype, const AttentionShape& shape) const {
  if (!well_formed(shape)) return gemm_.kernel_tail_s;
  const AttentionKernel runs = runnable(kernel, accelerator_.architecture);
  return runs == AttentionKernel::kUnfused ? attention_unfused_s(dtype, shape, false)
                                           : attention_flash_s(runs, dtype, shape, false);
}

double KernelModel::attention_backward_s(AttentionKernel kernel, Dtype dtype, const AttentionShape& shape) const {
  if (!well_formed(shape)) return gemm_.kernel_tail_s;
  const AttentionKernel runs = runnable(kernel, accelerator_.architecture);
  return runs == AttentionKernel::kUnfused ? attention_unfused_s(dtype, shape, true)
                                           : attention_flash_s(runs, dtype, shape, true);
}

}  // namespace chokepoint::compute

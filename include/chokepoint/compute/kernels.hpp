// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time of one operator on one accelerator: the larger of its arithmetic and its memory time, each with the efficiency
// that its shape, dtype and the generation of the part allow. Sustained rates under the power limit, not bursts.
#include <array>
#include <chokepoint/compute/constants.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <string_view>

namespace chokepoint::compute {

/// Attention kernels by generation. kUnfused materialises the score matrix in memory.
enum class AttentionKernel { kUnfused, kFlash1, kTriton, kFlash2, kFlash3, kFlash4 };
std::string_view name(AttentionKernel kernel);

struct AttentionShape {
  double batch = 1;          ///< sequences
  double heads = 1;          ///< query heads on this rank
  double kv_heads = 1;
  double head_dim = 128;
  double sequence = 1;       ///< query positions on this rank
  double kv_sequence = 1;    ///< key positions seen
  bool causal = true;
};

/// Which clock the matrix units run at. Training loads a part for hours: its board settles at the power limit. A short
/// benchmark of one kernel ends before the power controller reacts.
enum class Clock { kSustained, kBurst };

namespace detail {
/// Figures of one accelerator, derived once from its generation and data sheet; gemm_s and the rest only read them.
struct PartFigures {
  std::array<double, hardware::kDtypeCount> unit_peak_flops_per_s{};  ///< one compute unit
  std::array<double, hardware::kDtypeCount> tile_flops_per_s{};       ///< the same inside the k-loop
  std::array<double, hardware::kDtypeCount> sustained_flops_per_s{};  ///< whole device under its power limit
  std::array<double, hardware::kDtypeCount> element_bytes{};          ///< of the dtype the product really runs in
  double compute_units = 1;
  std::size_t tiles = 1;               ///< tile shapes the generation has
  double traffic_elements = 0;         ///< loss of a tile by operand traffic
  double tile_overhead_s = 0;          ///< fill, drain and epilogue of one tile
  double memory_bytes_per_s = 0;       ///< achieved
  double attention_matrix_fraction = 0;  ///< of the peak, before softmax shares the unit with the matrix products
};
}  // namespace detail

/// Copyable and safe to use from several threads at once. No function allocates.
class KernelModel {
 public:
  explicit KernelModel(const hardware::Accelerator& accelerator, Clock clock = Clock::kSustained,
                       const Constants& constants = {});

  /// C[m,n] += A[m,k] B[k,n], `batch` times. Seconds. A dtype without a matrix unit runs in the next wider one that
  /// has one (bf16 on Volta runs in fp32).
  double gemm_s(hardware::Dtype dtype, double m, double n, double k, double batch = 1) const;
  /// The same with C in fp32, read and written: weight gradients added to an fp32 buffer by the product itself.
  double gemm_accumulate_s(hardware::Dtype dtype, double m, double n, double k, double batch = 1) const;
  /// `groups` products of one size in several streams, one library call each (mixture-of-experts layers).
  double grouped_gemm_s(hardware::Dtype dtype, double groups, double m, double n, double k, bool accumulate) const;
  /// Forward of the attention core (scores, softmax, values), without the projections. Seconds.
  double attention_forward_s(AttentionKernel kernel, hardware::Dtype dtype, const AttentionShape& shape) const;
  double attention_backward_s(AttentionKernel kernel, hardware::Dtype dtype, const AttentionShape& shape) const;
  /// An operator that only moves `bytes` (read plus written) through device memory. Seconds.
  double memory_s(double bytes) const;
  /// Share of the data-sheet peak that large matrix products sustain in this dtype; the "sustained clocks" rung of the
  /// efficiency ladder.
  double sustained_fraction(hardware::Dtype dtype) const;
  const hardware::Accelerator& accelerator() const { return accelerator_; }

 private:
  double product_s(hardware::Dtype dtype, double m, double n, double k, double batch, double c_bytes) const;
  double attention_flash_s(AttentionKernel kernel, hardware::Dtype dtype, const AttentionShape& shape,
                           bool backward) const;
  double attention_unfused_s(hardware::Dtype dtype, const AttentionShape& shape, bool backward) const;

  hardware::Accelerator accelerator_;
  Clock clock_;
  detail::PartFigures figures_;
  GemmConstants gemm_;
  AttentionConstants attention_;
};

}  // namespace chokepoint::compute

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

/// How a framework runs the products of a rank's experts: one after the other in one stream (a Python loop over
/// experts), one library call each in several streams (Transformer Engine), or one kernel for all (grouped GEMM).
enum class GroupedKernel { kLoop, kStreams, kFused };
std::string_view name(GroupedKernel kernel);

/// `groups` products C[m,n] = A[m,k] B[k,n]; m is the mean number of rows (tokens of an expert).
struct GroupedShape {
  double groups = 1;
  double m = 1;
  double n = 1;
  double k = 1;
  double row_multiple = 1;  ///< rows of each group are padded to it (8 or 16 for fp8, 128 for some kernels)
};

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
  bool one_clock = false;              ///< systolic parts do not boost: a burst is no faster
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
  /// The same with C read and written, in `c_element_bytes`: weight gradients added to their buffer by the product.
  double gemm_accumulate_s(hardware::Dtype dtype, double m, double n, double k, double batch = 1,
                           double c_element_bytes = 4) const;
  /// The experts of one rank. `accumulate_bytes`: of an element of C that is read as well as written; 0 for none.
  double grouped_gemm_s(GroupedKernel kernel, hardware::Dtype dtype, const GroupedShape& shape,
                        double accumulate_bytes = 0) const;
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
  double tiles_s(std::size_t dtype, double aligned, double m, double n, double k, double batch) const;
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

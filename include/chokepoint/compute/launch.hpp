// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host time to launch kernels. A step is never faster than its host: while the launches of a stretch of work take
// longer than its kernels, the accelerator waits.
#include <array>
#include <chokepoint/compute/constants.hpp>

namespace chokepoint::compute {

/// How the framework reaches the device: op by op from Python, generated code, or a captured graph replayed.
enum class Execution { kEager, kCompiled, kGraph };

/// What eager code launches per operator: one kernel per primitive (plain PyTorch modules), or hand-fused norms,
/// activations and softmax (Megatron, Apex, FlashAttention modules).
enum class OperatorStyle { kPrimitive, kFused };

struct LayerKernels {
  int forward = 0;
  int backward = 0;
};

/// Copyable and safe to use from several threads at once. No function allocates.
class LaunchModel {
 public:
  explicit LaunchModel(const Constants& constants = {});

  /// Host seconds from one kernel launch to the next, Python and dispatcher included. `year` stands for the generation
  /// of host CPU and framework; 0 is unknown and taken as 2023.
  double launch_s(Execution execution, int year) const;
  /// Kernels of one decoder layer. Unfused attention adds its products and passes.
  LayerKernels layer_kernels(Execution execution, OperatorStyle style, bool unfused_attention) const;

 private:
  LaunchConstants constants_;
  std::array<double, 5> eager_by_year_s_{};  ///< from the first known year on
};

}  // namespace chokepoint::compute

// SPDX-License-Identifier: Apache-2.0
// Public profiler traces: 2021 37-60 us between launches (V100 hosts), 2023 32-34 us (A100), 2024 19 us (H100), 2025
// 8-16 us (MI300X). docs/models/compute.md lists them.
#include <algorithm>
#include <chokepoint/compute/launch.hpp>
#include <cmath>

namespace chokepoint::compute {
namespace {

constexpr int kFirstYear = 2021;
constexpr int kDefaultYear = 2023;
/// Two products for one, softmax, dropout and two copies in place of one fused kernel.
constexpr int kUnfusedAttentionKernels = 5;
/// Each product has two in the backward, each pointwise operator one or two, and gradients are accumulated.
constexpr int kBackwardOverForward = 2;

int whole(double kernels) { return static_cast<int>(std::lround(std::clamp(kernels, 0.0, 1e6))); }

}  // namespace

LaunchModel::LaunchModel(const Constants& constants) : constants_(constants.launch) {
  for (std::size_t i = 0; i < eager_by_year_s_.size(); ++i)
    eager_by_year_s_[i] = constants_.eager_2021_s * std::pow(constants_.yearly_factor, static_cast<double>(i));
}

double LaunchModel::launch_s(Execution execution, int year) const {
  if (execution == Execution::kGraph) return constants_.graph_s;
  const int last = static_cast<int>(eager_by_year_s_.size()) - 1;
  const int at = std::clamp((year == 0 ? kDefaultYear : year) - kFirstYear, 0, last);
  const double eager = eager_by_year_s_[static_cast<std::size_t>(at)];
  return execution == Execution::kEager ? eager : eager * constants_.compiled_over_eager;
}

LayerKernels LaunchModel::layer_kernels(Execution execution, OperatorStyle style, bool unfused_attention) const {
  int forward = whole(style == OperatorStyle::kFused ? constants_.fused_forward_kernels : constants_.primitive_forward_kernels);
  if (execution == Execution::kCompiled) forward = whole(constants_.compiled_forward_kernels);
  if (unfused_attention) forward += kUnfusedAttentionKernels;
  return {forward, kBackwardOverForward * forward};
}

}  // namespace chokepoint::compute

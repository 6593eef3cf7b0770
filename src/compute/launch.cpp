// SPDX-License-Identifier: Apache-2.0
#include "launch_constants.hpp"

#include <algorithm>
#include <chokepoint/compute/launch.hpp>
#include <cmath>

namespace chokepoint::compute {

double LaunchModel::launch_s(Execution execution, int year) {
  if (execution == Execution::kGraph) return kGraphLaunch_s;
  const int known = year == 0 ? kDefaultYear : std::clamp(year, kFirstYear, kLastYear);
  const double eager = kEagerLaunch_s * std::pow(kYearlyFactor, known - kFirstYear);
  return execution == Execution::kEager ? eager : eager * kCompiledOverEager;
}

LayerKernels LaunchModel::layer_kernels(Execution execution, OperatorStyle style, bool unfused_attention) {
  int forward = style == OperatorStyle::kFused ? kFusedForwardKernels : kPrimitiveForwardKernels;
  if (execution == Execution::kCompiled) forward = kCompiledForwardKernels;
  if (unfused_attention) forward += kUnfusedAttentionKernels;
  return {forward, kBackwardOverForward * forward};
}

}  // namespace chokepoint::compute

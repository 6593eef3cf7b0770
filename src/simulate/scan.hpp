// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recurrence of a state-space or delta-rule layer as the training kernels compute it: in blocks of tokens, products inside a
// block and one state per block between them.
#include "layer.hpp"

namespace chokepoint::simulate {

struct Scan {
  double forward_s = 0;
  double backward_s = 0;
  double flops = 0;  ///< forward
};

/// One micro-batch on one rank, all of its heads.
Scan scan_in_blocks(const StepContext& context, const model::Recurrence& recurrence);

}  // namespace chokepoint::simulate

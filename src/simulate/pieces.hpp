// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step model's own values as the public description of a step.
#include <chokepoint/simulate/pieces.hpp>
#include <chokepoint/simulate/predict.hpp>

#include "layer.hpp"
#include "sharing.hpp"

namespace chokepoint::simulate {

/// What a stage's host needs beyond its device, and what its backward may delay, per micro-batch.
struct StageHost {
  double forward_s = 0;
  double backward_s = 0;
  double recompute_s = 0;
  double weight_gradient_s = 0;
};

/// All but the stages. `send_s`: a transfer between stages with what follows it on the other side.
Pieces step_pieces(const StepContext& context, const collective::Cost& hop, double send_s, bool blocking,
                   const Prediction& prediction);
/// `first`, `last`: embedding and head where the stage holds them, else null.
StagePieces stage_pieces(const StepContext& context, const LayerCost& layer, const EndCost* first, const EndCost* last,
                         const StageCost& stage, const StageHost& host);
/// First and last stage add up the gradients of the embedding they share.
TransferPieces tied_pieces(const StepContext& context, double embedding_parameters);

}  // namespace chokepoint::simulate

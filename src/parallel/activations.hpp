// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the operators of one layer keep for their backward, per token of the micro-batch on one rank.
#include <chokepoint/parallel/software.hpp>

namespace chokepoint::parallel {

struct LayerActivations {
  double saved = 0;          ///< kept until the layer's backward
  double recomputed = 0;     ///< saved while the layer is recomputed; equals `saved` without recomputation
  double checkpoint = 0;     ///< what stays of a fully recomputed layer
  double gradients = 0;      ///< gradients live while the layer's backward runs
  int gathers = 0;           ///< inputs of column-parallel products gathered in a forward, freed when the product has run
  double gathered = 0;       ///< bytes of one of them
  double widest = 0;         ///< bytes of the widest activation, gate and up projection together
};

LayerActivations layer_activations(const Job& job, const Strategy& strategy, const Software& software, model::LayerKind kind);
/// The mean layer of so many of each kind; what is live in one layer alone is the largest kind's.
LayerActivations mean_activations(const Job& job, const Strategy& strategy, const Software& software, const model::LayerCounts& kinds);

}  // namespace chokepoint::parallel

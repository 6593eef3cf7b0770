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
  double gathered = 0;       ///< gathered inputs of column-parallel products, freed as soon as the product has run
};

LayerActivations layer_activations(const Job& job, const Strategy& strategy, const Software& software);

}  // namespace chokepoint::parallel

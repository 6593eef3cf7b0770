// SPDX-License-Identifier: Apache-2.0
#pragma once
// What layers and the ends of a model are priced with.
#include "layer.hpp"

namespace chokepoint::simulate {

struct Product {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  double flops = 0;
};

/// y[T, n] = x[T, k] W[k, n] with its two backward products.
Product product(const StepContext& c, hardware::Dtype dtype, double tokens, double n, double k, double copies = 1);
/// Weight gradients of so many parameters on their way into the buffer that accumulates them.
double gradient_accumulation(const StepContext& c, double parameters);
/// Kernels inside a step against the same alone.
double in_step_factor(const StepContext& c);
/// Ranks that share what lies outside the tensor-parallel products: all of them with sequence parallelism.
double outside_split(const StepContext& c);

}  // namespace chokepoint::simulate

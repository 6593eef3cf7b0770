// SPDX-License-Identifier: Apache-2.0
#pragma once
// The 80 % band of a prediction.
#include <chokepoint/simulate/predict.hpp>

namespace chokepoint::simulate {

/// Fills the band from the bill: each class carries the relative error its model showed on published runs.
void set_band(const parallel::Job& job, const Constants& constants, Prediction& prediction);

}  // namespace chokepoint::simulate

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The 80 % band of a prediction.
#include <chokepoint/simulate/predict.hpp>

namespace chokepoint::simulate {

/// Fills the band from the bill: each class carries the relative error its model showed on published runs.
void set_band(const parallel::Job& job, const Constants& constants, Prediction& prediction);

/// What makes this band wider than need be: what a measurement or a word more would narrow.
std::vector<Note> why_band_is_wide(const parallel::Job& job, const Prediction& prediction);

}  // namespace chokepoint::simulate

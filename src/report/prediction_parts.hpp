// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces that the views of a prediction and of a plan share.
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

/// Half width of the 80 % band, upwards.
int band_percent(const simulate::Prediction& prediction);
std::string choke_text(const simulate::Prediction& prediction, const Style& style);
std::string ladder_text(const simulate::Prediction& prediction, double peak_flops_per_s, const Style& style);
std::string memory_text(const simulate::Prediction& prediction, const Style& style);
/// "Assumed (3)" and a line each; empty when nothing was assumed.
std::string assumptions_text(const std::vector<Note>& notes, const Style& style);
/// Text after `title`, wrapped to the width and continued under itself.
std::string titled(std::string_view title, std::string_view text, const Style& style);

}  // namespace chokepoint::report

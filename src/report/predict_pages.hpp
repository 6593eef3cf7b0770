// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sentences and money that the files of a prediction and of a plan share.
#include <chokepoint/report/pages.hpp>
#include <string>

namespace chokepoint::report {

/// What a prediction says, in one sentence.
std::string verdict_of(const simulate::Prediction& prediction, const Words& words);
/// What a plan says: the best strategy and what holds it back, or that nothing fits.
std::string verdict_of(const plan::Plan& plan, const Words& words);
/// Dollars a day of the job's accelerators; 0 without a price.
double usd_per_day(const parallel::Job& job);
double usd_per_billion_tokens(const parallel::Job& job, const simulate::Prediction& prediction);

}  // namespace chokepoint::report

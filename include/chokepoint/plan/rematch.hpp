// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leading candidates of a plan once more, in the event engine, with what the list leaves out and may overtake them there.
#include <chokepoint/plan/plan.hpp>

namespace chokepoint::plan {

/// Runs the first `count` candidates in the event engine, then every strategy (schedules and chunks included) that may
/// overtake them there, until none is left below the engine's best, or time or work run out. One that does overtake joins
/// the candidates at its place by the formula; what did not get its run joins `Plan::rejected` under kNotRun.
/// `seconds_left` 0: no limit of time.
void rematch(const parallel::Job& job, const Options& options, std::size_t count, double seconds_left, Plan& plan);

inline constexpr std::string_view kNotRun = "may overtake in the event engine, which did not get to them (at least)";

}  // namespace chokepoint::plan

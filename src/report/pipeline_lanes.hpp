// SPDX-License-Identifier: Apache-2.0
#pragma once
// The passes of a simulated step, stage by stage, as a page draws them.
#include <chokepoint/engine/engine.hpp>
#include <nlohmann/json.hpp>

namespace chokepoint::report {

/// {span_s, step_s, whole, lanes: [{stage, spans: [{start_s, end_s, kind, chunk, label}]}]}; `whole` is false where a
/// long step is cut after its first part.
nlohmann::ordered_json pipeline_lanes(const engine::Simulated& simulated);

}  // namespace chokepoint::report

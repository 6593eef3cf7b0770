// SPDX-License-Identifier: Apache-2.0
#pragma once
// The documents of --json before they are text: pages carry the same data.
#include <chokepoint/report/diagnose_view.hpp>
#include <chokepoint/report/predict_view.hpp>
#include <chokepoint/report/wiring_view.hpp>
#include <chokepoint/report/words.hpp>
#include <nlohmann/json.hpp>
#include <optional>

namespace chokepoint::report {

/// One prediction as it stands in a plan's list.
nlohmann::ordered_json prediction_data(const simulate::Prediction& prediction);
/// The head line of a job: model, accelerators, batch.
nlohmann::ordered_json job_data(const parallel::Job& job);
nlohmann::ordered_json predict_data(const parallel::Job& job, const simulate::Prediction& prediction,
                                    const std::optional<simulate::Implied>& implied, const Nearest& nearest);
nlohmann::ordered_json plan_data(const parallel::Job& job, const plan::Plan& plan);
nlohmann::ordered_json diagnose_data(const diagnose::Diagnosis& diagnosis);
nlohmann::ordered_json straggler_data(const diagnose::StragglerReport& report);
nlohmann::ordered_json hang_data(const diagnose::HangReport& report);
nlohmann::ordered_json log_data(const diagnose::LogReport& report);
nlohmann::ordered_json wiring_data(const WiringReport& report);
/// The map of a page, with its texts in the page's language.
std::string wiring_svg(const topology::Cluster& cluster, const Words& words);

}  // namespace chokepoint::report

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What became of a framework's settings: findings first, then what is not modelled or not known. As text after a
// prediction or a plan, and as the member "settings" of their JSON (docs/formats/json.md).
#include <chokepoint/frameworks/export.hpp>
#include <chokepoint/frameworks/frameworks.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <string>

namespace chokepoint::report {

std::string settings_text(const frameworks::Reading& reading, const Style& style, bool quiet);
/// The settings' own strategy beside the best of a plan: what the change is worth.
std::string own_strategy_text(const simulate::Prediction& own, const plan::Plan& plan, const Style& style);
/// The JSON document `json` with the member "settings".
std::string with_settings_json(const std::string& json, const frameworks::Reading& reading);

/// The files of an export one after the other, each under its name where there are several; then the notices.
std::string export_text(const frameworks::Export& result, const Style& style, bool quiet);
std::string export_json(const frameworks::Export& result, const parallel::Job& job, const parallel::Strategy& asked,
                        std::string_view target);

}  // namespace chokepoint::report

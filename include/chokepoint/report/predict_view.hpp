// SPDX-License-Identifier: Apache-2.0
#pragma once
// A prediction and a plan for people (text) and programs (JSON, docs/formats/json.md).
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/report/style.hpp>
#include <chokepoint/report/words.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <chokepoint/validate/nearest.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::report {

/// Published runs to show beside a prediction: as one line, or each of them.
struct Nearest {
  std::vector<validate::NearestRun> runs;
  bool listed = false;
};
std::string predict_text(const parallel::Job& job, const simulate::Prediction& prediction,
                         const std::optional<simulate::Implied>& implied, const Style& style, bool quiet, const Nearest& nearest = {});
std::string predict_json(const parallel::Job& job, const simulate::Prediction& prediction,
                         const std::optional<simulate::Implied>& implied, const Nearest& nearest = {});
std::string plan_text(const parallel::Job& job, const plan::Plan& plan, const Style& style, bool quiet);
std::string plan_json(const parallel::Job& job, const plan::Plan& plan);

/// "Llama-3-8B, 8.03 B parameters · 16 x a100-pcie-80gb on 2 hosts · ...": two lines.
std::string job_heading(const parallel::Job& job, const Words& words = Words::english());

}  // namespace chokepoint::report

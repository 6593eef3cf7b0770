// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results as files for people: one self-contained HTML page, Markdown to paste into a ticket, CSV for a spreadsheet
// (docs/formats/reports.md).
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/report/diagnose_view.hpp>
#include <chokepoint/report/page_form.hpp>
#include <chokepoint/report/predict_view.hpp>
#include <chokepoint/report/wiring_view.hpp>
#include <chokepoint/report/words.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::report {

/// A prediction with everything its files show.
struct PredictReport {
  const parallel::Job& job;
  const simulate::Prediction& prediction;
  std::optional<simulate::Implied> implied;
  Nearest nearest;
  const engine::Simulated* simulated = nullptr;  ///< for the picture of the pipeline
};
std::string predict_html(const PredictReport& report, const Words& words = Words::english(),
                         PageForm form = PageForm::kFile);
std::string predict_markdown(const PredictReport& report, const Words& words = Words::english());
/// One line per class of the bill, rung of the ladder, part of the memory and choke point.
std::string predict_csv(const PredictReport& report);

struct PlanReport {
  const parallel::Job& job;
  const plan::Plan& plan;
  std::vector<simulate::Prediction> every;  ///< all that fit, for the picture of time against memory; may be empty
  Nearest nearest;
  const engine::Simulated* simulated = nullptr;  ///< of the best strategy
};
std::string plan_html(const PlanReport& report, const Words& words = Words::english(),
                      PageForm form = PageForm::kFile);
std::string plan_markdown(const PlanReport& report, const Words& words = Words::english());
/// One line per candidate: strategy, time, band, memory, bill.
std::string plan_csv(const PlanReport& report);

std::string diagnose_html(const diagnose::Diagnosis& diagnosis, const Words& words = Words::english(),
                          PageForm form = PageForm::kFile);
std::string diagnose_markdown(const diagnose::Diagnosis& diagnosis, const Words& words = Words::english());
/// One line per rank: bill, waits, overlap.
std::string diagnose_csv(const diagnose::Diagnosis& diagnosis);
std::string straggler_html(const diagnose::StragglerReport& report, const Words& words = Words::english(),
                           PageForm form = PageForm::kFile);
std::string straggler_markdown(const diagnose::StragglerReport& report, const Words& words = Words::english());
std::string straggler_csv(const diagnose::StragglerReport& report);
std::string hang_html(const diagnose::HangReport& report, const Words& words = Words::english(),
                      PageForm form = PageForm::kFile);
std::string hang_markdown(const diagnose::HangReport& report, const Words& words = Words::english());
std::string hang_csv(const diagnose::HangReport& report);
std::string log_html(const diagnose::LogReport& report, const Words& words = Words::english(),
                     PageForm form = PageForm::kFile);
std::string log_markdown(const diagnose::LogReport& report, const Words& words = Words::english());
std::string log_csv(const diagnose::LogReport& report);

/// `renamed` is applied to every text of the page that comes from the files, not to its script.
std::string wiring_html(const WiringReport& report, const std::function<std::string(std::string_view)>& renamed = {},
                        PageForm form = PageForm::kFile, const Words& words = Words::english());
std::string wiring_markdown(const WiringReport& report, const Words& words = Words::english());
/// One line per finding.
std::string wiring_csv(const WiringReport& report);

}  // namespace chokepoint::report

// SPDX-License-Identifier: Apache-2.0
#include "timed_predict.hpp"

#include <array>
#include <chokepoint/base/files.hpp>
#include <chokepoint/report/timed_view.hpp>
#include <chokepoint/simulate/timed.hpp>
#include <chokepoint/wiring/measured_network.hpp>

namespace chokepoint::commands {
namespace {

Result<std::string> predict(const TimedOptions& options, const CommonOptions& common) {
  if (options.network.empty()) return fail("--timed needs --network FILE", {}, {"'chokepoint measure --network --save FILE' writes one"});
  TRY_INTO(const std::string network_text, read_text_file(options.network));
  TRY_INTO(const topology::MeasuredNetwork network, wiring::read_measured_network(network_text, options.network));
  TRY_INTO(const std::string plan_text, read_text_file(options.plan));
  TRY_INTO(const simulate::TimedPlan plan, simulate::read_timed_plan(plan_text, options.plan));
  std::vector<simulate::TimedStep> steps;
  for (const simulate::TimedCase& scheme : plan.cases) {
    TRY_INTO(simulate::TimedStep step, simulate::timed_step(plan, scheme, network));
    steps.push_back(std::move(step));
  }
  return common.json ? report::timed_json(plan, steps) : report::timed_text(plan, steps, network, report::terminal_style());
}

}  // namespace

void add_timed_options(CLI::App& command, TimedOptions& options) {
  command.add_option("--timed", options.plan, "steps whose computations take given times (docs/models/gloo.md), on the network of --network");
}

int predict_timed(const TimedOptions& options, const CommonOptions& common) {
  const Result<std::string> text = predict(options, common);
  const std::array<std::string, 2> inputs{options.plan, options.network};
  return text ? deliver(common, *text, 0, inputs) : report_error(text.error());
}

}  // namespace chokepoint::commands

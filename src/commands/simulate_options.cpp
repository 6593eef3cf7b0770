// SPDX-License-Identifier: Apache-2.0
#include "simulate_options.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/report/picture.hpp>
#include <chokepoint/report/simulate_view.hpp>
#include <fmt/format.h>

namespace chokepoint::commands {

namespace {

constexpr int kMostRanksShown = 64;
constexpr std::string_view kRankPlace = "{rank}";

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Result<bool> write_checked(const std::string& path, const std::string& content, std::span<const std::string> inputs) {
  TRY_INTO([[maybe_unused]] const bool safe, check_output(path, inputs));
  return write_text_file(path, ends_with(path, ".gz") ? report::gzipped(content) : content);
}

Result<bool> write_picture(const std::string& path, std::string svg, std::span<const std::string> inputs) {
  TRY_INTO(const std::string picture, report::picture_for(path, std::move(svg)));
  return write_checked(path, picture, inputs);
}

/// One file with all ranks, or where the name says {rank} one file for each.
Result<bool> write_timeline(const parallel::Job& job, const engine::Simulated& simulated, const std::string& path, std::span<const std::string> inputs) {
  const std::vector<int> ranks = report::timeline_ranks(simulated, kMostRanksShown);
  const std::span<const engine::Run> steps(&simulated.run, 1);
  const std::size_t place = path.find(kRankPlace);
  if (place == std::string::npos) return write_checked(path, report::timeline_json(job, simulated, steps, ranks), inputs);
  for (const int rank : ranks) {
    std::string own = path;
    own.replace(place, kRankPlace.size(), std::to_string(rank));
    TRY_INTO([[maybe_unused]] const bool written, write_checked(own, report::timeline_json(job, simulated, steps, {rank}), inputs));
  }
  return true;
}

/// One Chakra trace for each rank.
Result<bool> write_chakra(const engine::Simulated& simulated, const std::string& path, std::span<const std::string> inputs) {
  const std::size_t place = path.find(kRankPlace);
  if (place == std::string::npos)
    return fail(fmt::format("--chakra {}: expected a name with {}, for a Chakra trace holds one rank", path, kRankPlace), {},
                {"use --chakra step.{rank}.et"});
  constexpr int kMostFiles = 1024;
  for (const int rank : report::timeline_ranks(simulated, kMostFiles)) {
    std::string own = path;
    own.replace(place, kRankPlace.size(), std::to_string(rank));
    TRY_INTO([[maybe_unused]] const bool written, write_checked(own, report::chakra_trace(simulated, rank), inputs));
  }
  return true;
}

}  // namespace

void add_simulate_options(CLI::App& command, SimulateFlags& flags) {
  command.add_flag("--simulate", flags.simulate, "also run the step event by event, with transfers that share links");
  command.add_flag("--every-rank", flags.every_rank, "simulate every rank by itself instead of one for all that behave alike (slower, same result)");
  command.add_flag("--no-contention", flags.alone, "simulate every transfer as if alone on the wires");
  command.add_option("--routing", flags.routing, "how the fabric spreads simulated transfers over equal ways: spray (ideal, as the formula has it), adaptive (the emptiest cable for each flow), ecmp (by hash)")
      ->check(CLI::IsMember({"spray", "adaptive", "ecmp"}));
  command.add_option("--imperfection", flags.imperfections, "what differs from the ideal: slow-rank=17:1.08, slow-host=3:0.5, stall=5:200ms/10, jitter=2%, sequences=10%, experts=1.3, last-stage=1.2, seed=7; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--steps", flags.steps, "steps drawn to tell the spread of step times and the cost of each imperfection")->check(CLI::Range(1, 10000));
  command.add_option("--timeline", flags.timeline, "write the simulated step as a trace: out.json.gz, all ranks in one file for Perfetto, or out.{rank}.json.gz, a file for each rank as chokepoint diagnose reads them");
  command.add_option("--pipeline-svg", flags.pipeline_svg, "draw the simulated passes of each pipeline stage; a name that ends in .png gets a PNG");
  command.add_option("--chakra", flags.chakra, "write the simulated step as Chakra execution traces, one file for each rank: step.{rank}.et; one for each kind of rank where there are more than 1,024");
  command.add_option("--links-svg", flags.links_svg, "draw how full the busiest links are in the course of the simulated step; a name that ends in .png gets a PNG");
}

Result<Simulation> run_simulation(const simulate::Predictor& predictor, const simulate::Prediction& prediction, const SimulateFlags& flags,
                                  std::span<const std::string> inputs) {
  engine::SimulateOptions options;
  options.folded = !flags.every_rank;
  options.contention = !flags.alone;
  options.spread = flags.routing == "ecmp"       ? flow::Spread::kHash
                   : flags.routing == "adaptive" ? flow::Spread::kAdaptive
                                                 : flow::Spread::kSpray;
  options.graph.by_layer = !flags.timeline.empty();
  options.record = !flags.links_svg.empty();
  for (const std::string& one : flags.from_file) {
    Result<bool> parsed = engine::parse_imperfection(one, options.imperfections);
    if (!parsed) return fail(parsed.error().message, flags.from_file_pos);
  }
  for (const std::string& one : flags.imperfections) {
    TRY_INTO([[maybe_unused]] const bool parsed, engine::parse_imperfection(one, options.imperfections));
  }
  Simulation s;
  TRY_INTO(s.step, engine::simulate_step(predictor, prediction.strategy, options));
  if (options.imperfections.any() || flags.steps > 0) {
    constexpr int kUsualSteps = 20;
    TRY_INTO(s.spread, engine::simulate_spread(predictor, prediction.strategy, options, flags.steps > 0 ? flags.steps : kUsualSteps));
  }
  if (!flags.timeline.empty()) {
    TRY_INTO([[maybe_unused]] const bool written, write_timeline(predictor.job(), s.step, flags.timeline, inputs));
  }
  if (!flags.pipeline_svg.empty()) {
    TRY_INTO([[maybe_unused]] const bool written, write_picture(flags.pipeline_svg, report::pipeline_svg(s.step), inputs));
  }
  if (!flags.chakra.empty()) {
    TRY_INTO([[maybe_unused]] const bool written, write_chakra(s.step, flags.chakra, inputs));
  }
  if (!flags.links_svg.empty()) {
    TRY_INTO([[maybe_unused]] const bool written, write_picture(flags.links_svg, report::links_svg(s.step), inputs));
  }
  return s;
}

std::string with_simulation(const std::string& text, const Simulation& s, const simulate::Prediction& prediction, bool json) {
  return json ? report::with_simulated_json(text, s.step, s.spread) : text + report::simulated_text(s.step, prediction, s.spread, report::terminal_style());
}

std::optional<engine::Simulated> for_picture(const simulate::Predictor& predictor, const simulate::Prediction& prediction) {
  if (prediction.strategy.pipeline < 2) return std::nullopt;
  Result<engine::Simulated> simulated = engine::simulate_step(predictor, prediction.strategy, {});
  return simulated ? std::optional<engine::Simulated>(std::move(*simulated)) : std::nullopt;
}

}  // namespace chokepoint::commands

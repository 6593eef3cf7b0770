// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that run a step in the event engine.
#include <CLI/CLI.hpp>
#include <chokepoint/engine/engine.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chokepoint::commands {

struct SimulateFlags {
  bool simulate = false;
  bool every_rank = false;
  bool alone = false;
  std::string routing;         ///< empty: spray
  std::vector<std::string> imperfections;
  int steps = 0;               ///< drawn for the spread; 0: one, or 20 where something is drawn
  std::string timeline;
  std::string pipeline_svg;
  std::string links_svg;
  std::string chakra;
  std::vector<std::string> from_file;  ///< imperfections of the job file
  SourcePos from_file_pos;
  bool wanted() const { return simulate || every_rank || alone || !routing.empty() || !imperfections.empty() || steps > 0 || !timeline.empty() || !pipeline_svg.empty() || !links_svg.empty() || !chakra.empty() || !from_file.empty(); }
};

void add_simulate_options(CLI::App& command, SimulateFlags& flags);

struct Simulation {
  engine::Simulated step;
  std::optional<engine::Spread> spread;
};

/// Runs the step of a prediction; writes the timeline and the picture where asked for.
Result<Simulation> run_simulation(const simulate::Predictor& predictor, const simulate::Prediction& prediction, const SimulateFlags& flags,
                                  std::span<const std::string> inputs);
/// The step of a pipelined strategy for a page's picture; none without a pipeline, or where the engine refuses the step.
std::optional<engine::Simulated> for_picture(const simulate::Predictor& predictor, const simulate::Prediction& prediction);
/// The prediction's text or JSON with the simulated step added.
std::string with_simulation(const std::string& text, const Simulation& simulation, const simulate::Prediction& prediction, bool json);

}  // namespace chokepoint::commands

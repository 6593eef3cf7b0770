// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated step for people, for programs, and as pictures: a trace that Perfetto opens and diagnose reads back, and
// the pipeline's passes as SVG.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/report/style.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chokepoint::report {

/// Below the text of a prediction: simulated beside formula, the bill with wire and wait, losses by cause.
std::string simulated_text(const engine::Simulated& simulated, const simulate::Prediction& formula,
                           const std::optional<engine::Spread>& spread, const Style& style);
/// `predict_json`'s document with a member "simulated" added.
std::string with_simulated_json(const std::string& predict_json, const engine::Simulated& simulated,
                                const std::optional<engine::Spread>& spread);

/// A Kineto trace of some ranks (each a process) over consecutive steps, uncompressed. With one rank it is that rank's
/// own file, as torch.profiler would have written it.
std::string timeline_json(const parallel::Job& job, const engine::Simulated& simulated,
                          std::span<const engine::Run> steps, const std::vector<int>& ranks);
/// A Chakra execution trace of one rank (MLCommons et_def.proto, length-delimited): what simulators such as ASTRA-sim run.
std::string chakra_trace(const engine::Simulated& simulated, int rank);
/// Ranks worth showing: all of a small job, else the lowest rank of each class; at most `most`.
std::vector<int> timeline_ranks(const engine::Simulated& simulated, int most);
/// gzip, the same bytes for the same text.
std::string gzipped(const std::string& text);

/// One row per pipeline stage, time to the right, passes by colour with their micro-batch.
std::string pipeline_svg(const engine::Simulated& simulated);
/// One row per class of links, the busiest first, shaded by how full it is in the course of the step. Needs a step that
/// was run with SimulateOptions::record.
std::string links_svg(const engine::Simulated& simulated);

}  // namespace chokepoint::report

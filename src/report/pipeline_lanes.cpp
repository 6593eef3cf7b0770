// SPDX-License-Identifier: Apache-2.0
#include "pipeline_lanes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace chokepoint::report {

using engine::Op;
using engine::OpTime;
using engine::Simulated;
using engine::Work;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kMostStages = 32;
constexpr std::size_t kMostSpans = 3000;  ///< boxes that a page draws without delay

std::string_view kind_of(Work work) {
  switch (work) {
    case Work::kForward:
      return "forward";
    case Work::kBackward:
      return "backward";
    case Work::kWeightGradient:
      return "weight";
    case Work::kRecompute:
      return "recompute";
    case Work::kHost:
    case Work::kFixed:
    case Work::kOffload:
    case Work::kOptimizer:
      return "optimizer";
    default:
      return "communication";
  }
}

struct Span {
  double start_s = 0, end_s = 0;
  std::string_view kind;
  int micro_batch = -1;
  int chunk = 0;
};

bool is_pass(std::string_view kind) { return kind != "communication" && kind != "optimizer"; }

/// Operations of one pass that follow each other are one span, its exposed communication and launches included.
std::vector<Span> spans_of(const Simulated& s, std::size_t rank_class) {
  const engine::StageGraph& stage = s.graph.stages[static_cast<std::size_t>(s.fold.classes[rank_class].stage)];
  std::vector<Span> spans;
  for (const std::uint32_t i : stage.lanes[static_cast<std::size_t>(engine::Lane::kCompute)]) {
    const Op& op = stage.ops[i];
    const OpTime& t = s.run.times[rank_class][i];
    if (t.end_s <= t.start_s) continue;
    const Span next{t.start_s, t.end_s, kind_of(op.work), op.micro_batch, op.chunk};
    const bool follows = !spans.empty() && spans.back().micro_batch == next.micro_batch &&
                         spans.back().chunk == next.chunk && next.start_s <= spans.back().end_s + 1e-9;
    const bool of_pass = follows && next.micro_batch >= 0 && (!is_pass(next.kind) || !is_pass(spans.back().kind));
    if (!follows || (!of_pass && spans.back().kind != next.kind)) {
      spans.push_back(next);
      continue;
    }
    if (!is_pass(spans.back().kind)) spans.back().kind = next.kind;
    spans.back().end_s = next.end_s;
  }
  return spans;
}

/// To the microsecond: enough for a picture, and half the text.
double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

Json span_json(const Span& span) {
  Json out = {
      {"start_s", rounded(span.start_s)}, {"end_s", rounded(span.end_s)}, {"kind", span.kind}, {"chunk", span.chunk}};
  if (span.micro_batch >= 0) out["label"] = std::to_string(span.micro_batch);
  return out;
}

}  // namespace

Json pipeline_lanes(const Simulated& s) {
  std::vector<std::vector<Span>> lanes;
  std::vector<double> starts;
  for (int stage = 0; stage < std::min(s.layout.pipeline, kMostStages); ++stage) {
    const auto found =
        std::find_if(s.fold.classes.begin(), s.fold.classes.end(), [stage](const auto& c) { return c.stage == stage; });
    if (found == s.fold.classes.end()) continue;
    lanes.push_back(spans_of(s, static_cast<std::size_t>(found - s.fold.classes.begin())));
    for (const Span& span : lanes.back()) starts.push_back(span.start_s);
  }
  // Of a long step its first part: where the pipeline fills and settles.
  double until_s = std::numeric_limits<double>::infinity();
  if (starts.size() > kMostSpans) {
    std::nth_element(starts.begin(), starts.begin() + kMostSpans, starts.end());
    until_s = starts[kMostSpans];
  }
  Json out = {{"span_s", std::min(until_s, s.step_s)},
              {"step_s", s.step_s},
              {"whole", until_s > s.step_s},
              {"lanes", Json::array()}};
  for (std::size_t stage = 0; stage < lanes.size(); ++stage) {
    Json spans = Json::array();
    for (const Span& span : lanes[stage]) {
      if (span.start_s < until_s) spans.push_back(span_json(span));
    }
    out["lanes"].push_back({{"stage", stage}, {"spans", std::move(spans)}});
  }
  return out;
}

}  // namespace chokepoint::report

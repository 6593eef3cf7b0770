// SPDX-License-Identifier: Apache-2.0
// The pipeline chart that papers draw: one row per stage, passes in time. Colours are those of forward (blue), backward
// (green), weight gradient (pale green), recomputation (violet), exposed communication (orange) and the step's end
// (grey).
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/simulate_view.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::report {

using engine::Op;
using engine::OpTime;
using engine::Simulated;
using engine::Work;

namespace {

constexpr double kWidth = 1200;
constexpr double kLeft = 70;
constexpr double kRow = 26;

std::string_view colour_of(Work work) {
  switch (work) {
    case Work::kForward:
      return "#4e79a7";
    case Work::kBackward:
      return "#59a14f";
    case Work::kWeightGradient:
      return "#b6d7a8";
    case Work::kRecompute:
      return "#af7aa1";
    case Work::kHost:
    case Work::kFixed:
    case Work::kOffload:
    case Work::kOptimizer:
      return "#9c9c9c";
    default:
      return "#f28e2b";
  }
}

/// Neighbouring operations of one pass become one box.
struct Box {
  double start_s, end_s;
  Work work;
  int micro_batch;
  int chunk;
};

std::vector<Box> boxes_of(const Simulated& s, std::size_t c) {
  const engine::StageGraph& stage = s.graph.stages[static_cast<std::size_t>(s.fold.classes[c].stage)];
  std::vector<Box> boxes;
  for (const std::uint32_t i : stage.lanes[static_cast<std::size_t>(engine::Lane::kCompute)]) {
    const Op& op = stage.ops[i];
    const OpTime& t = s.run.times[c][i];
    if (op.work == Work::kNorm || t.end_s <= t.start_s) continue;
    const bool joins = !boxes.empty() && boxes.back().work == op.work && boxes.back().micro_batch == op.micro_batch &&
                       boxes.back().chunk == op.chunk && t.start_s <= boxes.back().end_s + 1e-9;
    if (joins) {
      boxes.back().end_s = t.end_s;
    } else {
      boxes.push_back({t.start_s, t.end_s, op.work, op.micro_batch, op.chunk});
    }
  }
  return boxes;
}

/// The class shown for each stage: the one with the lowest rank.
std::vector<std::size_t> shown_classes(const Simulated& s) {
  std::vector<std::size_t> shown;
  for (int stage = 0; stage < s.layout.pipeline; ++stage) {
    for (std::size_t c = 0; c < s.fold.classes.size(); ++c) {
      if (s.fold.classes[c].stage != stage) continue;
      shown.push_back(c);
      break;
    }
  }
  return shown;
}

}  // namespace

std::string pipeline_svg(const Simulated& s) {
  const std::vector<std::size_t> shown = shown_classes(s);
  const double height = kRow * static_cast<double>(shown.size()) + 60;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n",
      kWidth, height);
  out += fmt::format("<title>{}: one step of {}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                     parallel::to_text(s.strategy), format_duration(s.step_s));
  const double scale = s.step_s > 0 ? (kWidth - kLeft - 10) / s.step_s : 0;
  for (std::size_t row = 0; row < shown.size(); ++row) {
    const double y = 10 + kRow * static_cast<double>(row);
    out += fmt::format(
        "<text x=\"4\" y=\"{:.1f}\">stage {}</text>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" fill=\"#f0f0f0\"/>\n",
        y + 15, row, kLeft, y, kWidth - kLeft - 10, kRow - 4);
    for (const Box& b : boxes_of(s, shown[row])) {
      const double x = kLeft + b.start_s * scale;
      const double width = (b.end_s - b.start_s) * scale;
      if (width < 0.05) continue;
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{} {}, "
          "{}</title></rect>\n",
          x, y, width, kRow - 4, colour_of(b.work), engine::name(b.work), b.micro_batch,
          format_duration(b.end_s - b.start_s));
      if (width > 12 && b.micro_batch >= 0) {
        out += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#ffffff\">{}</text>\n",
                           x + width / 2, y + 15, b.micro_batch);
      }
    }
  }
  const double y = height - 30;
  double x = kLeft;
  for (const auto& [work, word] : {std::pair{Work::kForward, "forward"},
                                   {Work::kBackward, "backward"},
                                   {Work::kWeightGradient, "weight gradient"},
                                   {Work::kRecompute, "recompute"},
                                   {Work::kReduce, "exposed communication"},
                                   {Work::kOptimizer, "optimizer, host"}}) {
    out += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.0f}\" "
        "y=\"{:.0f}\">{}</text>\n",
        x, y, colour_of(work), x + 16, y + 10, word);
    x += 160;
  }
  return out +
         fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">step {}</text>\n</svg>\n", x, y + 10, format_duration(s.step_s));
}

}  // namespace chokepoint::report

// SPDX-License-Identifier: Apache-2.0
// How full links are in the course of a step: a row for each class of links, time to the right in equal bins, white for
// idle to dark red for full.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/simulate_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace chokepoint::report {

using engine::Run;
using engine::Simulated;

namespace {

constexpr std::size_t kRows = 24;
constexpr std::size_t kBins = 240;
constexpr double kLeft = 330;
constexpr double kBin = 3.5;
constexpr double kRow = 22;

struct Row {
  int link = 0;
  double busy_s = 0;
  std::vector<double> bins;  ///< share of the link's capacity
};

/// A flow's seconds at full rate, spread evenly over the time it lasted.
void add(const Run::Passage& passage, double bin_s, std::vector<double>& bins) {
  const double lasted = std::max(passage.end_s - passage.start_s, 1e-12);
  const double rate = passage.busy_s / lasted;
  const auto last = static_cast<double>(bins.size() - 1);
  const auto first_bin = static_cast<std::size_t>(std::clamp(passage.start_s / bin_s, 0.0, last));
  const auto last_bin = static_cast<std::size_t>(std::clamp(passage.end_s / bin_s, 0.0, last));
  for (std::size_t b = first_bin; b <= last_bin; ++b) {
    const double from = std::max(passage.start_s, static_cast<double>(b) * bin_s);
    const double to = std::min(passage.end_s, static_cast<double>(b + 1) * bin_s);
    if (to > from) bins[b] += rate * (to - from) / bin_s;
  }
}

std::vector<Row> busiest_rows(const Simulated& s) {
  std::vector<int> order(s.run.link_busy_s.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return s.run.link_busy_s[static_cast<std::size_t>(a)] > s.run.link_busy_s[static_cast<std::size_t>(b)];
  });
  std::vector<int> row_of(order.size(), -1);
  std::vector<Row> rows;
  for (const int link : order) {
    const double busy = s.run.link_busy_s[static_cast<std::size_t>(link)];
    if (rows.size() >= kRows || busy <= 0) break;
    row_of[static_cast<std::size_t>(link)] = static_cast<int>(rows.size());
    rows.push_back({link, busy, std::vector<double>(kBins, 0.0)});
  }
  for (const Run::Passage& passage : s.run.passages) {
    const int row = row_of[static_cast<std::size_t>(passage.link)];
    if (row < 0) continue;
    add(passage, s.step_s / static_cast<double>(kBins), rows[static_cast<std::size_t>(row)].bins);
  }
  return rows;
}

/// White over orange to dark red.
std::string shade(double share) {
  const double x = std::clamp(share, 0.0, 1.0);
  const auto part = [x](double empty, double full) { return static_cast<int>(std::lround(empty + (full - empty) * x)); };
  return fmt::format("#{:02x}{:02x}{:02x}", part(255, 160), part(245, 20), part(235, 30));
}

}  // namespace

std::string links_svg(const Simulated& s) {
  const std::vector<Row> rows = s.ways != nullptr && s.step_s > 0 ? busiest_rows(s) : std::vector<Row>();
  const double width = kLeft + kBin * static_cast<double>(kBins) + 70;
  const double height = kRow * static_cast<double>(rows.size()) + 50;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<title>{2}: links in one step of {3}</title>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n",
      width, height, parallel::to_text(s.strategy), format_duration(s.step_s));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const engine::SharedLink& link = s.fold.links[static_cast<std::size_t>(row.link)];
    const double y = 10 + kRow * static_cast<double>(r);
    const std::string alike = link.count > 1 ? fmt::format(" (and {} alike)", link.count - 1) : std::string();
    std::string name = s.ways->platform->name_of(link.representative);
    for (char& c : name) c = c == '<' || c == '&' || c == '>' ? (c == '>' ? '\x01' : '?') : c;
    for (std::size_t at = name.find('\x01'); at != std::string::npos; at = name.find('\x01')) name.replace(at, 1, "&gt;");
    out += fmt::format("<text x=\"4\" y=\"{:.1f}\">{}{}</text>\n", y + 14, name, alike);
    for (std::size_t b = 0; b < row.bins.size(); ++b) {
      if (row.bins[b] < 0.005) continue;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\"><title>{:.0f} % full at "
          "{}</title></rect>\n",
          kLeft + kBin * static_cast<double>(b), y, kBin, kRow - 4, shade(row.bins[b] / link.share),
          100 * row.bins[b] / link.share, format_duration(s.step_s * (static_cast<double>(b) + 0.5) / kBins));
    }
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"none\" stroke=\"#cccccc\"/>\n",
                       kLeft, y, kBin * static_cast<double>(kBins), kRow - 4);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{:.0f} %</text>\n", kLeft + kBin * static_cast<double>(kBins) + 8,
                       y + 14, 100 * row.busy_s / link.share / s.step_s);
  }
  if (rows.empty()) out += "<text x=\"4\" y=\"24\">no transfer of this step shares a link</text>\n";
  return out + fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">step {}; at the right the mean over it</text>\n</svg>\n", kLeft,
                           height - 14, format_duration(s.step_s));
}

}  // namespace chokepoint::report

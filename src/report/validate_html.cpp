// SPDX-License-Identifier: Apache-2.0
// One page without outside references: style and drawings are inline, so that it can be sent as a single file.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/validate_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::report {
namespace {

using validate::RunRow;
using validate::Summary;

constexpr std::size_t kWorst = 20;
constexpr double kPlot = 520, kMargin = 56;
constexpr double kBarWidth = 260, kBarFull = 0.5;

constexpr std::string_view kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;color:#1c2430;background:#fbfcfd;max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;font-size:13px}td,th{padding:2px 10px 2px 0;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}th{color:#5b6675;font-weight:600;border-bottom:1px solid #d5dbe3}
.grid{display:flex;flex-wrap:wrap;gap:2rem}.A{fill:#1f6fb2}.B{fill:#d98a1f}.C{fill:#9aa4b1}circle{opacity:.55}
.axis{stroke:#c8d0d9}.band{fill:#1f6fb2;opacity:.07}text{font:12px system-ui,sans-serif;fill:#5b6675}
.good{fill:#3a9d5d}.fair{fill:#d9a21f}.poor{fill:#c9503c}.dim{color:#5b6675}
@media(prefers-color-scheme:dark){body{color:#dbe2ea;background:#12161c}th{border-color:#39424e}.axis{stroke:#39424e}}
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }
std::string signed_percent(double value) { return fmt::format("{:+.1f} %", 100 * value); }

std::string_view trust_class(const RunRow& row) { return row.trust == "A" ? "A" : row.trust == "B" ? "B" : "C"; }

/// Predicted over measured, both logarithmic, with a band of +-15 %.
std::string scatter(const std::vector<RunRow>& rows) {
  double low = 1e300, high = 0;
  for (const RunRow& row : rows) {
    if (!row.step_time_error) continue;
    low = std::min({low, *row.measured_step_time_s, row.prediction->step_time_s});
    high = std::max({high, *row.measured_step_time_s, row.prediction->step_time_s});
  }
  if (high <= 0) return "";
  const double from = std::floor(std::log10(low)), to = std::max(from + 1, std::ceil(std::log10(high)));
  const auto at = [&](double value) { return kMargin + (std::log10(value) - from) / (to - from) * kPlot; };
  const auto up = [&](double value) { return kPlot + kMargin - (at(value) - kMargin); };
  const double size = kPlot + 2 * kMargin;
  std::string svg = fmt::format("<svg width=\"{0:.0f}\" height=\"{0:.0f}\" role=\"img\" aria-label=\"predicted over "
                                "measured step time\">", size);
  const double least = std::pow(10, from), most = std::pow(10, to);
  svg += fmt::format("<polygon class=\"band\" points=\"{0:.1f},{1:.1f} {2:.1f},{3:.1f} {2:.1f},{4:.1f} {0:.1f},{5:.1f}\"/>",
                     at(least), up(least * 1.15), at(most), up(most * 1.15), up(most * 0.85), up(least * 0.85));
  for (double decade = from; decade <= to; ++decade) {
    const double value = std::pow(10, decade);
    svg += fmt::format("<path class=\"axis\" d=\"M{0:.1f} {1:.1f}V{2:.1f}M{1:.1f} {3:.1f}H{4:.1f}\"/>", at(value), kMargin,
                       kPlot + kMargin, up(value), kPlot + kMargin);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", at(value), kPlot + kMargin + 18,
                       format_duration(value));
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kMargin - 6, up(value) + 4,
                       format_duration(value));
  }
  for (const RunRow& row : rows) {
    if (!row.step_time_error) continue;
    svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>row {} {} {}: {}</title></circle>",
                       trust_class(row), at(*row.measured_step_time_s), up(row.prediction->step_time_s), row.row,
                       escaped(row.source_id), escaped(row.job->model.name), signed_percent(*row.step_time_error));
  }
  svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">measured</text>", size / 2, size - 14);
  svg += fmt::format("<text x=\"14\" y=\"{0:.0f}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0:.0f})\">predicted"
                     "</text></svg>", size / 2);
  return svg + "<p class=\"dim\">Blue: trust A, orange: B, grey: C. Band: within 15 %.</p>";
}

std::string error_table(std::string_view title, std::vector<Summary> summaries) {
  if (summaries.empty()) return "";
  std::stable_sort(summaries.begin(), summaries.end(), [](const Summary& a, const Summary& b) {
    return a.predicted > 0 && (b.predicted == 0 || a.median_absolute < b.median_absolute);
  });
  std::string html = fmt::format("<section><h2>{}</h2><table><tr><th></th><th>rows</th><th>predicted</th><th>median</th>"
                                 "<th>p90</th><th>bias</th><th></th></tr>", title);
  for (const Summary& s : summaries) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", escaped(s.name), s.rows, s.predicted);
    if (s.predicted == 0) {
      html += "<td>-</td><td></td><td></td><td></td></tr>";
      continue;
    }
    const std::string_view colour = s.median_absolute <= 0.15 ? "good" : s.median_absolute <= 0.3 ? "fair" : "poor";
    html += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td><svg width=\"{:.0f}\" height=\"12\"><rect class=\"{}\" "
                        "width=\"{:.1f}\" height=\"12\"/></svg></td></tr>",
                        percent(s.median_absolute), percent(s.p90_absolute), signed_percent(s.bias), kBarWidth, colour,
                        std::min(1.0, s.median_absolute / kBarFull) * kBarWidth);
  }
  return html + "</table></section>";
}

/// The three largest classes of the bill, as shares of the predicted step.
std::string bill_words(const simulate::Prediction& prediction) {
  std::vector<std::pair<double, std::string_view>> items;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto item = static_cast<simulate::Bill>(i);
    if (prediction.item(item) > 0) items.emplace_back(prediction.item(item), simulate::name(item));
  }
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string words;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, items.size()); ++i) {
    words += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", items[i].second,
                         100 * items[i].first / prediction.step_time_s);
  }
  return words;
}

std::string worst_rows(const std::vector<RunRow>& rows) {
  std::vector<const RunRow*> sorted;
  for (const RunRow& row : rows) {
    if (row.step_time_error && row.trust != "C") sorted.push_back(&row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const RunRow* a, const RunRow* b) {
    return std::abs(std::log1p(*a->step_time_error)) > std::abs(std::log1p(*b->step_time_error));
  });
  std::string html = "<h2>Farthest off (trust A and B)</h2><table><tr><th>row</th><th>source</th><th>model</th><th>GPUs"
                     "</th><th>strategy</th><th>measured</th><th>predicted</th><th>error</th><th>bill</th></tr>";
  for (std::size_t i = 0; i < std::min(kWorst, sorted.size()); ++i) {
    const RunRow& row = *sorted[i];
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{} {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
                        "<td>{}</td></tr>",
                        row.row, escaped(row.source_id), escaped(row.job->model.name), row.job->gpus,
                        escaped(row.job->accelerator.name), escaped(parallel::to_text(row.strategy)),
                        format_duration(*row.measured_step_time_s), format_duration(row.prediction->step_time_s),
                        signed_percent(*row.step_time_error), bill_words(*row.prediction));
  }
  return html + "</table>";
}

std::string trust_table(const validate::RunsReport& report) {
  std::string html = "<table><tr><th>trust</th><th>rows</th><th>coverage</th><th>sources</th><th>median of source medians"
                     "</th><th>bias</th><th>p90 of rows</th></tr>";
  for (const validate::TrustSummary& t : report.by_trust) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                        escaped(t.trust), t.all.rows, percent(t.all.coverage()), t.sources,
                        percent(t.median_of_source_medians), signed_percent(t.median_of_source_biases),
                        percent(t.all.p90_absolute));
  }
  return html + "</table>";
}

}  // namespace

std::string runs_html(const validate::RunsReport& report, const std::string& file) {
  std::string html = fmt::format("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
                                 "content=\"width=device-width\"><title>Chokepoint validation</title><style>{}</style>",
                                 kStyle);
  html += fmt::format("<h1>Predicted against measured</h1><p class=\"dim\">{}: {} of {} rows with a measured time "
                      "predicted ({}).</p>", escaped(file), report.overall.predicted, report.overall.rows,
                      percent(report.overall.coverage()));
  html += trust_table(report) + "<h2>Step time</h2>" + scatter(report.rows);
  html += "<div class=\"grid\">" + error_table("By source", report.by_source) +
          error_table("By source, trust A", report.by_source_a) + error_table("By accelerator", report.by_accelerator) +
          error_table("By framework", report.by_framework) + error_table("By strategy", report.by_strategy) +
          error_table("By parameters", report.by_size) + error_table("By GPUs", report.by_gpus) + "</div>";
  return html + worst_rows(report.rows) + "</html>\n";
}

}  // namespace chokepoint::report

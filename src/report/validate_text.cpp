// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/validate_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::report {
namespace {

using validate::RunRow;
using validate::Summary;

constexpr int kBarCells = 20;
constexpr double kBarFull = 0.5;  // an error of 50 % fills the bar
constexpr double kGood = 0.15, kPoor = 0.30;
constexpr double kGoodTau = 0.85;
constexpr int kTitleWidth = 14;
constexpr std::string_view kNoBreak = "\xC2\xA0";
constexpr std::size_t kReasonsShown = 12, kWorstShown = 8;

std::string percent(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string signed_percent(double value) { return fmt::format("{:+.1f}%", 100 * value); }

std::string coloured(const Style& style, double error, const std::string& text) {
  if (error <= kGood) return style.green(text);
  return error <= kPoor ? style.yellow(text) : style.red(text);
}

std::string cut(const std::string& text, std::size_t columns) {
  return text.size() <= columns ? text : text.substr(0, columns - 2) + "..";
}

std::string table_head(const Style& style, std::string_view title) {
  return "\n" + style.bold(pad_right(title, 30)) +
         style.dim("  rows  done   median     mean      p90     bias") + "\n";
}

std::string table_row(const Style& style, const Summary& s) {
  std::string line = pad_right(cut(s.name, 30), 30) + fmt::format(" {:5} {:5} ", s.rows, s.predicted);
  if (s.predicted == 0) return line + style.dim("       -") + "\n";
  line += coloured(style, s.median_absolute, pad_left(percent(s.median_absolute), 8)) + " ";
  line += pad_left(percent(s.mean_absolute), 8) + " " + pad_left(percent(s.p90_absolute), 8) + " " +
          pad_left(signed_percent(s.bias), 8) + "  ";
  return line + coloured(style, s.median_absolute, bar(s.median_absolute / kBarFull, kBarCells)) + "\n";
}

std::string table(const Style& style, std::string_view title, std::vector<Summary> summaries, bool by_error) {
  if (summaries.empty()) return "";
  if (by_error) {
    std::stable_sort(summaries.begin(), summaries.end(), [](const Summary& a, const Summary& b) {
      return a.predicted > 0 && (b.predicted == 0 || a.median_absolute < b.median_absolute);
    });
  }
  std::string out = table_head(style, title);
  for (const Summary& summary : summaries) out += table_row(style, summary);
  return out;
}

std::string headline(const validate::RunsReport& report, const Style& style) {
  std::string out = style.bold(fmt::format("{} of {} rows with a measured time predicted ({})\n", report.overall.predicted,
                                           report.overall.rows, percent(report.overall.coverage())));
  for (const validate::TrustSummary& t : report.by_trust) {
    if (t.sources == 0) continue;
    out += fmt::format("trust {}: {} sources, median of their medians {}, bias {}, {} within 15 %; rows: {} of {}, p90 {}\n",
                       t.trust, t.sources,
                       coloured(style, t.median_of_source_medians, percent(t.median_of_source_medians)),
                       signed_percent(t.median_of_source_biases), t.sources_within_15_percent, t.all.predicted, t.all.rows,
                       percent(t.all.p90_absolute));
  }
  if (report.memory.predicted > 0) {
    out += fmt::format("peak memory: {} rows, median error {}, p90 {}, bias {}\n", report.memory.predicted,
                       percent(report.memory.median_absolute), percent(report.memory.p90_absolute),
                       signed_percent(report.memory.bias));
  }
  return out;
}

/// "2021 12.3% of 120 · 2022 9.8% of 310": the median error of each class, for one screen.
std::string classes_line(const Style& style, std::string_view title, const std::vector<Summary>& summaries) {
  std::string words;
  for (const Summary& s : summaries) {
    if (s.predicted == 0) continue;
    std::string name;  // a class is never broken over two lines
    for (const char c : s.name) name += c == ' ' ? std::string(kNoBreak) : std::string(1, c);
    words += fmt::format("{}{}{}{}{}of{}{}", words.empty() ? "" : fmt::format("{}\u00b7 ", kNoBreak), name, kNoBreak,
                         percent(s.median_absolute), kNoBreak, kNoBreak, s.predicted);
  }
  if (words.empty()) return "";
  std::string out, head = pad_right(title, kTitleWidth);
  for (std::string line : wrapped(words, style.width - kTitleWidth)) {
    for (std::size_t at = line.find(kNoBreak); at != std::string::npos; at = line.find(kNoBreak, at)) line.replace(at, kNoBreak.size(), " ");
    out += style.bold(head) + line + "\n";
    head = std::string(kTitleWidth, ' ');
  }
  return out;
}

/// The sources of trust A that are farthest off.
std::vector<Summary> worst_sources(std::vector<Summary> summaries) {
  summaries.erase(std::remove_if(summaries.begin(), summaries.end(), [](const Summary& s) { return s.median_absolute <= kGood; }),
                  summaries.end());
  std::stable_sort(summaries.begin(), summaries.end(),
                   [](const Summary& a, const Summary& b) { return a.median_absolute > b.median_absolute; });
  return summaries;
}

std::string order_lines(const validate::RunsReport& report, const Style& style) {
  std::string out;
  for (const validate::StrategyOrder& order : report.order) {
    const std::string tau = fmt::format("{:.2f}", order.mean_tau);
    out += fmt::format("order of strategies, trust {}: Kendall tau {} over {} groups, {:.2f} over {} sources\n", order.trust,
                       order.mean_tau >= kGoodTau ? style.green(tau) : style.yellow(tau), order.groups.size(),
                       order.mean_of_sources, order.sources.size());
  }
  return out;
}

std::string noise_line(const validate::RunsReport& report) {
  if (report.repeats.empty()) return "";
  int configurations = 0;
  double least = 1e9, most = 0;
  for (const validate::Repeats& source : report.repeats) {
    configurations += source.configurations;
    least = std::min(least, source.median_deviation);
    most = std::max(most, source.median_deviation);
  }
  return fmt::format("repeats: {} configurations measured more than once in {} sources stray from their median by {} to {}\n",
                     configurations, report.repeats.size(), percent(least), percent(most));
}

std::string order_table(const validate::RunsReport& report, const Style& style) {
  std::string out;
  for (const validate::StrategyOrder& order : report.order) {
    for (const validate::OrderGroup& group : order.groups) {
      if (group.tau >= kGoodTau) continue;
      out += fmt::format("{:5.2f}  {:3} of {:4} pairs wrong  trust {}  {}  {}\n", group.tau, group.wrong, group.pairs, group.trust,
                         pad_right(cut(group.source_id, 28), 28), group.what);
      if (group.worst.faster_row == 0) continue;
      out += style.dim(fmt::format("       row {} ({}) is {:.2f} times as fast as row {} ({}), predicted {:.2f}\n",
                                   group.worst.faster_row, group.faster_strategy, group.worst.measured_ratio,
                                   group.worst.slower_row, group.slower_strategy, group.worst.predicted_ratio));
    }
  }
  return out.empty() ? "" : "\n" + style.bold("Order of strategies: groups below a tau of 0.85") + "\n" + out;
}

std::string repeats_table(const validate::RunsReport& report, const Style& style) {
  if (report.repeats.empty()) return "";
  std::string out = "\n" + style.bold(pad_right("Repeats of one run, by source", 44)) + style.dim("configurations  rows   median      p90") + "\n";
  for (const validate::Repeats& s : report.repeats) {
    out += pad_right(cut(s.source_id, 44), 44) + fmt::format("{:14} {:5} {} {}\n", s.configurations, s.rows,
                                                             pad_left(percent(s.median_deviation), 8), pad_left(percent(s.p90_deviation), 8));
  }
  return out;
}

std::string reasons(const validate::RunsReport& report, const Style& style) {
  std::map<std::string, int> counts;
  for (const RunRow& row : report.rows) {
    if (row.has_figure && !row.step_time_error) ++counts[row.reason];
  }
  if (counts.empty()) return "";
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out = "\n" + style.bold("Not predicted, and why") + "\n";
  int rest = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i < kReasonsShown) {
      out += fmt::format("{:5}  {}\n", sorted[i].second, sorted[i].first);
    } else {
      rest += sorted[i].second;
    }
  }
  if (rest > 0) out += fmt::format("{:5}  for other reasons (--json has each)\n", rest);
  return out;
}

std::string worst(const validate::RunsReport& report, const Style& style) {
  std::vector<const RunRow*> rows;
  for (const RunRow& row : report.rows) {
    if (row.step_time_error && row.trust == "A") rows.push_back(&row);
  }
  if (rows.empty()) return "";
  std::stable_sort(rows.begin(), rows.end(), [](const RunRow* a, const RunRow* b) {
    return std::abs(std::log1p(*a->step_time_error)) > std::abs(std::log1p(*b->step_time_error));
  });
  std::string out = "\n" + style.bold("Farthest off among trust A") + "\n";
  for (std::size_t i = 0; i < std::min(kWorstShown, rows.size()); ++i) {
    const RunRow& row = *rows[i];
    out += fmt::format("{:>6}  {}  {}  {}  {}\n", fmt::format("row {}", row.row), pad_right(cut(row.source_id, 28), 28),
                       pad_left(signed_percent(*row.step_time_error), 8),
                       pad_right(cut(row.job->model.name, 22), 22), parallel::to_text(row.strategy));
  }
  return out;
}

}  // namespace

std::string runs_text(const validate::RunsReport& report, const Style& style, bool details) {
  std::string out = headline(report, style) + order_lines(report, style) + noise_line(report);
  if (details) {
    out += table(style, "Source, rows of trust A", report.by_source_a, true);
    out += table(style, "Source, all rows", report.by_source, true);
    out += table(style, "Accelerator", report.by_accelerator, false);
    out += table(style, "Framework", report.by_framework, false);
    out += table(style, "Strategy", report.by_strategy, false);
    out += table(style, "Parameters", report.by_size, false);
    out += table(style, "GPUs", report.by_gpus, false);
    out += table(style, "Links in the host", report.by_links, false);
    out += table(style, "Network", report.by_network, false);
    out += table(style, "Sequence", report.by_sequence, false);
    out += table(style, "Year", report.by_year, false);
    out += order_table(report, style) + repeats_table(report, style);
  } else {
    out += table(style, "Trust A above 15 %, by source", worst_sources(report.by_source_a), true) + "\n";
    out += style.dim("median error of rows of trust A and B, by class") + "\n";
    out += classes_line(style, "Accelerator", report.by_accelerator) + classes_line(style, "Framework", report.by_framework) +
           classes_line(style, "Parameters", report.by_size) + classes_line(style, "GPUs", report.by_gpus) +
           classes_line(style, "Links", report.by_links) + classes_line(style, "Network", report.by_network) +
           classes_line(style, "Sequence", report.by_sequence) + classes_line(style, "Year", report.by_year);
  }
  out += worst(report, style);
  out += reasons(report, style);
  std::string missing;
  for (const Note& note : report.notes) {
    if (details || note.text.find("is missing") == std::string::npos) {
      out += "note: " + note.text + "\n";
    } else {
      missing += (missing.empty() ? "" : ", ") + note.text.substr(8, note.text.find('\'', 8) - 8);
    }
  }
  if (!missing.empty()) {
    for (const std::string& line : wrapped("note: columns that are missing and count as empty: " + missing, style.width)) out += line + "\n";
  }
  return out + (details ? "" : style.dim("--details has every table, --html FILE the drawings, --csv FILE every row") + "\n");
}

std::string fits_text(const validate::FitReport& report, const Style& style) {
  const auto share = [](int right, int of) { return of == 0 ? 0.0 : static_cast<double>(right) / of; };
  const int right = report.out_of_memory_right + report.ran_right;
  const int all = report.out_of_memory + report.ran;
  std::string out = style.bold(fmt::format("fits or not: {} of {} configurations right ({})\n", right, all,
                                           percent(share(right, all))));
  out += fmt::format("ran out of memory: {} of {} said so ({})\n", report.out_of_memory_right, report.out_of_memory,
                     percent(share(report.out_of_memory_right, report.out_of_memory)));
  if (report.ran > 0) {
    out += fmt::format("ran: {} of {} said to fit ({})\n", report.ran_right, report.ran,
                       percent(share(report.ran_right, report.ran)));
  }
  out += fmt::format("within 25 % of the capacity: {} of {} right ({})\n", report.near_right, report.near,
                     percent(share(report.near_right, report.near)));
  if (report.not_judged > 0) out += fmt::format("not judged: {} (--json has the reasons)\n", report.not_judged);
  return out;
}

std::string collectives_text(const validate::CollectivesReport& report, const Style& style) {
  std::string out = style.bold(fmt::format("{} of {} collectives predicted ({})\n", report.overall.predicted,
                                           report.overall.rows, percent(report.overall.coverage())));
  out += fmt::format("rows: median error {}, p90 {}, bias {}; systems: median of their medians {}\n",
                     percent(report.overall.median_absolute), percent(report.overall.p90_absolute),
                     signed_percent(report.overall.bias), percent(report.median_of_system_medians));
  out += fmt::format("measured from 64 MiB on: {:.2f} x the floor of the links (median; --csv and --json print it for each row)\n", report.median_over_floor);
  return out + table(style, "System", report.by_system, true) + table(style, "Operation", report.by_op, false) +
         table(style, "Size", report.by_size, false);
}

std::string matmul_text(const validate::MatmulReport& report, const Style& style) {
  std::string out = style.bold(fmt::format("{} of {} kernels predicted ({})\n", report.overall.predicted,
                                           report.overall.rows, percent(report.overall.coverage())));
  out += fmt::format("median error {}, p90 {}, bias {}\n", percent(report.overall.median_absolute),
                     percent(report.overall.p90_absolute), signed_percent(report.overall.bias));
  out += table(style, "Table", report.by_table, true);
  if (!report.left_out_by_table.empty())
    out += table(style, "Its accelerator left out", report.left_out_by_table, true);
  return out;
}

std::string parameters_text(const std::vector<Parameter>& parameters, const Style& style) {
  const auto fitted = std::count_if(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.kind == ParameterKind::kFitted; });
  std::string out = style.bold(fmt::format("{} parameters, {} of them fitted\n", parameters.size(), fitted));
  std::string group;
  for (const Parameter& p : parameters) {
    const std::string head = p.name.substr(0, p.name.find('.'));
    if (head != group) out += "\n" + style.bold(head) + "\n";
    group = head;
    out += "  " + pad_right(p.name, 44) + pad_left(fmt::format("{:.6g}", p.value), 12) + " " + pad_right(p.unit, 10) + " " +
           pad_right(name(p.kind), 10) + style.dim(p.source) + "\n";
  }
  return out;
}

}  // namespace chokepoint::report

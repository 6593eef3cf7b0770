// SPDX-License-Identifier: Apache-2.0
#include "runs_summary.hpp"
#include "summary.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <cmath>
#include <map>

namespace chokepoint::validate {
namespace {

constexpr double kSourceTarget = 0.15;

struct Collected {
  std::string name;
  int rows = 0;
  std::vector<double> errors;
};

TrustSummary summarise_trust(const std::vector<RunRow>& rows, const std::string& trust) {
  std::vector<RunRow> chosen;
  for (const RunRow& row : rows) {
    if (row.trust != trust || !row.has_figure) continue;
    RunRow light;  // statistics need neither job nor prediction
    light.source_id = row.source_id;
    light.has_figure = true;
    light.step_time_error = row.step_time_error;
    chosen.push_back(std::move(light));
  }
  TrustSummary result;
  result.trust = trust;
  std::vector<double> errors, medians, biases;
  for (const RunRow& row : chosen) {
    if (row.step_time_error) errors.push_back(*row.step_time_error);
  }
  result.all = summarise("trust " + trust, static_cast<int>(chosen.size()), errors);
  for (const Summary& source : summarise_by(chosen, [](const RunRow& row) { return row.source_id; })) {
    if (source.predicted == 0) continue;
    medians.push_back(source.median_absolute);
    biases.push_back(source.bias);
    result.sources_within_15_percent += source.median_absolute <= kSourceTarget;
  }
  result.sources = static_cast<int>(medians.size());
  result.median_of_source_medians = quantile(medians, 0.5);
  result.median_of_source_biases = quantile(biases, 0.5);
  return result;
}

bool is_trusted(const RunRow& row) { return row.trust == "A" || row.trust == "B"; }

/// Where a label of a range stands: by its first number, "below" just before it, "above" just after it.
double place_of(const std::string& label) {
  std::string digits;
  for (const char c : label) {
    const bool digit = c >= '0' && c <= '9';
    if (digit) digits += c;
    if (!digit && c != ',' && !digits.empty()) break;  // the comma of a thousand stays inside the number
  }
  if (digits.empty()) return -1;
  const double number = to_number(digits).value_or(0);
  if (starts_with_ignoring_case(label, "below") || starts_with_ignoring_case(label, "up to")) return number - 0.5;
  return starts_with_ignoring_case(label, "above") ? number + 0.5 : number;
}

std::vector<Summary> by_place(std::vector<Summary> summaries) {
  std::stable_sort(summaries.begin(), summaries.end(),
                   [](const Summary& a, const Summary& b) { return place_of(a.name) < place_of(b.name); });
  return summaries;
}

}  // namespace

std::vector<Summary> summarise_by(const std::vector<RunRow>& rows,
                                  const std::function<std::string(const RunRow&)>& key) {
  std::vector<Collected> groups;
  std::map<std::string, std::size_t> index;
  for (const RunRow& row : rows) {
    const std::string name = key(row);
    if (name.empty() || !row.has_figure) continue;
    const auto found = index.emplace(name, groups.size());
    if (found.second) groups.push_back({name, 0, {}});
    Collected& group = groups[found.first->second];
    ++group.rows;
    if (row.step_time_error) group.errors.push_back(*row.step_time_error);
  }
  std::vector<Summary> summaries;
  for (Collected& group : groups) summaries.push_back(summarise(std::move(group.name), group.rows, group.errors));
  return summaries;
}

void fill_summaries(RunsReport& report) {
  std::vector<double> errors, memory_errors;
  int with_figure = 0, with_memory = 0;
  std::vector<std::string> trusts;
  for (const RunRow& row : report.rows) {
    with_figure += row.has_figure;
    if (row.step_time_error) errors.push_back(*row.step_time_error);
    with_memory += row.measured_memory_bytes.has_value();
    if (row.memory_error) memory_errors.push_back(*row.memory_error);
    if (row.has_figure && std::find(trusts.begin(), trusts.end(), row.trust) == trusts.end()) trusts.push_back(row.trust);
  }
  report.overall = summarise("all rows", with_figure, errors);
  report.memory = summarise("peak memory", with_memory, memory_errors);
  std::sort(trusts.begin(), trusts.end());
  for (const std::string& trust : trusts) report.by_trust.push_back(summarise_trust(report.rows, trust));
  for (const TrustSummary& trust : report.by_trust) {
    if (trust.trust == "A") report.median_of_source_medians_a = trust.median_of_source_medians;
    if (trust.trust == "B") report.median_of_source_medians_b = trust.median_of_source_medians;
  }
  const auto by = [&](auto key) { return summarise_by(report.rows, key); };
  report.by_source = by([](const RunRow& row) { return row.source_id; });
  report.by_source_a = by([](const RunRow& row) { return row.trust == "A" ? row.source_id : std::string(); });
  // Rows of trust C would hide structure: where others exist, classes are formed over these.
  const bool trusted = std::any_of(report.rows.begin(), report.rows.end(), [](const RunRow& row) { return is_trusted(row); });
  const auto by_class = [&](std::string RunClasses::*label) {
    return by([label, trusted](const RunRow& row) { return !trusted || is_trusted(row) ? row.classes.*label : std::string(); });
  };
  report.by_accelerator = by_class(&RunClasses::accelerator);
  report.by_framework = by_class(&RunClasses::framework);
  report.by_strategy = by_class(&RunClasses::strategy);
  report.by_size = by_place(by_class(&RunClasses::size));
  report.by_gpus = by_place(by_class(&RunClasses::gpus));
  report.by_year = by_place(by_class(&RunClasses::year));
  report.by_links = by_class(&RunClasses::links);
  report.by_network = by_place(by_class(&RunClasses::network));
  report.by_sequence = by_place(by_class(&RunClasses::sequence));
}

}  // namespace chokepoint::validate

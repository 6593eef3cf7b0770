// SPDX-License-Identifier: Apache-2.0
#include "runs_summary.hpp"
#include "summary.hpp"

#include <algorithm>
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

std::string size_class(const RunRow& row) {
  if (!row.job) return "";
  const double billions = model::count_parameters(row.job->model).total / 1e9;
  if (billions < 1) return "below 1 B";
  if (billions < 4) return "1 to 4 B";
  if (billions < 15) return "4 to 15 B";
  if (billions < 60) return "15 to 60 B";
  if (billions < 200) return "60 to 200 B";
  return "200 B and more";
}

std::string gpus_class(const RunRow& row) {
  if (!row.job) return "";
  const int gpus = row.job->gpus;
  if (gpus == 1) return "1 GPU";
  if (row.job->cluster.host_count() == 1) return "one host";
  if (gpus <= 64) return "up to 64";
  if (gpus <= 256) return "65 to 256";
  if (gpus <= 1024) return "257 to 1,024";
  return "above 1,024";
}

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
  report.by_accelerator = by([](const RunRow& row) { return row.job ? row.job->accelerator.name : row.accelerator; });
  report.by_framework = by([](const RunRow& row) {
    return row.job ? std::string(parallel::name(row.job->framework)) : std::string();
  });
  report.by_strategy = by([](const RunRow& row) { return row.job ? strategy_kind(row.strategy) : std::string(); });
  report.by_size = by(size_class);
  report.by_gpus = by(gpus_class);
}

std::string strategy_kind(const parallel::Strategy& strategy) {
  std::string kind;
  const auto add = [&](std::string_view word) {
    if (!kind.empty()) kind += '+';
    kind += word;
  };
  if (strategy.tensor > 1) add("tensor");
  if (strategy.pipeline > 1) add("pipeline");
  if (strategy.context > 1) add("context");
  if (strategy.data > 1) {
    if (strategy.zero == 3) {
      add(strategy.sharder == parallel::Sharder::kFsdp ? (strategy.shard_ranks > 0 ? "hsdp" : "fsdp") : "zero3");
    } else {
      constexpr std::string_view kStages[] = {"data", "zero1", "zero2"};
      add(kStages[static_cast<std::size_t>(strategy.zero)]);
    }
  }
  return kind.empty() ? "one GPU" : kind;
}

}  // namespace chokepoint::validate

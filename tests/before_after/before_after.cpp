// SPDX-License-Identifier: Apache-2.0
// before_after PAIRS.yaml [RUNS.csv]: see README.md. No figure here is fitted to a pair.
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/validate/validate.hpp>
#include <chokepoint/whatif/evaluate.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <yaml-cpp/yaml.h>

namespace chokepoint {
namespace {

constexpr double kHit = 0.10;
constexpr int kLeastHits = 6;

bool is_hit(double predicted, double published) { return std::abs(predicted / published - 1) <= kHit; }

/// Step time, or tokens/s over all accelerators, after over before.
Result<double> ratio_of(const whatif::Scenario& before, const std::vector<whatif::Change>& changes, bool of_step_time) {
  TRY_INTO(const whatif::Scenario after, whatif::changed(before, changes));
  const auto a = whatif::step_time(before, *before.strategy);
  if (!a) return fail("the job before is not legal");
  const auto b = whatif::step_time(after, *after.strategy);
  if (!b) return fail("the job after is not legal");
  const double steps = *b / *a;
  return of_step_time ? steps : whatif::tokens_per_step(after.job) / whatif::tokens_per_step(before.job) / steps;
}

Result<double> predict_pair(const YAML::Node& pair, const std::string& file) {
  YAML::Node job = YAML::Clone(pair["job"]);
  std::vector<whatif::Change> changes;
  std::vector<whatif::Change> setup;
  if (job["layers"]) {  // of a catalogue model cut short
    setup.push_back({"layers", "layers", job["layers"].as<std::string>()});
    job.remove("layers");
  }
  TRY_INTO(const job::JobFile read, job::read_job(YAML::Dump(job), file, {}));
  whatif::Scenario scenario;
  scenario.job = read.job;
  scenario.strategy = whatif::portable(*read.strategy);
  TRY_INTO(scenario, whatif::changed(scenario, setup));
  for (const auto& text : pair["changes"]) {
    TRY_INTO(whatif::Change change, whatif::parse_change(text.as<std::string>()));
    changes.push_back(std::move(change));
  }
  return ratio_of(scenario, changes, pair["of"].as<std::string>() == "step_time");
}

int check_pairs(const std::string& file) {
  const auto text = read_text_file(file);
  if (!text) {
    fmt::print(stderr, "{}", format(text.error()));
    return -1;
  }
  int hits = 0;
  int all = 0;
  std::set<std::string> sources_hit;
  fmt::print("Cases: figure after over before\n{:<20} {:>9} {:>9} {:>7}\n", "case", "published", "predicted", "off");
  for (const auto& pair : YAML::Load(*text)["pairs"]) {
    const auto published = pair["published"].as<double>();
    const auto predicted = predict_pair(pair, file);
    const bool counts = !pair["fitted"];
    all += counts ? 1 : 0;
    if (!predicted) {
      fmt::print("{:<20} {:>9.3f} {:>9} {:>7}  {}: {}\n", pair["id"].as<std::string>(), published, "-", "-",
                 pair["says"].as<std::string>(), predicted.error().message);
      continue;
    }
    const bool hit = is_hit(*predicted, published);
    if (hit && counts) {
      ++hits;
      sources_hit.insert(pair["from"].as<std::string>());
    }
    fmt::print("{:<20} {:>9.3f} {:>9.3f} {:>+6.1f}% {} {}\n", pair["id"].as<std::string>(), published, *predicted,
               100 * (*predicted / published - 1),
               !counts ? "(fitted)"
               : hit   ? "hit "
                       : "MISS",
               pair["says"].as<std::string>());
  }
  fmt::print("{} of {} within {:.0f} %, from {} sources\n", hits, all, 100 * kHit, sources_hit.size());
  return hits;
}

bool same_job(const parallel::Job& a, const parallel::Job& b) {
  return a.model.name == b.model.name && a.model.layers == b.model.layers && a.model.hidden == b.model.hidden &&
         a.attention == b.attention && a.framework == b.framework && a.compiled == b.compiled &&
         a.fp32_gradients == b.fp32_gradients && a.fp8_rowwise == b.fp8_rowwise && a.year == b.year &&
         a.frozen_weights == b.frozen_weights && a.causal == b.causal && a.chunked_loss == b.chunked_loss &&
         a.fused_loss == b.fused_loss && a.fused_operators == b.fused_operators &&
         a.optimizer_bytes_per_parameter == b.optimizer_bytes_per_parameter &&
         a.cluster.gpus_per_host() == b.cluster.gpus_per_host() &&
         a.cluster.fabric.transport == b.cluster.fabric.transport;
}

struct Step {
  std::string kind;
  std::vector<whatif::Change> changes;
};

/// The one change that leads from a row to another; empty kind when there is none, or more than one.
Step step_between(const validate::RunRow& a, const validate::RunRow& b) {
  const parallel::Job& before = *a.job;
  const parallel::Job& after = *b.job;
  Step step;
  const auto add = [&](const std::string& kind, const std::string& key, const std::string& value) {
    step.kind += (step.kind.empty() ? "" : " + ") + kind;
    step.changes.push_back({key + "=" + value, key, value});
  };
  if (before.accelerator.name != after.accelerator.name) add("accelerator", "accelerator", after.accelerator.name);
  if (before.gpus != after.gpus) add("accelerators", "gpus", std::to_string(after.gpus));
  if (before.sequence != after.sequence) add("sequence", "sequence", std::to_string(after.sequence));
  if (before.dtype != after.dtype) add("precision", "precision", std::string(hardware::name(after.dtype)));
  const std::string own = parallel::to_text(whatif::portable(a.strategy));
  const std::string other = parallel::to_text(whatif::portable(b.strategy));
  if (own != other) add("strategy", "strategy", other);
  // A batch that grows with the accelerators, or shrinks with longer sequences, belongs to that change.
  if (before.global_batch != after.global_batch) {
    if (step.changes.empty()) step.kind = "batch";
    step.changes.push_back({"batch", "batch", fmt::format("{:.0f}", after.global_batch)});
  }
  if (step.kind.find(" + ") != std::string::npos) step.kind.clear();
  return step;
}

struct Kind {
  std::vector<double> errors;
  std::map<std::string, std::vector<double>> by_source;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool usable(const validate::RunRow& row) {
  return row.job && row.measured_step_time_s && !row.batch_assumed && (row.trust == "A" || row.trust == "B");
}

void check_runs(const std::string& file) {
  if (!file_exists(file)) {
    fmt::print("\nSKIPPED: no table of measured runs at {}\n", file);
    return;
  }
  const auto text = read_text_file(file);
  const auto report = text ? validate::validate_runs(*text, file) : tl::make_unexpected(text.error());
  if (!report) {
    fmt::print("\nSKIPPED: {}", format(report.error()));
    return;
  }
  std::map<std::string, Kind> kinds;
  for (std::size_t i = 0; i < report->rows.size(); ++i) {
    const validate::RunRow& after = report->rows[i];
    if (!usable(after)) continue;
    for (std::size_t j = i; j-- > 0;) {
      const validate::RunRow& before = report->rows[j];
      if (before.source_id != after.source_id) continue;
      if (!usable(before) || !same_job(*before.job, *after.job)) continue;
      const Step step = step_between(before, after);
      if (step.kind.empty() || step.changes.empty()) continue;
      whatif::Scenario scenario;
      scenario.job = *before.job;
      scenario.strategy = whatif::portable(before.strategy);
      const auto predicted = ratio_of(scenario, step.changes, true);
      if (!predicted) break;
      const double published = *after.measured_step_time_s / *before.measured_step_time_s;
      const double error = std::abs(*predicted / published - 1);
      kinds[step.kind].errors.push_back(error);
      kinds[step.kind].by_source[after.source_id].push_back(error);
      break;
    }
  }
  fmt::print("\nMeasured runs: rows one change apart, ratio of step times\n{:<14} {:>6} {:>12} {:>12} {:>8} {:>22}\n",
             "change", "pairs", "within 10 %", "median off", "sources", "with median within");
  for (const auto& [name, kind] : kinds) {
    const auto hits = std::count_if(kind.errors.begin(), kind.errors.end(), [](double e) { return e <= kHit; });
    const auto good = std::count_if(kind.by_source.begin(), kind.by_source.end(),
                                    [](const auto& entry) { return median(entry.second) <= kHit; });
    fmt::print("{:<14} {:>6} {:>11.0f}% {:>11.1f}% {:>8} {:>22}\n", name, kind.errors.size(),
               100.0 * static_cast<double>(hits) / static_cast<double>(kind.errors.size()), 100 * median(kind.errors),
               kind.by_source.size(), good);
  }
}

}  // namespace
}  // namespace chokepoint

int main(int argc, char** argv) {
  using namespace chokepoint;
  if (argc < 2) {
    fmt::print(stderr, "usage: before_after PAIRS.yaml [RUNS.csv]\n");
    return 2;
  }
  const int hits = check_pairs(argv[1]);
  if (argc > 2) check_runs(argv[2]);
  return hits >= kLeastHits ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "repeats.hpp"
#include "summary.hpp"

#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::validate {

std::string job_key(const RunRow& row) {
  const parallel::Job& job = *row.job;
  const model::Model& m = job.model;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.source_id, row.trust, row.classes.accelerator,
                     job.gpus, row.classes.links, row.classes.network, m.name, m.layers, m.hidden, m.ffn_hidden, m.heads,
                     m.vocab, job.sequence, row.batch_assumed ? 0.0 : job.global_batch, row.framework,
                     hardware::name(job.dtype), job.year);
}

std::string configuration_key(const RunRow& row) {
  return fmt::format("{}|{}|{:.10g}", job_key(row), parallel::to_text(row.strategy), row.prediction->step_time_s);
}

double measured_s_per_token(const RunRow& row) {
  return *row.measured_step_time_s / (row.job->global_batch * row.job->sequence);
}

double predicted_s_per_token(const RunRow& row) {
  return row.prediction->step_time_s / (row.job->global_batch * row.job->sequence);
}

std::vector<Repeats> repeats_of(const std::vector<RunRow>& rows) {
  std::map<std::string, std::vector<double>> times;
  std::map<std::string, std::string> sources;
  for (const RunRow& row : rows) {
    if (!row.step_time_error) continue;
    const std::string key = configuration_key(row);
    times[key].push_back(measured_s_per_token(row));
    sources[key] = row.source_id;
  }
  std::map<std::string, Repeats> repeats;
  std::map<std::string, std::vector<double>> deviations;
  for (const auto& [key, measured] : times) {
    if (measured.size() < 2) continue;
    Repeats& source = repeats[sources[key]];
    source.source_id = sources[key];
    ++source.configurations;
    source.rows += static_cast<int>(measured.size());
    const double middle = quantile(measured, 0.5);
    for (const double time : measured) deviations[sources[key]].push_back(std::abs(time / middle - 1));
  }
  std::vector<Repeats> out;
  for (auto& [name, source] : repeats) {
    source.median_deviation = quantile(deviations[name], 0.5);
    source.p90_deviation = quantile(deviations[name], 0.9);
    out.push_back(source);
  }
  return out;
}

}  // namespace chokepoint::validate

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/whatif/change.hpp>
#include <gtest/gtest.h>
#include <string>

namespace chokepoint::whatif {

struct TestJob {
  std::string model = "llama-3-8b";
  std::string cluster = "dgx-a100";
  int gpus = 16;
  double batch = 64;
  int sequence = 4096;
  std::string strategy = "fsdp microbatch=1";
};

inline Scenario scenario_of(const TestJob& test) {
  job::Options options;
  options.model = test.model;
  options.cluster = test.cluster;
  options.gpus = test.gpus;
  options.batch = test.batch;
  options.sequence = test.sequence;
  if (!test.strategy.empty()) options.strategy = test.strategy;
  const auto file = job::read_job("", "", options);
  EXPECT_TRUE(file) << format(file.error());
  Scenario scenario;
  scenario.job = file->job;
  if (file->strategy) scenario.strategy = portable(*file->strategy);
  return scenario;
}

inline Result<Scenario> after(const Scenario& scenario, const std::vector<std::string>& texts) {
  std::vector<Change> changes;
  for (const std::string& text : texts) {
    TRY_INTO(Change change, parse_change(text));
    changes.push_back(std::move(change));
  }
  return changed(scenario, changes);
}

}  // namespace chokepoint::whatif

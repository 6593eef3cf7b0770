// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chokepoint/commands/run.hpp>
#include <nlohmann/json.hpp>

namespace chokepoint::commands {
namespace {

constexpr std::string_view kJob =
    "model: llama-3-8b\ncluster: dgx-h100\nhosts: 4\nbatch: 64\nsequence: 4096\nstrategy: zero=3 microbatch=1\n";

Ended predicted(std::vector<std::string> words, MemoryFiles& files) {
  files.add("job.yaml", std::string(kJob));
  words.insert(words.begin(), {"predict", "job.yaml", "--json"});
  return run_in_memory(words, files);
}

double step_time_s(const std::vector<std::string>& words) {
  MemoryFiles files(Disk::kClosed);
  const Ended ended = predicted(words, files);
  EXPECT_FALSE(ended.error) << (ended.error ? format(*ended.error) : "");
  return nlohmann::json::parse(files.written().at("-"))["step_time_s"].get<double>();
}

TEST(JobChanges, AFasterNetworkShortensTheStepAndASlowerOneLengthensIt) {
  // As it is the network hides behind computation; at a tenth it does not.
  const double slow = step_time_s({"--change=network=x0.1"});
  EXPECT_GT(slow, step_time_s({}));
  EXPECT_LT(step_time_s({"--change=network=x0.2"}), slow);
}

TEST(JobChanges, OfNothingAreTheJobItself) { EXPECT_EQ(step_time_s({"--change=network=x1"}), step_time_s({})); }

TEST(JobChanges, OfTheClockAreForWhatIf) {
  MemoryFiles files(Disk::kClosed);
  const Ended ended = predicted({"--change=clock=x0.9"}, files);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->message, "'clock=x0.9' is a change of whatif alone, which keeps the data sheet's peak for MFU");
}

TEST(JobChanges, OfAnUnknownWordNameTheNearest) {
  MemoryFiles files(Disk::kClosed);
  const Ended ended = predicted({"--change=netwrk=x2"}, files);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.code, 2);
}

TEST(PageData, WhileSomethingMovesThePipelineIsLeftOut) {
  const auto data = [](const char* how) {
    MemoryFiles files(Disk::kClosed);
    files.add("job.yaml", "model: llama-3-8b\ncluster: dgx-h100\nbatch: 64\nsequence: 4096\nstrategy: pipeline=2 zero=1 microbatch=1\n");
    const Ended ended = run_in_memory({"predict", "job.yaml", "--json", std::string("--page=") + how}, files);
    EXPECT_FALSE(ended.error);
    return nlohmann::json::parse(files.written().at("-"));
  };
  EXPECT_TRUE(data("whole")["data"].contains("timeline"));
  EXPECT_FALSE(data("moving")["data"].contains("timeline"));
  EXPECT_EQ(data("whole")["data"]["prediction"], data("moving")["data"]["prediction"]);
}

}  // namespace
}  // namespace chokepoint::commands

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chokepoint/commands/run.hpp>

namespace chokepoint::commands {
namespace {

constexpr std::string_view kJob = "model: llama-3-8b\ncluster: dgx-h100\nbatch: 64\nsequence: 4096\nstrategy: \"zero=3 microbatch=1\"\n";

TEST(RunInMemory, PrintsIntoTheFilesAndReadsItsJobFromThem) {
  MemoryFiles files(Disk::kClosed);
  files.add("job.yaml", std::string(kJob));
  const Ended ended = run_in_memory({"predict", "job.yaml", "--json"}, files);
  ASSERT_FALSE(ended.error) << format(*ended.error);
  EXPECT_NE(files.written().at("-").find("\"step_time_s\""), std::string::npos);
}

TEST(RunInMemory, KeepsTheErrorWithItsPlace) {
  MemoryFiles files(Disk::kClosed);
  files.add("job.yaml", "model: llama-3-8b\ncluster: dgx-h100\nbtach: 64\n");
  const Ended ended = run_in_memory({"predict", "job.yaml", "--json"}, files);
  EXPECT_EQ(ended.code, 2);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->pos.file, "job.yaml");
  EXPECT_TRUE(files.written().empty());
}

TEST(RunInMemory, NotANumberIsNoNumber) {
  for (const std::string text : {"nan", "-NaN", "nan(1)"}) {
    MemoryFiles files(Disk::kClosed);
    files.add("job.yaml", std::string(kJob));
    const Ended ended = run_in_memory({"plan", "job.yaml", "--json", "--margin=" + text}, files);
    EXPECT_EQ(ended.code, 2) << text;
    ASSERT_TRUE(ended.error) << text;
  }
}

/// Every option that draws: a name that ends in .png gets pixels, any other the SVG.
TEST(RunInMemory, EveryPictureIsAskedForAsPngByItsName) {
  const std::vector<std::vector<std::string>> drawings{{"predict", "job.yaml", "--pipeline-svg=p.END", "--links-svg=l.END"}, {"wiring", "dgx-h100", "--svg=w.END"}};
  for (const std::string end : {"svg", "png"}) {
    for (std::vector<std::string> words : drawings) {
      for (std::string& word : words)
        if (const std::size_t at = word.find("END"); at != std::string::npos) word.replace(at, 3, end);
      MemoryFiles files(Disk::kClosed);
      files.add("job.yaml", "model: llama-3-8b\ncluster: dgx-h100\nhosts: 2\nbatch: 64\nsequence: 4096\nstrategy: \"pipeline=2 zero=1 microbatch=1\"\n");
      const Ended ended = run_in_memory(words, files);
      if (ended.error && ended.error->message.find("not installed") != std::string::npos) GTEST_SKIP() << "SKIPPED: no librsvg here, PNG pictures are not tested";
      ASSERT_FALSE(ended.error) << format(*ended.error);
      int pictures = 0;
      for (const auto& [name, content] : files.written()) {
        if (name == "-") continue;
        ++pictures;
        EXPECT_EQ(content.substr(0, 4), end == "svg" ? "<svg" : "\x89PNG") << name;
      }
      EXPECT_EQ(pictures, static_cast<int>(words.size()) - 2);
    }
  }
}

TEST(RunInMemory, AClosedDiskIsNeverRead) {
  MemoryFiles files(Disk::kClosed);
  const Ended ended = run_in_memory({"predict", "/etc/passwd", "--json"}, files);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->message, "no such file: /etc/passwd");
  const Ended traces = run_in_memory({"diagnose", "/etc/passwd", "--json"}, files);
  ASSERT_TRUE(traces.error);
  EXPECT_EQ(traces.error->message, "no such file: /etc/passwd");
}

TEST(RunInMemory, AClosedDiskIsNeverWritten) {
  MemoryFiles files(Disk::kClosed);
  files.add("job.yaml", std::string(kJob));
  const Ended ended = run_in_memory({"predict", "job.yaml", "--json", "--csv", "/tmp/chokepoint-never.csv"}, files);
  ASSERT_FALSE(ended.error) << format(*ended.error);
  EXPECT_TRUE(files.written().contains("/tmp/chokepoint-never.csv"));
}

TEST(RunInMemory, TheServingMachineIsNotLookedAt) {
  MemoryFiles files(Disk::kClosed);
  const Ended ended = run_in_memory({"wiring", "--live", "--json"}, files);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->message, "a request cannot look at the machine that serves it");
}

TEST(RunInMemory, AMistypedOptionIsExplained) {
  MemoryFiles files(Disk::kClosed);
  const Ended ended = run_in_memory({"plan", "--tpo=3"}, files);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->message, "unknown option '--tpo=3'");
}

TEST(OptionsOf, TellsNamesAndKinds) {
  const std::vector<OptionInfo> options = options_of("plan");
  const auto top = std::find_if(options.begin(), options.end(), [](const OptionInfo& o) { return o.name == "top"; });
  ASSERT_NE(top, options.end());
  EXPECT_EQ(top->takes, Takes::kWholeNumber);
  EXPECT_FALSE(top->repeats);
  EXPECT_TRUE(options_of("no-such-command").empty());
}

}  // namespace
}  // namespace chokepoint::commands

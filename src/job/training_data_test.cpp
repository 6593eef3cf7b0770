// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/parallel/memory.hpp>

#include <gtest/gtest.h>

namespace chokepoint::job {
namespace {

Result<JobFile> job_with(const std::string& more, const std::string& model = "llama-2-7b") {
  return read_job("model: " + model + "\ncluster: dgx-a100\ngpus: 8\nbatch: 64\nsequence: 4096\n" + more, "job.yaml", {});
}

parallel::Job must_read(const std::string& more, const std::string& model = "llama-2-7b") {
  auto read = job_with(more, model);
  EXPECT_TRUE(read) << (read ? "" : format(read.error()));
  return read ? std::move(read->job) : parallel::Job{};
}

TEST(Documents, ATokenSeesHalfOfItsDocument) {
  // E[l^2] / E[l] / 2: 1000 (1 + 1) / 2 = 1000 keys; (1000^2 + 3000^2) / 4000 / 2 = 1250.
  EXPECT_EQ(must_read("documents: {mean: 1000, spread: 1}").model.sliding_window, 1000);
  EXPECT_EQ(must_read("documents: {lengths: [1000, 3000]}").model.sliding_window, 1250);
  EXPECT_EQ(must_read("documents: {mean: 5000}").model.sliding_window, 0);
  EXPECT_EQ(must_read("").model.sliding_window, 0);
}

TEST(Documents, EveryAttentionLayerOfAPatternIsLimited) {
  const parallel::Job job = must_read("documents: {mean: 1000}", "{layers: 2, hidden: 64, heads: 4, vocab: 100, pattern: \"TT\"}");
  EXPECT_EQ((job.model.kinds()[{model::Mixer::kWindow, model::Channel::kMlp}]), 2);
}

TEST(Documents, BadLengthsAreNamedWithTheirPlace) {
  const auto read = job_with("documents: {lengths: [0]}");
  ASSERT_FALSE(read);
  EXPECT_EQ(format(read.error()), "job.yaml:6:22: error: '0' is no length of a document, expected whole numbers of tokens from 1\n");
  EXPECT_FALSE(job_with("documents: {spread: 1}"));
  EXPECT_FALSE(job_with("documents: {mean: 10, sprad: 1}"));
}

TEST(Adapters, FreezeTheModel) {
  const parallel::Job whole = must_read("");
  const parallel::Job adapted = must_read("lora: 16");
  EXPECT_TRUE(adapted.frozen_weights);
  EXPECT_EQ(adapted.adapter_rank, 16);
  const auto strategy = parallel::completed(whole, *parallel::parse_strategy("ddp microbatch=1"));
  // 7 B weights without gradients and states: 16 of 18 bytes a parameter go.
  EXPECT_LT(parallel::memory_per_rank(adapted, *strategy).allocated_bytes, parallel::memory_per_rank(whole, *strategy).allocated_bytes - 90e9);
  EXPECT_FALSE(job_with("lora: 0"));
}

TEST(FurtherTokens, TrainWithMegatronOrWhenAsked) {
  EXPECT_EQ(must_read("framework: megatron", "deepseek-v3").model.further.modules, 1);
  EXPECT_EQ(must_read("framework: torchtitan", "deepseek-v3").model.further.modules, 0);
  EXPECT_EQ(must_read("framework: torchtitan\nmtp: true", "deepseek-v3").model.further.modules, 1);
  EXPECT_EQ(must_read("mtp: false", "deepseek-v3").model.further.modules, 0);
  EXPECT_EQ(job_with("mtp: true").error().message, "model llama-2-7b has no modules that predict further tokens");
}

TEST(Images, BringTheirNumberOfTokens) {
  const auto read = read_job("model: vit-base-16\ncluster: dgx-a100\ngpus: 8\nbatch: 64\n", "job.yaml", {});
  ASSERT_TRUE(read) << format(read.error());
  EXPECT_EQ(read->job.sequence, 197);
}

}  // namespace
}  // namespace chokepoint::job

// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/model/model.hpp>
#include <gtest/gtest.h>
#include <set>

namespace chokepoint::model {
namespace {

TEST(ModelCatalogue, EveryCountIsThePublishedOne) {
  for (const Model& m : models()) {
    ASSERT_TRUE(m.published_parameters) << m.name;
    const double published = *m.published_parameters;
    EXPECT_NEAR(count_parameters(m).total, published, published * m.published_tolerance) << m.name;
  }
}

TEST(ModelCatalogue, EveryEntryIsFoundByItsNamesAndHasASource) {
  std::set<std::string> names;
  for (const Model& m : models()) {
    SCOPED_TRACE(m.name);
    EXPECT_TRUE(names.insert(m.name).second);
    EXPECT_FALSE(m.source.empty());
    EXPECT_EQ(find_model(m.name)->name, m.name);
    for (const std::string& alias : m.aliases) EXPECT_EQ(find_model(alias)->name, m.name) << alias;
  }
}

TEST(ModelCatalogue, NamesIgnoreCaseAndPunctuation) {
  EXPECT_EQ(find_model("Llama-3-70B")->name, "llama-3-70b");
  EXPECT_EQ(find_model("Llama 3.1 405B")->name, "llama-3-405b");
  EXPECT_EQ(find_model("GPT-3 175B")->name, "gpt3-175b");
}

TEST(ModelCatalogue, MisspeltNamesGetASuggestion) {
  const auto model = find_model("lama-3-70b");
  ASSERT_FALSE(model);
  EXPECT_EQ(format(model.error()),
            "error: unknown model 'lama-3-70b'\n  did you mean 'llama-3-70b'?\n  'chokepoint models' lists all\n");
}

TEST(ModelCatalogue, ActiveParametersOfMixturesAreThePublishedOnes) {
  // Mixtral 12.9 B, DeepSeek-V2 21 B, DeepSeek-V3 37 B, Qwen3 3.3 B and 22 B (their papers, to the printed digit).
  EXPECT_NEAR(count_parameters(*find_model("mixtral-8x7b")).active, 12.9e9, 0.05e9);
  EXPECT_NEAR(count_parameters(*find_model("deepseek-v2")).active, 21e9, 0.5e9);
  EXPECT_NEAR(count_parameters(*find_model("deepseek-v3")).active, 37e9, 0.6e9);
  EXPECT_NEAR(count_parameters(*find_model("qwen3-30b-a3b")).active, 3.3e9, 0.06e9);
  EXPECT_NEAR(count_parameters(*find_model("qwen3-235b-a22b")).active, 22e9, 0.5e9);
  EXPECT_NEAR(count_parameters(*find_model("gpt-oss-120b")).active - 201088.0 * 2880, 5.13e9, 0.01e9);  // without embedding
  EXPECT_NEAR(count_parameters(*find_model("nemotron-3-nano")).active, 3.6e9, 0.05e9);
  EXPECT_NEAR(count_parameters(*find_model("nemotron-3-super")).active, 12.7e9, 0.2e9);
  EXPECT_NEAR(count_parameters(*find_model("nemotron-3-ultra")).active, 55e9, 1.5e9);
}

TEST(ModelCatalogue, HybridsHaveTheirPublishedLayers) {
  const LayerCounts nano = find_model("nemotron-3-nano")->kinds();
  EXPECT_EQ((nano[{Mixer::kMamba, Channel::kNone}]), 23);
  EXPECT_EQ((nano[{Mixer::kNone, Channel::kExperts}]), 23);
  EXPECT_EQ((nano[{Mixer::kAttention, Channel::kNone}]), 6);
  const LayerCounts next = find_model("qwen3-next-80b-a3b")->kinds();
  EXPECT_EQ((next[{Mixer::kDelta, Channel::kExperts}]), 36);
  EXPECT_EQ((next[{Mixer::kAttention, Channel::kExperts}]), 12);
  const LayerCounts oss = find_model("gpt-oss-20b")->kinds();
  EXPECT_EQ((oss[{Mixer::kWindow, Channel::kExperts}]), 12);
}

TEST(ModelCatalogue, FurtherTokensOfDeepseekAreTheirPublishedSize) {
  // 11.5 B of their own (arXiv 2412.19437 appendix and the model card: 14 B with copies of embedding and head, 0.93 B each).
  const Model m = *find_model("deepseek-v3");
  EXPECT_NEAR(count_parameters(m).further + 2 * 129280.0 * 7168, 14e9, 0.6e9);
}

}  // namespace
}  // namespace chokepoint::model

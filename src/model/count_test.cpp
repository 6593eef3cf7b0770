// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/model/model.hpp>
#include <gtest/gtest.h>

namespace chokepoint::model {
namespace {

/// Two layers of width 8, two heads of 4, MLP 32, 100 words, 16 learned positions.
Model tiny_gpt() {
  Model m = *family_defaults("gpt2");
  m.layers = 2;
  m.hidden = 8;
  m.ffn_hidden = 32;
  m.heads = 2;
  m.kv_heads = 2;
  m.head_dim = 4;
  m.vocab = 100;
  m.max_positions = 16;
  return m;
}

/// As tiny_gpt() in Llama's style: one key-value head, untied.
Model tiny_llama() {
  Model m = *family_defaults("llama");
  m.layers = 2;
  m.hidden = 8;
  m.ffn_hidden = 32;
  m.heads = 2;
  m.kv_heads = 1;
  m.head_dim = 4;
  m.vocab = 100;
  return m;
}

TEST(CountParameters, GptByHand) {
  const ParameterCount count = count_parameters(tiny_gpt());
  EXPECT_EQ(count.embedding, 100 * 8 + 16 * 8);
  EXPECT_EQ(count.head, 0);
  EXPECT_EQ(count.attention_per_layer, 8 * 24 + 24 + 8 * 8 + 8);
  EXPECT_EQ(count.mlp_per_layer, 8 * 32 + 32 + 32 * 8 + 8);
  EXPECT_EQ(count.norms_per_layer, 2 * (8 + 8));
  EXPECT_EQ(count.final, 16);
  // 928 + 2 (288 + 552 + 32) + 16
  EXPECT_EQ(count.total, 2688);
  EXPECT_EQ(count.active, count.total);
}

TEST(CountParameters, GroupedQueriesShrinkOnlyKeysAndValues) {
  // q 8x8, k and v 8x4 each, o 8x8; three MLP matrices; RMSNorm without bias; embedding and head apart.
  const ParameterCount count = count_parameters(tiny_llama());
  EXPECT_EQ(count.attention_per_layer, 64 + 64 + 64);
  EXPECT_EQ(count.mlp_per_layer, 3 * 8 * 32);
  EXPECT_EQ(count.norms_per_layer, 16);
  EXPECT_EQ(count.total, 2 * 800 + 2 * (192 + 768 + 16) + 8);
}

TEST(CountParameters, ExpertsCountInFullAndOnlyTopKAreActive) {
  Model m = tiny_llama();
  m.moe = Moe{4, 2, 16, 32, 1, 1, false};
  // Layer 0 is dense; layer 1 has 4 experts of 3x8x16, a shared one of 3x8x32 and a router of 8x4.
  const ParameterCount count = count_parameters(m);
  EXPECT_EQ(count.moe_per_layer, 4 * 384 + 768 + 32);
  EXPECT_EQ(count.total, 1600 + 2 * (192 + 16) + 768 + 2336 + 8);
  EXPECT_EQ(count.total - count.active, 2 * 384);
}

TEST(CountParameters, LatentAttentionByHand) {
  Model m = tiny_llama();
  m.mla = Mla{6, 5, 4, 2, 3};
  // q: 6 (8 + 2x6); kv down 8 (5 + 2); kv up 5x2x(4 + 3); out 2x3x8; two norms of 6 and 5 more.
  const ParameterCount count = count_parameters(m);
  EXPECT_EQ(count.attention_per_layer, 120 + 56 + 70 + 48);
  EXPECT_EQ(count.norms_per_layer, 16 + 11);
}

TEST(Flops, ForwardIsTwoPerWeightAndToken) {
  const Model m = tiny_llama();
  const ForwardFlops flops = forward_flops(m, 10, false);
  EXPECT_EQ(flops.attention_projections, 2 * 10 * 192);
  EXPECT_EQ(flops.attention_scores, 4 * 100 * 8);  // QK^T and PV: 2 s^2 per head and channel each
  EXPECT_EQ(flops.mlp, 2 * 10 * 768);
  EXPECT_EQ(flops.head, 2 * 10 * 800);
  EXPECT_EQ(flops.total, 2 * (3840 + 3200 + 15360) + 16000);
  EXPECT_EQ(forward_flops(m, 10, true).total, flops.total - 2 * 1600);
}

TEST(Flops, HardwareConventionIsMegatronsFormula) {
  // 96 B s l h^2 (1 + s/6h + V/16lh), arXiv 2104.04473 equation 3, for its 1.7 B model.
  const Model m = *find_model("megatron-1.7b");
  const double s = 2048, l = 24, h = 2304, v = 51200, b = 512;
  const double formula = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(step_flops(m, 2048, 512, FlopConvention::kHardwareMegatron) / formula, 1, 1e-12);
}

TEST(Flops, ModelConventionIsSixPerParameterAndTokenPlusAttention) {
  // PaLM appendix B: 6 N + 12 L H Q T per token, N without embeddings that are only looked up.
  const Model m = *find_model("llama-3-8b");
  const double matrices = count_parameters(m).total - 128256.0 * 4096 - 65.0 * 4096;
  const double per_token = 6 * matrices + 12.0 * 32 * 32 * 128 * 8192;
  EXPECT_NEAR(step_flops(m, 8192, 1, FlopConvention::kModelFullAttention) / (8192 * per_token), 1, 1e-12);
}

TEST(Flops, StepsScaleWithSequences) {
  const Model m = tiny_gpt();
  for (const auto convention : {FlopConvention::kModelFullAttention, FlopConvention::kModelCausalAttention, FlopConvention::kHardwareMegatron}) {
    EXPECT_EQ(step_flops(m, 16, 6, convention), 6 * step_flops(m, 16, 1, convention));
  }
}

TEST(Validated, NamesTheFieldThatIsWrong) {
  Model m = tiny_llama();
  m.name = "tiny";
  m.hidden = 0;
  EXPECT_EQ(validated(m).error().message, "model 'tiny': hidden is 0, expected 1 to 16777216");
  m = tiny_llama();
  m.name = "tiny";
  m.heads = 6;
  m.kv_heads = 4;
  EXPECT_EQ(validated(m).error().message, "model 'tiny': 6 heads do not divide into 4 key-value heads");
  m = tiny_llama();
  m.moe = Moe{4, 5, 16, 0, 0, 1, false};
  EXPECT_FALSE(validated(m));
  EXPECT_TRUE(validated(tiny_gpt()));
}

}  // namespace
}  // namespace chokepoint::model

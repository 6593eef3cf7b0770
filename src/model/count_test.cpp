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

/// tiny_llama() with Mamba-2 in place of attention: 4 heads of 2, state 3, one group.
Model tiny_mamba() {
  Model m = tiny_llama();
  m.mamba = Mamba{4, 2, 3, 1, 4, 5};
  m.pattern = "MM";
  return m;
}

TEST(CountParameters, Mamba2ByHand) {
  // In: 8 x (8 gate + 8 x + 3 B + 3 C + 4 steps); convolution of 14 channels, 4 taps and a bias; three numbers a head; a norm
  // of 8 behind the scan and one before the layer; out 8 x 8. No MLP.
  const Model m = tiny_mamba();
  EXPECT_EQ(count_parameters(m).mamba_per_layer, 8 * 26 + 14 * 5 + 3 * 4 + 8 + 64);
  EXPECT_EQ(count_parameters(m).total, 1600 + 2 * (362 + 8) + 8);
}

TEST(CountParameters, DeltaRuleByHand) {
  // Two key heads of 2, four value heads of 3: q and k 4 each, v and gate 12 each, a step and a decay for each of 4 heads.
  Model m = tiny_llama();
  m.delta = Delta{2, 2, 4, 3, 4, 5};
  m.pattern = "g";
  EXPECT_EQ(count_parameters(m).delta_per_layer, 8 * (8 + 24 + 8) + 4 * (8 + 12) + 2 * 4 + 3 + 12 * 8);
  EXPECT_EQ(count_parameters(m).total, 1600 + 2 * (507 + 16 + 768) + 8);
}

TEST(CountParameters, APatternOfHalvesIsTheSameModel) {
  const Model whole = tiny_llama();
  Model halves = whole;
  halves.layers = 4;
  halves.pattern = "*-*-";
  EXPECT_EQ(count_parameters(halves).total, count_parameters(whole).total);
  EXPECT_EQ(forward_flops(halves, 10, false).total, forward_flops(whole, 10, false).total);
  Model named = whole;
  named.pattern = "TT";
  EXPECT_EQ(count_parameters(named).total, count_parameters(whole).total);
}

TEST(CountParameters, ExpertsBehindANarrowerWidth) {
  // Experts 2 x 3 x 16 x 4 (gated) at width 4; to it and back 2 x 8 x 4; the shared expert stays at width 8.
  Model m = tiny_llama();
  m.moe = Moe{2, 1, 16, 32, 0, 1, false, 4};
  const ParameterCount count = count_parameters(m);
  EXPECT_EQ(count.experts_per_layer, 2 * 3 * 16 * 4);
  EXPECT_EQ(count.moe_per_layer, 384 + 3 * 32 * 8 + 8 * 2 + 64);
}

TEST(CountParameters, FurtherTokensAddALayerAndAProjection) {
  // One layer of 192 + 768 + 16, a projection of 16 to 8, three norms; embedding and head are the model's.
  Model m = tiny_llama();
  const double total = count_parameters(m).total;
  m.further.modules = 2;
  EXPECT_EQ(count_parameters(m).further, 2 * (976 + 128 + 24));
  EXPECT_EQ(count_parameters(m).total, total);
  m.further.shared_weights = true;
  EXPECT_EQ(count_parameters(m).further, 976 + 128 + 24);
}

TEST(Flops, ScanInBlocksByHand) {
  // Mamba-2, block of 5 tokens, state 3, 4 heads of 2 in one group. Per token: C B^T 2x5x3, masked product 2x5x2x4, state in
  // and out 2x3x2x4 each.
  const Model m = tiny_mamba();
  EXPECT_EQ(scan_flops_per_token(m.recurrence(Mixer::kMamba)), 30 + 80 + 96);
  EXPECT_EQ(forward_flops(m, 10, true).mamba, 10 * (2 * 8 * (26 + 8) + 2 * 4 * 14 + 206));
  EXPECT_EQ(forward_flops(m, 10, true).total, 2 * forward_flops(m, 10, true).mamba + 16000);
}

TEST(Flops, AWindowLimitsTheCausalSquareOnly) {
  Model m = tiny_llama();
  m.sliding_window = 5;
  // Of 10 queries the later ones see 5 keys: 5 x 10 - 5 x 5 / 2 = 37.5 of 100.
  EXPECT_EQ(forward_flops(m, 10, true).total, 2 * (3840 + 3200 * 0.375 + 15360) + 16000);
  EXPECT_EQ(forward_flops(m, 10, false).total, forward_flops(tiny_llama(), 10, false).total);
  m.full_attention_every = 2;
  EXPECT_EQ(forward_flops(m, 10, true).total, 2 * (3840 + 15360) + 3200 * (0.375 + 0.5) + 16000);
}

TEST(Flops, EveryTokenOfAnEncoderSeesAll) {
  Model m = tiny_llama();
  m.bidirectional = true;
  EXPECT_EQ(forward_flops(m, 10, true).total, forward_flops(tiny_llama(), 10, false).total);
}

TEST(Flops, ADecoderAttendsToItselfAndToTheEncoder) {
  // One layer each, 10 tokens before and 4 behind. Encoder 3840 + 3200 + 15360. Decoder: 0.4 of projections and MLP, half of
  // 0.16 of the square; then q and out for 4 tokens, k and v for 10, a 4 x 10 rectangle; the head for 4 tokens.
  Model m = tiny_llama();
  m.encoder_layers = 1;
  m.decoder_sequence = 4;
  const double decoder = 0.4 * (3840 + 15360) + 0.5 * 0.16 * 3200 + 2 * 4 * 128 + 2 * 10 * 64 + 0.4 * 3200;
  EXPECT_DOUBLE_EQ(forward_flops(m, 10, true).total, 22400 + decoder + 0.4 * 16000);
}

TEST(Pattern, RepeatsWhereItDividesAndDropsStageBorders) {
  EXPECT_EQ(*expanded_pattern("M-M*-", 10), "M-M*-M-M*-");
  EXPECT_EQ(*expanded_pattern("M-|M*", 4), "M-M*");
  EXPECT_EQ(expanded_pattern("M-X", 3).error().message, "'X' stands for no kind of layer in the pattern 'M-X'");
  EXPECT_EQ(expanded_pattern("M-M", 4).error().message, "the layer pattern has 3 letters, the model 4 layers");
  EXPECT_FALSE(expanded_pattern("", 4));
  EXPECT_FALSE(expanded_pattern("M", 0));
}

TEST(Pattern, KindsThatItNamesMustBeDescribed) {
  Model m = tiny_llama();
  m.name = "tiny";
  m.pattern = "MM";
  EXPECT_EQ(validated(m).error().message, "model 'tiny': its pattern has Mamba-2 layers, but no sizes of them ('mamba')");
  m.mamba = Mamba{4, 2, 3, 1, 4, 5};
  m.pattern = "ME";
  EXPECT_EQ(validated(m).error().message, "model 'tiny': its pattern has experts, but no sizes of them ('moe')");
  m.moe = Moe{4, 2, 16, 32, 0, 1, false};
  ASSERT_TRUE(validated(m));
  EXPECT_FALSE(validated(m)->is_moe_layer(0));
  EXPECT_TRUE(validated(m)->is_moe_layer(1));
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

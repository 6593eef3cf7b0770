// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/model/model.hpp>
#include <gtest/gtest.h>

namespace chokepoint::model {
namespace {

std::string error_of(std::string_view json) {
  const auto model = read_hf_config(json, "config.json");
  return model ? "no error" : format(model.error());
}

/// A config written from the published sizes must give the catalogue's model: the same counts and FLOPs.
class PublishedConfig : public testing::TestWithParam<const char*> {};

TEST_P(PublishedConfig, GivesTheCataloguesCounts) {
  const std::string path = std::string(CHOKEPOINT_TEST_DATA) + "/hf/" + GetParam() + ".json";
  const auto text = read_text_file(path);
  ASSERT_TRUE(text) << format(text.error());
  auto read = read_hf_config(*text, path);
  ASSERT_TRUE(read) << format(read.error());
  const Model listed = *find_model(GetParam());
  read->decoder_sequence = listed.decoder_sequence;  // of the training, not in a config.json
  EXPECT_EQ(count_parameters(*read).total, count_parameters(listed).total);
  EXPECT_EQ(count_parameters(*read).active, count_parameters(listed).active);
  EXPECT_EQ(forward_flops(*read, 2048, false).total, forward_flops(listed, 2048, false).total);
  EXPECT_EQ(read->family, listed.family);
  EXPECT_EQ(read->sliding_window, listed.sliding_window);
  EXPECT_TRUE(read->kinds() == listed.kinds());
  EXPECT_EQ(count_parameters(*read).further, count_parameters(listed).further);
}

INSTANTIATE_TEST_SUITE_P(HfConfig, PublishedConfig,
                         testing::Values("gpt2-medium", "pythia-1.4b", "opt-350m", "bloom-560m", "mpt-7b", "falcon-7b", "falcon-40b",
                                         "llama-2-7b", "llama-3-8b", "mistral-7b", "mistral-nemo-12b", "qwen2-7b", "qwen3-8b",
                                         "gemma-2b", "gemma-2-9b", "gemma-3-4b", "phi-2", "phi-3-mini", "mixtral-8x7b",
                                         "qwen1.5-moe-a2.7b", "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v3", "nemotron-3-nano-30b-a3b", "nemotron-h-8b",
                                         "qwen3-next-80b-a3b", "gpt-oss-20b", "bert-base-uncased", "t5-base", "vit-base-16"));

TEST(HfConfig, LayersMayBeListedByTheirNames) {
  const auto m = read_hf_config(R"({"model_type": "nemotron_h", "num_hidden_layers": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "layers_block_type": ["mamba", "moe", "attention", "mlp"], "moe_latent_size": 64, "num_nextn_predict_layers": 1,
    "mtp_layers_block_type": ["attention", "moe"]})", "c");
  ASSERT_TRUE(m) << format(m.error());
  EXPECT_EQ(m->pattern, "ME*-");
  EXPECT_EQ(m->moe->latent, 64);
  EXPECT_EQ(m->further_pattern, "*E");
  EXPECT_EQ(error_of("{\"model_type\": \"nemotron_h\",\n \"layers_block_type\": [\"mamba\", \"rnn\"]}"),
            "config.json:2:2: error: 'layers_block_type' holds the unknown kind of layer 'rnn'\n");
  const auto bamba = read_hf_config(R"({"model_type": "bamba", "num_hidden_layers": 4, "attn_layer_indices": [1]})", "c");
  ASSERT_TRUE(bamba) << format(bamba.error());
  EXPECT_EQ(bamba->pattern, "mTmm");
  const auto mamba = read_hf_config(R"({"model_type": "mamba2"})", "c");
  ASSERT_TRUE(mamba) << format(mamba.error());
  EXPECT_EQ(mamba->pattern.size(), 64u);
}

TEST(HfConfig, WholeNumbersMayBeWrittenAsFloats) {
  EXPECT_EQ(read_hf_config(R"({"model_type": "llama", "hidden_size": 8192.0, "num_attention_heads": 64})", "c")->hidden, 8192);
}

TEST(HfConfig, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(error_of("{\n  \"model_type\": \"llama\",\n  \"hidden_size\": \"4096\"\n}"),
            "config.json:3:3: error: 'hidden_size' is a text, expected a whole number\n");
  EXPECT_EQ(error_of("{\"model_type\": \"llama\",\n \"num_hidden_layers\": 1e300}"),
            "config.json:2:2: error: 'num_hidden_layers' is 1e+300, expected 1 to 100000\n");
  EXPECT_EQ(error_of("{\"model_type\": \"llama\", \"num_hidden_layers\": -1}"),
            "config.json:1:25: error: 'num_hidden_layers' is -1, expected 1 to 100000\n");
  EXPECT_EQ(error_of("{\"hidden_size\": 4096}"),
            "config.json:1:1: error: 'model_type' is missing\n  add for example \"model_type\": \"llama\"\n");
  EXPECT_EQ(error_of("[1]"), "config.json:1:1: error: holds a list, expected the object of a Hugging Face config.json\n");
  EXPECT_EQ(error_of("{\"model_type\": \"llama\", \"num_attention_heads\": 30}"),
            "config.json:1:25: error: width 4096 does not divide into 30 heads\n  state 'head_dim'\n");
  EXPECT_EQ(error_of("{\"model_type\": \"llama\", \"num_key_value_heads\": 5}"),
            "config.json:1:1: error: model 'llama': 32 heads do not divide into 5 key-value heads\n");
}

TEST(HfConfig, BrokenJsonIsPlaced) {
  EXPECT_EQ(error_of("{\n  \"model_type\": \"llama\",\n  \"hidden_size\": NaN\n}").substr(0, 22), "config.json:3:18: erro");
  EXPECT_NE(error_of("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"model_type\": \"lla").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '[')).find("not valid JSON"), std::string::npos);
}

TEST(HfConfig, UnknownFamiliesListTheKnown) {
  const std::string error = error_of("{\"model_type\": \"lama\"}");
  EXPECT_EQ(error.substr(0, error.find("known families")), "config.json:1:2: error: unknown model_type 'lama'\n  did you mean 'llama'?\n  ");
  // Families of our catalogue that transformers does not have.
  EXPECT_NE(error_of("{\"model_type\": \"megatron\"}"), "no error");
}

}  // namespace
}  // namespace chokepoint::model

// SPDX-License-Identifier: Apache-2.0
// config.json of families whose layers differ: recurrent and attention layers, windows in turn, experts in some.
#include "hf_readers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace chokepoint::model::hf {

namespace {

/// One letter for each word of a list of layer types.
Result<std::string> letters_of(const JsonFields& config, const char* name, const std::map<std::string_view, char>& letters) {
  TRY_INTO(const std::vector<std::string> words, config.texts({name}));
  std::string pattern;
  for (const std::string& word : words) {
    const auto found = letters.find(word);
    if (found == letters.end()) {
      return fail(fmt::format("'{}' holds the unknown kind of layer '{}'", name, word.substr(0, 100)), config.position(name));
    }
    pattern += found->second;
  }
  return pattern;
}

/// Errors of a pattern point at its field.
Result<std::string> pattern_at(const JsonFields& config, const char* name, const std::string& text, int layers) {
  auto pattern = expanded_pattern(text, layers);
  if (!pattern) pattern.error().pos = config.position(name);
  return pattern;
}

struct MambaNames {
  Names heads, head_dim, state, groups, conv, chunk;
};

Result<Mamba> read_mamba(const JsonFields& config, const MambaNames& names, const Mamba& defaults) {
  Mamba mamba;
  TRY_INTO(mamba.heads, config.integer_or(names.heads, defaults.heads, 1, kMaxHeads));
  TRY_INTO(mamba.head_dim, config.integer_or(names.head_dim, defaults.head_dim, 1, kMaxHeads));
  TRY_INTO(mamba.state, config.integer_or(names.state, defaults.state, 1, kMaxHeads));
  TRY_INTO(mamba.groups, config.integer_or(names.groups, defaults.groups, 1, kMaxHeads));
  TRY_INTO(mamba.conv, config.integer_or(names.conv, defaults.conv, 1, 64));
  TRY_INTO(mamba.chunk, config.integer_or(names.chunk, defaults.chunk, 1, kMaxHeads));
  return mamba;
}

Result<bool> read_nemotron_experts(const JsonFields& config, Model& m) {
  if (m.pattern.find('E') == std::string::npos) return true;
  TRY_INTO(Moe moe, read_moe(config, {{"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"}, 8, 2, 7688}));
  TRY_INTO(const int shared, config.integer_or({"n_shared_experts"}, 1, 0, 1024));
  TRY_INTO(moe.shared_ffn_hidden, config.integer_or({"moe_shared_expert_intermediate_size"}, shared > 0 ? 7688 : 0, 0, kMaxWidth));
  if (shared == 0) moe.shared_ffn_hidden = 0;
  TRY_INTO(moe.latent, config.integer_or({"moe_latent_size"}, 0, 0, kMaxWidth));
  m.moe = moe;
  return true;
}

}  // namespace

/// NemotronHConfig; newer files list the kinds of layers, older ones write the pattern.
Result<bool> read_nemotron_h(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {52, 4096, 21504, 32, 8, 128, 131072}, m));
  TRY_INTO([[maybe_unused]] const bool kv, read_kv_heads(config, 8, m));
  const std::map<std::string_view, char> letters = {{"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}};
  TRY_INTO(std::string listed, letters_of(config, "layers_block_type", letters));
  TRY_INTO(const std::optional<std::string> written, config.text({"hybrid_override_pattern"}));
  if (listed.empty()) listed = written.value_or("M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-");
  if (!config.has({"num_hidden_layers"})) m.layers = static_cast<int>(std::min<std::size_t>(listed.size(), kMaxLayers));
  TRY_INTO(m.pattern, pattern_at(config, "hybrid_override_pattern", listed, m.layers));
  TRY_INTO(m.mamba, read_mamba(config, {{"mamba_num_heads"}, {"mamba_head_dim"}, {"ssm_state_size"}, {"n_groups", "mamba_n_groups"},
                                        {"conv_kernel"}, {"chunk_size"}}, {128, 64, 128, 8, 4, 128}));
  TRY_INTO([[maybe_unused]] const bool experts, read_nemotron_experts(config, m));
  TRY_INTO(m.further.modules, config.integer_or({"num_nextn_predict_layers"}, 0, 0, 64));
  if (m.further.modules == 0) return true;
  m.further.shared_weights = true;
  TRY_INTO(std::string further, letters_of(config, "mtp_layers_block_type", letters));
  TRY_INTO(const std::optional<std::string> further_written, config.text({"mtp_hybrid_override_pattern"}));
  m.further_pattern = further.empty() ? further_written.value_or("*E") : further;
  return true;
}

/// Qwen3NextConfig: three layers of the gated delta rule to one of gated attention, experts in all.
Result<bool> read_qwen3_next(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool base, read_llama_like(config, {48, 2048, 5632, 16, 2, 256, 151936}, m));
  Delta delta;
  TRY_INTO(delta.key_heads, config.integer_or({"linear_num_key_heads"}, 16, 1, kMaxHeads));
  TRY_INTO(delta.key_dim, config.integer_or({"linear_key_head_dim"}, 128, 1, kMaxHeads));
  TRY_INTO(delta.value_heads, config.integer_or({"linear_num_value_heads"}, 32, 1, kMaxHeads));
  TRY_INTO(delta.value_dim, config.integer_or({"linear_value_head_dim"}, 128, 1, kMaxHeads));
  TRY_INTO(delta.conv, config.integer_or({"linear_conv_kernel_dim"}, 4, 1, 64));
  m.delta = delta;
  TRY_INTO(Moe moe, read_moe(config, {{"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"}, 512, 10, 512}));
  TRY_INTO(moe.shared_ffn_hidden, config.integer_or({"shared_expert_intermediate_size"}, 512, 0, kMaxWidth));
  moe.shared_gate = moe.shared_ffn_hidden > 0;
  TRY_INTO(moe.every, config.integer_or({"decoder_sparse_step"}, 1, 1, kMaxLayers));
  moe.first_layer = moe.every - 1;
  m.moe = moe;
  TRY_INTO(std::string listed, letters_of(config, "layer_types", {{"linear_attention", 'g'}, {"full_attention", 'T'}}));
  TRY_INTO(const int interval, config.integer_or({"full_attention_interval"}, 4, 1, kMaxLayers));
  if (listed.empty()) {
    for (int layer = 1; layer <= m.layers; ++layer) listed += layer % interval == 0 ? 'T' : 'g';
  }
  TRY_INTO(m.pattern, pattern_at(config, "layer_types", listed, m.layers));
  return true;
}

/// BambaConfig and GraniteMoeHybridConfig's dense part: Mamba-2 or attention, then an MLP.
Result<bool> read_bamba(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool base, read_llama_like(config, {32, 4096, 14336, 32, 8, 0, 128000}, m));
  TRY_INTO(m.mamba, read_mamba(config, {{"mamba_n_heads"}, {"mamba_d_head"}, {"mamba_d_state"}, {"mamba_n_groups"}, {"mamba_d_conv"},
                                        {"mamba_chunk_size"}}, {128, 64, 256, 1, 4, 256}));
  TRY_INTO(const std::vector<int> attention, config.integers({"attn_layer_indices"}));
  TRY_INTO(std::string listed, letters_of(config, "layer_types", {{"mamba", 'm'}, {"attention", 'T'}}));
  if (listed.empty()) {
    listed.assign(static_cast<std::size_t>(m.layers), 'm');
    for (const int layer : attention) {
      if (layer >= m.layers) {
        return fail(fmt::format("'attn_layer_indices' names layer {} of {}", layer, m.layers), config.position("attn_layer_indices"));
      }
      listed[static_cast<std::size_t>(layer)] = 'T';
    }
  }
  TRY_INTO(m.pattern, pattern_at(config, "layer_types", listed, m.layers));
  return true;
}

/// Mamba2Config: no attention at all.
Result<bool> read_mamba2(const JsonFields& config, Model& m) {
  TRY_INTO(m.layers, config.integer_or({"num_hidden_layers", "n_layer"}, 64, 1, kMaxLayers));
  TRY_INTO(m.hidden, config.integer_or({"hidden_size", "d_model"}, 4096, 1, kMaxWidth));
  TRY_INTO(m.vocab, config.integer_or({"vocab_size"}, 32768, 1, kMaxWidth));
  TRY_INTO(m.mamba, read_mamba(config, {{"num_heads"}, {"head_dim"}, {"state_size"}, {"n_groups"}, {"conv_kernel"}, {"chunk_size"}},
                               {128, 64, 128, 8, 4, 256}));
  m.pattern = "M";
  m.ffn_hidden = m.hidden;
  m.heads = m.kv_heads = m.mamba->heads;
  m.head_dim = m.mamba->head_dim;
  return true;
}

/// GptOssConfig
Result<bool> read_gpt_oss(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool base, read_llama_like(config, {36, 2880, 2880, 64, 8, 64, 201088}, m));
  if (!config.has({"attention_bias"})) m.qkv_bias = m.attention_out_bias = true;
  if (!config.mentions("sliding_window")) {
    m.sliding_window = 128;
    m.full_attention_every = m.pattern.empty() ? 2 : 0;
  }
  m.mlp_bias = true;
  TRY_INTO(Moe moe, read_moe(config, {{"num_local_experts"}, {"num_experts_per_tok", "experts_per_token"}, {"intermediate_size"}, 128, 4, 2880}));
  moe.router_bias = true;
  m.moe = moe;
  return true;
}

}  // namespace chokepoint::model::hf

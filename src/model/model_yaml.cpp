// SPDX-License-Identifier: Apache-2.0
// Parts of a model beyond its sizes, as the catalogue and a job's own model write them.
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/model/model.hpp>

#include <array>
#include <utility>

#include "yaml_fields.hpp"

namespace chokepoint::model {

Result<bool> read_int(const YamlMap& entry, const char* key, int& value) {
  TRY_INTO(const std::optional<int> found, entry.integer(key, 0, 1 << 30));
  value = found.value_or(value);
  return true;
}

namespace {

Result<bool> read_flag(const YamlMap& entry, const char* key, bool& value) {
  TRY_INTO(const std::optional<bool> found, entry.boolean(key));
  value = found.value_or(value);
  return true;
}

Result<bool> read_moe(const YamlMap& entry, Model& m) {
  TRY_INTO(const std::optional<YamlMap> map, entry.map("moe"));
  if (!map) return true;
  Moe moe;
  TRY_INTO(moe.experts, map->required_int("experts", 1, 1 << 16));
  TRY_INTO(moe.top_k, map->required_int("top_k", 1, 1 << 16));
  TRY_INTO(moe.expert_ffn_hidden, map->required_int("ffn", 1, 1 << 24));
  const std::array<std::pair<const char*, int*>, 4> sizes = {{{"shared_ffn", &moe.shared_ffn_hidden},
                                                              {"first_layer", &moe.first_layer},
                                                              {"every", &moe.every},
                                                              {"latent", &moe.latent}}};
  for (const auto& [key, size] : sizes) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(*map, key, *size));
  }
  TRY_INTO([[maybe_unused]] const bool gate, read_flag(*map, "shared_gate", moe.shared_gate));
  TRY_INTO([[maybe_unused]] const bool bias, read_flag(*map, "router_bias", moe.router_bias));
  m.moe = moe;
  return map->finish();
}

Result<bool> read_mla(const YamlMap& entry, Model& m) {
  TRY_INTO(const std::optional<YamlMap> map, entry.map("mla"));
  if (!map) return true;
  Mla mla;
  TRY_INTO([[maybe_unused]] const bool rank, read_int(*map, "q_lora_rank", mla.q_lora_rank));
  TRY_INTO(mla.kv_lora_rank, map->required_int("kv_lora_rank", 1, 1 << 16));
  TRY_INTO(mla.qk_nope_head_dim, map->required_int("qk_nope_head_dim", 1, 1 << 16));
  TRY_INTO(mla.qk_rope_head_dim, map->required_int("qk_rope_head_dim", 1, 1 << 16));
  TRY_INTO(mla.v_head_dim, map->required_int("v_head_dim", 1, 1 << 16));
  m.mla = mla;
  m.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  return map->finish();
}

Result<bool> read_mamba(const YamlMap& entry, Model& m) {
  TRY_INTO(const std::optional<YamlMap> map, entry.map("mamba"));
  if (!map) return true;
  Mamba mamba;
  TRY_INTO(mamba.heads, map->required_int("heads", 1, 1 << 16));
  const std::array<std::pair<const char*, int*>, 5> sizes = {{{"head_dim", &mamba.head_dim},
                                                              {"state", &mamba.state},
                                                              {"groups", &mamba.groups},
                                                              {"conv", &mamba.conv},
                                                              {"chunk", &mamba.chunk}}};
  for (const auto& [key, size] : sizes) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(*map, key, *size));
  }
  m.mamba = mamba;
  return map->finish();
}

Result<bool> read_delta(const YamlMap& entry, Model& m) {
  TRY_INTO(const std::optional<YamlMap> map, entry.map("delta"));
  if (!map) return true;
  Delta delta;
  TRY_INTO(delta.key_heads, map->required_int("key_heads", 1, 1 << 16));
  TRY_INTO(delta.value_heads, map->required_int("value_heads", 1, 1 << 16));
  const std::array<std::pair<const char*, int*>, 4> sizes = {{{"key_dim", &delta.key_dim},
                                                              {"value_dim", &delta.value_dim},
                                                              {"conv", &delta.conv},
                                                              {"chunk", &delta.chunk}}};
  for (const auto& [key, size] : sizes) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(*map, key, *size));
  }
  m.delta = delta;
  return map->finish();
}

Result<bool> read_further(const YamlMap& entry, Model& m) {
  TRY_INTO(const std::optional<YamlMap> map, entry.map("mtp"));
  if (!map) return true;
  TRY_INTO(m.further.modules, map->required_int("modules", 0, 64));
  TRY_INTO([[maybe_unused]] const bool shared, read_flag(*map, "shared_weights", m.further.shared_weights));
  TRY_INTO(const std::optional<std::string> pattern, map->text("pattern"));
  m.further_pattern = pattern.value_or("");
  return map->finish();
}

Result<bool> read_kinds(const YamlMap& entry, Model& m) {
  TRY_INTO(const std::optional<std::string> pattern, entry.text("pattern"));
  m.pattern = pattern.value_or("");
  const std::array<std::pair<const char*, int*>, 8> sizes = {{{"norms_per_layer", &m.norms_per_layer},
                                                              {"sliding_window", &m.sliding_window},
                                                              {"full_attention_every", &m.full_attention_every},
                                                              {"encoder_layers", &m.encoder_layers},
                                                              {"decoder_sequence", &m.decoder_sequence},
                                                              {"position_buckets", &m.position_buckets},
                                                              {"token_types", &m.token_types},
                                                              {"patch_inputs", &m.patch_inputs}}};
  for (const auto& [key, size] : sizes) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(entry, key, *size));
  }
  const std::array<std::pair<const char*, bool*>, 14> flags = {{{"tied_embeddings", &m.tied_embeddings},
                                                                {"gated_mlp", &m.gated_mlp},
                                                                {"norm_bias", &m.norm_bias},
                                                                {"final_norm", &m.final_norm},
                                                                {"embedding_norm", &m.embedding_norm},
                                                                {"qkv_bias", &m.qkv_bias},
                                                                {"attention_out_bias", &m.attention_out_bias},
                                                                {"mlp_bias", &m.mlp_bias},
                                                                {"head_bias", &m.head_bias},
                                                                {"qk_norm", &m.qk_norm},
                                                                {"attention_gate", &m.attention_gate},
                                                                {"attention_sinks", &m.attention_sinks},
                                                                {"bidirectional", &m.bidirectional},
                                                                {"head_transform", &m.head_transform}}};
  for (const auto& [key, flag] : flags) {
    TRY_INTO([[maybe_unused]] const bool ok, read_flag(entry, key, *flag));
  }
  return true;
}

}  // namespace

Result<bool> read_parts(const YamlMap& entry, Model& m) {
  TRY_INTO([[maybe_unused]] const bool kinds, read_kinds(entry, m));
  TRY_INTO([[maybe_unused]] const bool mla, read_mla(entry, m));
  TRY_INTO([[maybe_unused]] const bool moe, read_moe(entry, m));
  TRY_INTO([[maybe_unused]] const bool mamba, read_mamba(entry, m));
  TRY_INTO([[maybe_unused]] const bool delta, read_delta(entry, m));
  return read_further(entry, m);
}

}  // namespace chokepoint::model

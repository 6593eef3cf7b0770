// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/lazy_entries.hpp>
#include <chokepoint/base/catalogue_text.hpp>
#include <chokepoint/model/model.hpp>

#include <array>
#include <utility>

namespace chokepoint::embedded {
extern const CatalogueText models;
}

namespace chokepoint::model {

namespace {

Result<bool> read_flags(const YamlMap& entry, Model& m) {
  const std::array<std::pair<const char*, bool*>, 6> flags = {{{"tied_embeddings", &m.tied_embeddings},
                                                               {"norm_bias", &m.norm_bias},
                                                               {"final_norm", &m.final_norm},
                                                               {"qkv_bias", &m.qkv_bias},
                                                               {"attention_out_bias", &m.attention_out_bias},
                                                               {"mlp_bias", &m.mlp_bias}}};
  for (const auto& [key, flag] : flags) {
    TRY_INTO(const std::optional<bool> value, entry.boolean(key));
    *flag = value.value_or(*flag);
  }
  return true;
}

/// An optional whole number that stays as it is when absent.
Result<bool> read_int(const YamlMap& entry, const char* key, int& value) {
  TRY_INTO(const std::optional<int> found, entry.integer(key, 0, 1 << 30));
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
  TRY_INTO([[maybe_unused]] const bool shared, read_int(*map, "shared_ffn", moe.shared_ffn_hidden));
  TRY_INTO([[maybe_unused]] const bool first, read_int(*map, "first_layer", moe.first_layer));
  TRY_INTO([[maybe_unused]] const bool every, read_int(*map, "every", moe.every));
  TRY_INTO(const std::optional<bool> gate, map->boolean("shared_gate"));
  moe.shared_gate = gate.value_or(false);
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

Result<bool> read_sizes(const YamlMap& entry, Model& m) {
  TRY_INTO(m.layers, entry.required_int("layers", 1, 100000));
  TRY_INTO(m.hidden, entry.required_int("hidden", 1, 1 << 24));
  TRY_INTO(m.heads, entry.required_int("heads", 1, 1 << 16));
  TRY_INTO(m.vocab, entry.required_int("vocab", 1, 1 << 24));
  m.ffn_hidden = 4 * m.hidden;
  m.kv_heads = m.heads;
  m.head_dim = m.hidden / m.heads;
  const std::array<std::pair<const char*, int*>, 7> sizes = {{{"ffn", &m.ffn_hidden},
                                                              {"kv_heads", &m.kv_heads},
                                                              {"head_dim", &m.head_dim},
                                                              {"positions", &m.max_positions},
                                                              {"norms_per_layer", &m.norms_per_layer},
                                                              {"embedding_width", &m.embedding_width},
                                                              {"sliding_window", &m.sliding_window}}};
  for (const auto& [key, size] : sizes) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(entry, key, *size));
  }
  return true;
}

Result<Model> read_model(std::size_t index) {
  TRY_INTO(const YamlMap entry, embedded::models.parse(index));
  TRY_INTO(const std::string family, entry.required_text("family"));
  TRY_INTO(Model m, family_defaults(family));
  TRY_INTO(m.name, entry.required_text("name"));
  TRY_INTO(m.aliases, entry.texts("aliases"));
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(entry, m));
  TRY_INTO([[maybe_unused]] const bool flags, read_flags(entry, m));
  TRY_INTO([[maybe_unused]] const bool mla, read_mla(entry, m));
  TRY_INTO([[maybe_unused]] const bool moe, read_moe(entry, m));
  TRY_INTO(m.published_parameters, entry.number("published", 1, 1e15));
  TRY_INTO(const std::optional<double> tolerance, entry.number("published_tolerance", 0, 1));
  m.published_tolerance = tolerance.value_or(0);
  TRY_INTO(m.source, entry.required_text("source"));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return validated(std::move(m));
}

Model made_or_abort(std::size_t index) {
  auto model = read_model(index);
  if (!model) broken_catalogue(model.error());
  return *std::move(model);
}

const Model& entry_or_abort(std::size_t index) {
  static LazyEntries<Model> entries(embedded::models.size(), made_or_abort);
  return entries.at(index);
}

}  // namespace

Result<Model> find_model(std::string_view name) {
  if (const auto index = embedded::models.find(name)) return entry_or_abort(*index);
  return embedded::models.unknown("model", name, "models");
}

const std::vector<Model>& models() {
  static const std::vector<Model> kAll = [] {
    std::vector<Model> all;
    for (std::size_t i = 0; i < embedded::models.size(); ++i) all.push_back(entry_or_abort(i));
    return all;
  }();
  return kAll;
}

}  // namespace chokepoint::model

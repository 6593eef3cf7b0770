// SPDX-License-Identifier: Apache-2.0
// Hugging Face config.json -> Model. A key that is absent takes the default of its configuration class in transformers,
// as from_pretrained would; the defaults below are those of the class named in each comment.
#include "hf_readers.hpp"

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <chokepoint/model/model.hpp>
#include <fmt/format.h>
#include <utility>

namespace chokepoint::model {

namespace hf {

/// Every spelling that one of the families uses for a size. No family uses two of them for different things.
Result<bool> read_sizes(const JsonFields& config, const Defaults& defaults, Model& m) {
  TRY_INTO(m.layers, config.integer_or({"num_hidden_layers", "n_layer", "n_layers"}, defaults.layers, 1, kMaxLayers));
  TRY_INTO(m.hidden, config.integer_or({"hidden_size", "n_embd", "n_embed", "d_model"}, defaults.hidden, 1, kMaxWidth));
  TRY_INTO(m.heads, config.integer_or({"num_attention_heads", "n_head", "n_heads"}, defaults.heads, 1, kMaxHeads));
  TRY_INTO(m.vocab, config.integer_or({"vocab_size"}, defaults.vocab, 1, kMaxWidth));
  TRY_INTO(m.ffn_hidden, config.integer_or({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"},
                                           defaults.ffn > 0 ? defaults.ffn : std::min(4 * m.hidden, kMaxWidth), 1, kMaxWidth));
  if (defaults.head_dim == 0 && m.hidden % m.heads != 0 && !config.has({"head_dim"}) && !config.has({"kv_lora_rank"})) {
    return fail(fmt::format("width {} does not divide into {} heads", m.hidden, m.heads),
                config.position(config.has({"num_attention_heads"}) ? "num_attention_heads" : "n_head"), {"state 'head_dim'"});
  }
  TRY_INTO(m.head_dim, config.integer_or({"head_dim"}, defaults.head_dim > 0 ? defaults.head_dim : std::max(1, m.hidden / m.heads), 1, kMaxHeads));
  return true;
}

Result<bool> read_kv_heads(const JsonFields& config, int fallback, Model& m) {
  TRY_INTO(m.kv_heads, config.integer_or({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, fallback > 0 ? fallback : m.heads, 1, kMaxHeads));
  return true;
}

/// Windows, and which layers see all: as listed by layer, or every so many of them.
Result<bool> read_window(const JsonFields& config, Model& m) {
  TRY_INTO(const bool window_used, config.boolean_or({"use_sliding_window"}, m.family.rfind("qwen", 0) != 0));
  if (!window_used) return true;
  const bool absent = !config.mentions("sliding_window");
  const int fallback = !absent ? 0 : m.family == "mistral" || m.family == "gemma2" || m.family == "gemma3" ? 4096 : 0;
  TRY_INTO(m.sliding_window, config.integer_or({"sliding_window"}, fallback, 0, 1 << 30));
  if (m.sliding_window == 0) return true;
  TRY_INTO(const std::vector<std::string> types, config.texts({"layer_types"}));
  if (!types.empty()) {
    std::string letters;
    for (const std::string& type : types) letters += type == "full_attention" ? 'T' : 'w';
    m.pattern = letters;
    return true;
  }
  // Gemma 2 alternates, Gemma 3 has five with a window to one without, gpt-oss alternates (their modelling code).
  const int usual = m.family == "gemma2" || m.family == "gpt_oss" ? 2 : m.family == "gemma3" ? 6 : 0;
  TRY_INTO(m.full_attention_every, config.integer_or({"sliding_window_pattern", "_sliding_window_pattern"}, usual, 0, kMaxLayers));
  return true;
}

/// The families that read like Llama: sizes, grouped queries, a bias switch, a window.
Result<bool> read_llama_like(const JsonFields& config, const Defaults& defaults, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, defaults, m));
  TRY_INTO([[maybe_unused]] const bool kv, read_kv_heads(config, defaults.kv_heads, m));
  if (config.has({"attention_bias"})) {
    TRY_INTO(m.qkv_bias, config.boolean_or({"attention_bias"}, false));
    m.attention_out_bias = m.qkv_bias;
  }
  if (m.family == "qwen2_moe") {
    TRY_INTO(m.qkv_bias, config.boolean_or({"qkv_bias"}, true));
  }
  TRY_INTO(m.mlp_bias, config.boolean_or({"mlp_bias"}, m.mlp_bias));
  return read_window(config, m);
}

Result<Moe> read_moe(const JsonFields& config, const MoeNames& names) {
  Moe moe;
  TRY_INTO(moe.experts, config.integer_or(names.experts, names.default_experts, 1, 1 << 16));
  TRY_INTO(moe.top_k, config.integer_or(names.top_k, names.default_top_k, 1, 1 << 16));
  TRY_INTO(moe.expert_ffn_hidden, config.integer_or(names.ffn, names.default_ffn, 1, kMaxWidth));
  return moe;
}

}  // namespace hf

namespace {

using namespace hf;

Result<bool> read_tied(const JsonFields& config, Model& m) {
  TRY_INTO(m.tied_embeddings, config.boolean_or({"tie_word_embeddings"}, m.tied_embeddings));
  return true;
}

/// GPT2Config
Result<bool> read_gpt2(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {12, 768, 0, 12, 0, 0, 50257}, m));
  m.kv_heads = m.heads;
  TRY_INTO(m.max_positions, config.integer_or({"n_positions", "n_ctx"}, 1024, 1, 1 << 30));
  return true;
}

/// GPTNeoXConfig
Result<bool> read_gpt_neox(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {44, 6144, 24576, 64, 0, 0, 50432}, m));
  m.kv_heads = m.heads;
  TRY_INTO(m.qkv_bias, config.boolean_or({"attention_bias"}, true));
  m.attention_out_bias = m.qkv_bias;
  return true;
}

/// OPTConfig. Learned positions are offset by two rows; only the post-norm 350 M model has no final norm.
Result<bool> read_opt(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {12, 768, 3072, 12, 0, 0, 50272}, m));
  m.kv_heads = m.heads;
  TRY_INTO(const int positions, config.integer_or({"max_position_embeddings"}, 2048, 1, 1 << 29));
  m.max_positions = positions + 2;
  TRY_INTO(const int width, config.integer_or({"word_embed_proj_dim"}, m.hidden, 1, kMaxWidth));
  m.embedding_width = width == m.hidden ? 0 : width;
  TRY_INTO(const bool before, config.boolean_or({"do_layer_norm_before"}, true));
  TRY_INTO(const bool removed, config.boolean_or({"_remove_final_layer_norm"}, false));
  m.final_norm = before && !removed;
  TRY_INTO(const bool bias, config.boolean_or({"enable_bias"}, true));
  m.qkv_bias = m.attention_out_bias = m.mlp_bias = bias;
  return true;
}

/// BloomConfig
Result<bool> read_bloom(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {2, 64, 0, 8, 0, 0, 250880}, m));
  m.kv_heads = m.heads;
  m.ffn_hidden = std::min(4 * m.hidden, kMaxWidth);
  return true;
}

/// MPTConfig of llm-foundry and MptConfig of transformers; ALiBi replaces the learned positions.
Result<bool> read_mpt(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {24, 2048, 0, 16, 0, 0, 50368}, m));
  TRY_INTO(const std::optional<double> ratio, config.number({"expansion_ratio"}, 0.001, 1000));
  const double width = ratio.value_or(4) * m.hidden;
  if (width > kMaxWidth) return fail("'expansion_ratio' makes the MLP too wide", config.position("expansion_ratio"));
  m.ffn_hidden = static_cast<int>(width);
  m.kv_heads = m.heads;
  bool alibi = true;
  TRY_INTO(const std::optional<JsonFields> attention, config.object({"attn_config"}));
  if (attention) {
    TRY_INTO(alibi, attention->boolean_or({"alibi"}, true));
    TRY_INTO(m.kv_heads, attention->integer_or({"kv_n_heads"}, m.heads, 1, kMaxHeads));
    TRY_INTO(const std::optional<std::string> type, attention->text({"attn_type"}));
    if (type == "multiquery_attention") m.kv_heads = 1;
  }
  TRY_INTO(const bool learned, config.boolean_or({"learned_pos_emb"}, true));
  if (learned && !alibi) {
    TRY_INTO(m.max_positions, config.integer_or({"max_seq_len"}, 2048, 1, 1 << 30));
  }
  TRY_INTO(const bool no_bias, config.boolean_or({"no_bias"}, true));
  m.norm_bias = m.qkv_bias = m.attention_out_bias = m.mlp_bias = !no_bias;
  return true;
}

/// FalconConfig, and RWConfig under the names RefinedWeb (40B) and RefinedWebModel (7B).
Result<bool> read_falcon(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {32, 4544, 0, 71, 0, 0, 65024}, m));
  TRY_INTO(const std::optional<std::string> type, config.text({"model_type"}));
  TRY_INTO(const bool grouped, config.boolean_or({"new_decoder_architecture"}, type == "RefinedWeb"));
  TRY_INTO(const bool multi_query, config.boolean_or({"multi_query"}, true));
  TRY_INTO(m.parallel_block, config.boolean_or({"parallel_attn"}, true));
  m.kv_heads = multi_query ? 1 : m.heads;
  if (grouped) {
    TRY_INTO([[maybe_unused]] const bool kv, read_kv_heads(config, 0, m));
    m.parallel_block = true;
  }
  TRY_INTO(const int norms, config.integer_or({"num_ln_in_parallel_attn"}, grouped ? 2 : 1, 1, 2));
  m.norms_per_layer = m.parallel_block ? norms : 2;
  TRY_INTO(const bool bias, config.boolean_or({"bias"}, false));
  m.qkv_bias = m.attention_out_bias = m.mlp_bias = bias;
  return true;
}

/// PhiConfig
Result<bool> read_phi(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {24, 2048, 8192, 32, 0, 0, 51200}, m));
  TRY_INTO(const bool qk_norm, config.boolean_or({"qk_layernorm"}, false));
  if (qk_norm) return fail("'qk_layernorm' of Phi is not supported", config.position("qk_layernorm"));
  return read_kv_heads(config, 0, m);
}

/// Qwen: layer i is sparse when (i + 1) is a multiple of the step and it is not listed as dense.
Result<bool> place_qwen_experts(const JsonFields& config, Moe& moe) {
  TRY_INTO(moe.every, config.integer_or({"decoder_sparse_step"}, 1, 1, kMaxLayers));
  moe.first_layer = moe.every - 1;
  TRY_INTO(std::vector<int> dense, config.integers({"mlp_only_layers"}));
  if (dense.empty()) return true;
  std::sort(dense.begin(), dense.end());
  const bool prefix = dense.front() == 0 && dense.back() + 1 == static_cast<int>(dense.size()) && moe.every == 1;
  if (!prefix) {
    return fail("'mlp_only_layers' lists others than the first layers, which is not supported", config.position("mlp_only_layers"));
  }
  moe.first_layer = static_cast<int>(dense.size());
  return true;
}

/// Qwen2MoeConfig, Qwen3MoeConfig
Result<bool> read_qwen_moe(const JsonFields& config, Model& m) {
  const bool second = m.family == "qwen2_moe";
  const Defaults defaults = second ? Defaults{24, 2048, 5632, 16, 16, 0, 151936} : Defaults{24, 2048, 6144, 32, 4, 0, 151936};
  TRY_INTO([[maybe_unused]] const bool base, read_llama_like(config, defaults, m));
  const MoeNames names = {{"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"},
                          second ? 60 : 128, second ? 4 : 8, second ? 1408 : 768};
  TRY_INTO(Moe moe, read_moe(config, names));
  if (second) {
    TRY_INTO(moe.shared_ffn_hidden, config.integer_or({"shared_expert_intermediate_size"}, 5632, 0, kMaxWidth));
    moe.shared_gate = true;
  }
  TRY_INTO([[maybe_unused]] const bool placed, place_qwen_experts(config, moe));
  m.moe = moe;
  return true;
}

/// MixtralConfig
Result<bool> read_mixtral(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool base, read_llama_like(config, {32, 4096, 14336, 32, 8, 0, 32000}, m));
  TRY_INTO(m.moe, read_moe(config, {{"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"}, 8, 2, 14336}));
  return true;
}

/// DeepseekV2Config, DeepseekV3Config
Result<bool> read_deepseek(const JsonFields& config, Model& m) {
  const bool third = m.family == "deepseek_v3";
  const Defaults defaults = third ? Defaults{61, 7168, 18432, 128, 128, 0, 129280} : Defaults{32, 4096, 11008, 32, 32, 0, 32000};
  TRY_INTO([[maybe_unused]] const bool base, read_llama_like(config, defaults, m));
  m.kv_heads = m.heads;
  Mla mla;
  // A null rank means that queries are not compressed; an absent one takes the default.
  TRY_INTO(mla.q_lora_rank, config.integer_or({"q_lora_rank"}, config.mentions("q_lora_rank") ? 0 : 1536, 0, kMaxWidth));
  TRY_INTO(mla.kv_lora_rank, config.integer_or({"kv_lora_rank"}, 512, 1, kMaxWidth));
  TRY_INTO(mla.qk_nope_head_dim, config.integer_or({"qk_nope_head_dim"}, 128, 0, kMaxHeads));
  TRY_INTO(mla.qk_rope_head_dim, config.integer_or({"qk_rope_head_dim"}, 64, 0, kMaxHeads));
  TRY_INTO(mla.v_head_dim, config.integer_or({"v_head_dim"}, 128, 1, kMaxHeads));
  m.mla = mla;
  m.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  TRY_INTO(Moe moe, read_moe(config, {{"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"},
                                      third ? 256 : 64, third ? 8 : 6, third ? 2048 : 1407}));
  TRY_INTO(const int shared, config.integer_or({"n_shared_experts"}, third ? 1 : 2, 0, 1024));
  if (static_cast<double>(shared) * moe.expert_ffn_hidden > kMaxWidth) {
    return fail("'n_shared_experts' makes the shared experts too wide", config.position("n_shared_experts"));
  }
  moe.shared_ffn_hidden = shared * moe.expert_ffn_hidden;
  TRY_INTO(moe.first_layer, config.integer_or({"first_k_dense_replace"}, third ? 3 : 0, 0, kMaxLayers));
  TRY_INTO(moe.every, config.integer_or({"moe_layer_freq"}, 1, 1, kMaxLayers));
  m.moe = moe;
  TRY_INTO(m.further.modules, config.integer_or({"num_nextn_predict_layers"}, third ? 1 : 0, 0, 64));
  return true;
}

struct LlamaLike {
  std::string_view family;
  Defaults defaults;
};

/// LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config, GemmaConfig, Gemma2Config, Gemma3TextConfig, Phi3Config, Olmo2Config
constexpr std::array<LlamaLike, 9> kLlamaLike = {{{"olmo2", {32, 4096, 11008, 32, 0, 0, 50304}},
                                                  {"llama", {32, 4096, 11008, 32, 0, 0, 32000}},
                                                  {"mistral", {32, 4096, 14336, 32, 8, 0, 32000}},
                                                  {"qwen2", {32, 4096, 22016, 32, 32, 0, 151936}},
                                                  {"qwen3", {32, 4096, 22016, 32, 32, 128, 151936}},
                                                  {"gemma", {28, 3072, 24576, 16, 16, 256, 256000}},
                                                  {"gemma2", {26, 2304, 9216, 8, 4, 256, 256000}},
                                                  {"gemma3", {26, 2304, 9216, 8, 4, 256, 262208}},
                                                  {"phi3", {32, 3072, 8192, 32, 0, 0, 32064}}}};

Result<bool> read_family(const JsonFields& config, Model& m) {
  using Reader = Result<bool> (*)(const JsonFields&, Model&);
  static constexpr std::array<std::pair<std::string_view, Reader>, 20> kReaders = {
      {{"gpt2", read_gpt2}, {"gpt_neox", read_gpt_neox}, {"opt", read_opt}, {"bloom", read_bloom}, {"mpt", read_mpt},
       {"falcon", read_falcon}, {"phi", read_phi}, {"mixtral", read_mixtral}, {"qwen2_moe", read_qwen_moe},
       {"qwen3_moe", read_qwen_moe}, {"deepseek_v2", read_deepseek}, {"deepseek_v3", read_deepseek},
       {"nemotron_h", read_nemotron_h}, {"qwen3_next", read_qwen3_next}, {"bamba", read_bamba}, {"mamba2", read_mamba2},
       {"gpt_oss", read_gpt_oss}, {"bert", read_bert}, {"roberta", read_bert}, {"t5", read_t5}}};
  for (const auto& [family, reader] : kReaders) {
    if (family == m.family) return reader(config, m);
  }
  if (m.family == "vit") return read_vit(config, m);
  for (const LlamaLike& like : kLlamaLike) {
    if (like.family == m.family) return read_llama_like(config, like.defaults, m);
  }
  return fail(fmt::format("model type '{}' has no reader", m.family), config.position("model_type"));
}

/// model_type -> family. Wrappers with several parts ("gemma3") keep their decoder in text_config.
std::string family_of(std::string_view model_type) {
  if (model_type == "RefinedWeb" || model_type == "RefinedWebModel") return "falcon";
  if (model_type == "gemma3_text") return "gemma3";
  if (model_type == "olmo3") return "olmo2";
  return std::string(model_type);
}

bool readable(const std::string& family) {
  // gpt3 and megatron are families of the catalogue, not of transformers.
  const std::vector<std::string> known = families();
  return family != "gpt3" && family != "megatron" && std::find(known.begin(), known.end(), family) != known.end();
}

/// The object that describes the decoder, and its model type.
struct Decoder {
  JsonFields config;
  std::string model_type;
};

Result<Decoder> find_decoder(const JsonFields& top) {
  TRY_INTO(const std::optional<std::string> outer, top.text({"model_type"}));
  TRY_INTO(const std::optional<JsonFields> inner, top.object({"text_config"}));
  if (!inner) {
    if (!outer) return fail("'model_type' is missing", {top.file(), 1, 1}, {"add for example \"model_type\": \"llama\""});
    return Decoder{top, *outer};
  }
  TRY_INTO(const std::optional<std::string> type, inner->text({"model_type"}));
  if (!type && !outer) return fail("'model_type' is missing", {top.file(), 1, 1});
  return Decoder{*inner, type ? *type : *outer};
}

}  // namespace

Result<Model> read_hf_config(std::string_view json_text, const std::string& file) {
  TRY_INTO(const JsonFields top, JsonFields::parse(json_text, file));
  TRY_INTO(const Decoder decoder, find_decoder(top));
  const std::string family = family_of(decoder.model_type);
  if (!readable(family)) {
    auto unknown = family_defaults(family == "gpt3" || family == "megatron" ? "?" + family : family);
    Error error = unknown.error();
    error.message = fmt::format("unknown model_type '{}'", decoder.model_type.substr(0, 100));
    error.pos = decoder.config.position("model_type");
    return tl::make_unexpected(std::move(error));
  }
  TRY_INTO(Model m, family_defaults(family));
  TRY_INTO([[maybe_unused]] const bool read, read_family(decoder.config, m));
  TRY_INTO([[maybe_unused]] const bool tied, read_tied(decoder.config, m));
  TRY_INTO(const std::optional<std::string> name, top.text({"_name_or_path", "name_or_path"}));
  m.name = name && !name->empty() ? *name : family;
  m.source = file;
  auto checked = validated(std::move(m));
  if (!checked) checked.error().pos = {file, 1, 1};
  return checked;
}

}  // namespace chokepoint::model

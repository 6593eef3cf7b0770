// SPDX-License-Identifier: Apache-2.0
// The transformer that Megatron's arguments describe: GPT-2's shape unless they say otherwise.
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

/// Entries of the tokenizers that Megatron names by themselves.
std::optional<int> vocabulary_of(std::string_view tokenizer) {
  if (tokenizer == "GPT2BPETokenizer" || tokenizer == "GPTSentencePieceTokenizer") return 50257;
  if (tokenizer == "Llama2Tokenizer") return 32000;
  if (tokenizer == "BertWordPieceLowerCase") return 30522;
  if (tokenizer == "BertWordPieceCase") return 28996;
  return std::nullopt;
}

/// "([0]*3+[1]*58)", "[0,1,1]", or a number: every n-th layer, the first a mixture.
Result<bool> read_moe_layers(Settings& s, model::Moe& moe, int layers) {
  const auto text = s.text("moe_layer_freq");
  if (!text) return true;
  if (const auto every = to_int(*text)) {
    if (*every < 1) return fail("moe-layer-freq must be at least 1", s.pos("moe_layer_freq"));
    moe.every = *every;
    return true;
  }
  std::vector<int> pattern;
  int value = -1;
  for (std::size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '0' || c == '1') {
      value = c - '0';
      pattern.push_back(value);
    } else if (c == '*') {
      std::size_t end = i + 1;
      while (end < text->size() && (*text)[end] >= '0' && (*text)[end] <= '9') ++end;
      const int count = to_int(std::string_view(*text).substr(i + 1, end - i - 1)).value_or(-1);
      if (value < 0 || count < 1 || count > layers)
        return fail("moe-layer-freq: cannot read the pattern", s.pos("moe_layer_freq"));
      if (pattern.size() > static_cast<std::size_t>(layers))
        return fail("moe-layer-freq: more entries than layers", s.pos("moe_layer_freq"));
      pattern.insert(pattern.end(), static_cast<std::size_t>(count - 1), value);
      i = end - 1;
    }
  }
  std::size_t first = 0;
  while (first < pattern.size() && pattern[first] == 0) ++first;
  moe.first_layer = static_cast<int>(first);
  std::size_t next = first + 1;
  while (next < pattern.size() && pattern[next] == 0) ++next;
  moe.every = next < pattern.size() ? static_cast<int>(next - first) : 1;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool expected = i >= first && (i - first) % static_cast<std::size_t>(moe.every) == 0;
    if (expected != (pattern[i] == 1)) {
      s.mark("moe_layer_freq", Use::kNotModelled, "an irregular pattern: layers in equal steps are taken");
      break;
    }
  }
  return true;
}

Result<bool> read_experts(Settings& s, model::Model& m) {
  TRY_INTO(const auto experts, s.integer("num_experts", 1, 1 << 16));
  TRY_INTO(const auto moe_experts, s.integer("num_moe_experts", 1, 1 << 16));
  if (!experts && !moe_experts) return true;
  model::Moe moe;
  moe.experts = experts ? *experts : *moe_experts;
  TRY_INTO(const auto top_k, s.integer("moe_router_topk", 1, 1 << 10));
  TRY_INTO(const auto width, s.integer("moe_ffn_hidden_size", 1, 1 << 22));
  TRY_INTO(const auto shared, s.integer("moe_shared_expert_intermediate_size", 0, 1 << 22));
  moe.top_k = top_k.value_or(2);
  moe.expert_ffn_hidden = width.value_or(m.ffn_hidden);
  moe.shared_ffn_hidden = shared.value_or(0);
  moe.shared_gate = s.flag("moe_shared_expert_gate");
  TRY_INTO(const auto latent, s.integer("moe_latent_size", 1, 1 << 22));
  moe.latent = latent.value_or(0);
  TRY_INTO([[maybe_unused]] const bool layers, read_moe_layers(s, moe, m.layers));
  m.moe = moe;
  return true;
}

/// "MEM*E/*E/*E": the layers, then those of each module that predicts a further token; '|' parts pipeline stages.
Result<bool> read_pattern(Settings& s, const char* key, int layers, model::Model& m) {
  const auto text = s.text(key);
  if (!text) return true;
  const std::size_t end = text->find('/');
  auto pattern = model::expanded_pattern(std::string_view(*text).substr(0, end), layers);
  if (!pattern) {
    pattern.error().pos = s.pos(key);
    return tl::make_unexpected(std::move(pattern.error()));
  }
  m.pattern = *std::move(pattern);
  if (end == std::string::npos) return true;
  const std::string_view further = std::string_view(*text).substr(end + 1);
  m.further.modules = 1 + static_cast<int>(std::min<std::ptrdiff_t>(std::count(further.begin(), further.end(), '/'), 63));
  m.further_pattern = std::string(further.substr(0, further.find('/')));
  return true;
}

/// Layers that are not all alike: Mamba-2 between attention, windows in turn, modules that predict further tokens.
Result<bool> read_mixed_layers(Settings& s, model::Model& m) {
  TRY_INTO([[maybe_unused]] const bool older, read_pattern(s, "hybrid_override_pattern", m.layers, m));
  TRY_INTO([[maybe_unused]] const bool newer, read_pattern(s, "hybrid_layer_pattern", m.layers, m));
  if (m.pattern.find('M') != std::string::npos) {
    model::Mamba mamba;  // defaults of TransformerConfig
    TRY_INTO(const auto dim, s.integer("mamba_head_dim", 1, 1 << 14));
    TRY_INTO(const auto state, s.integer("mamba_state_dim", 1, 1 << 14));
    TRY_INTO(const auto groups, s.integer("mamba_num_groups", 1, 1 << 14));
    mamba.head_dim = dim.value_or(64);
    mamba.state = state.value_or(128);
    mamba.groups = groups.value_or(8);
    mamba.chunk = 128;
    TRY_INTO(const auto heads, s.integer("mamba_num_heads", 1, 1 << 16));
    mamba.heads = heads.value_or(std::max(1, 2 * m.hidden / mamba.head_dim));
    m.mamba = mamba;
  }
  TRY_INTO(const auto further, s.integer("mtp_num_layers", 0, 64));
  if (further) m.further.modules = *further;
  m.further.shared_weights = s.flag("mtp_use_repeated_layer");
  if (const auto window = s.text("window_size")) {
    // "(127, 0)": tokens to the left and to the right beside the token itself.
    const std::size_t digit = window->find_first_of("0123456789");
    const std::size_t last = digit == std::string::npos ? digit : window->find_first_not_of("0123456789", digit);
    const auto left = digit == std::string::npos ? std::nullopt : to_int(std::string_view(*window).substr(digit, last - digit));
    if (!left || *left >= 1 << 30) return fail("window-size: expected two whole numbers as in '(127, 0)'", s.pos("window_size"));
    m.sliding_window = *left + 1;
  }
  if (const auto every = s.text("window_attn_skip_freq")) m.full_attention_every = to_int(*every).value_or(0);
  return true;
}

Result<bool> read_latent_attention(Settings& s, model::Model& m) {
  if (!s.flag("multi_latent_attention")) return true;
  model::Mla mla;
  TRY_INTO(const auto q, s.integer("q_lora_rank", 0, 1 << 20));
  TRY_INTO(const auto kv, s.integer("kv_lora_rank", 1, 1 << 20));
  TRY_INTO(const auto nope, s.integer("qk_head_dim", 1, 1 << 14));
  TRY_INTO(const auto rope, s.integer("qk_pos_emb_head_dim", 1, 1 << 14));
  TRY_INTO(const auto value, s.integer("v_head_dim", 1, 1 << 14));
  mla.q_lora_rank = q.value_or(0);
  mla.kv_lora_rank = kv.value_or(512);  // defaults of MLATransformerConfig
  mla.qk_nope_head_dim = nope.value_or(128);
  mla.qk_rope_head_dim = rope.value_or(64);
  mla.v_head_dim = value.value_or(128);
  m.mla = mla;
  return true;
}

Result<bool> read_attention(Settings& s, const Reading& out, model::Model& m) {
  TRY_INTO(const auto heads, s.integer("num_attention_heads", 1, 1 << 16));
  if (!heads)
    return fail("num-attention-heads is missing beside num-layers and hidden-size", s.pos("num_layers"),
                {"add it, or give --model"});
  m.heads = *heads;
  const bool grouped = s.flag("group_query_attention");
  TRY_INTO(const auto groups, s.integer("num_query_groups", 1, 1 << 16));
  // On the command line num-query-groups does nothing without the switch; the sections of Megatron-Bridge have no
  // switch.
  const bool switched = grouped || out.format == Format::kNemoYaml;
  m.kv_heads = switched && groups ? *groups : grouped ? 1 : m.heads;  // argparse's default is one group
  TRY_INTO(const auto channels, s.integer("kv_channels", 1, 1 << 14));
  m.head_dim = channels.value_or(m.hidden / m.heads);
  m.qkv_bias = s.flag("add_qkv_bias");
  m.qk_norm = s.flag("qk_layernorm");
  return true;
}

Result<bool> read_vocabulary(Settings& s, model::Model& m) {
  TRY_INTO(auto vocabulary, s.integer("vocab_size", 1, 1 << 24));
  TRY_INTO(const auto padded, s.integer("padded_vocab_size", 1, 1 << 24));
  TRY_INTO(const auto divisor, s.integer("make_vocab_size_divisible_by", 1, 1 << 20));
  if (divisor)
    s.mark("make_vocab_size_divisible_by", *divisor == 128 ? Use::kUsed : Use::kNotModelled, "padded to 128 x tensor");
  if (!vocabulary) vocabulary = padded;
  if (!vocabulary) {
    const auto tokenizer = s.text("tokenizer_type");
    if (tokenizer) vocabulary = vocabulary_of(*tokenizer);
    if (!vocabulary) {
      if (const auto path = s.text("tokenizer_model")) {
        if (const auto known = catalogue_model(*path)) vocabulary = model::find_model(*known)->vocab;
      }
    }
  }
  if (!vocabulary) {
    return fail("the size of the vocabulary is in the tokenizer's files, not in these settings",
                s.has("tokenizer_type") ? s.pos("tokenizer_type") : s.pos("num_layers"),
                {"add --vocab-size to the arguments, or give --model here"});
  }
  m.vocab = *vocabulary;
  return true;
}

}  // namespace

Result<std::optional<model::Model>> read_megatron_model(Settings& s, Reading& out) {
  TRY_INTO(const auto layers, s.integer("num_layers", 1, 100000));
  TRY_INTO(const auto hidden, s.integer("hidden_size", 1, 1 << 20));
  if (!layers || !hidden) return std::optional<model::Model>{};
  model::Model m;
  m.name = fmt::format("{} layers of {}", *layers, *hidden);
  m.family = "megatron";
  m.layers = *layers;
  m.hidden = *hidden;
  TRY_INTO([[maybe_unused]] const bool attention, read_attention(s, out, m));
  m.gated_mlp = s.flag("swiglu") || s.flag("gated_linear_unit") || s.flag("quick_geglu") ||
                s.text("activation").value_or("").find("glu") != std::string::npos;
  TRY_INTO(const auto width, s.integer("ffn_hidden_size", 1, 1 << 22));
  // arguments.py: 4 x hidden, or two thirds of it in multiples of 64 beside SwiGLU.
  m.ffn_hidden = width.value_or(m.gated_mlp ? static_cast<int>(static_cast<long long>(*hidden) * 4 * 2 / 3 / 64 * 64)
                                            : 4 * *hidden);
  m.rms_norm = s.text("normalization").value_or("LayerNorm") == "RMSNorm";
  m.tied_embeddings =
      !s.flag("untie_embeddings_and_output_weights") &&
      s.boolean("share_embeddings_and_output_weights").value_or(std::optional<bool>(true)).value_or(true);
  TRY_INTO(const auto linear_bias, s.boolean("add_bias_linear"));
  const bool bias = !s.flag("disable_bias_linear") && linear_bias.value_or(true);
  m.mlp_bias = m.attention_out_bias = bias;
  m.qkv_bias = bias || m.qkv_bias;
  const auto positions = s.text("position_embedding_type");
  const bool rotary = (positions && *positions != "learned_absolute") || s.flag("use_rotary_position_embeddings");
  TRY_INTO(const auto most, s.integer("max_position_embeddings", 1, 1 << 26));
  if (!rotary && most) m.max_positions = *most;
  TRY_INTO([[maybe_unused]] const bool vocabulary, read_vocabulary(s, m));
  TRY_INTO([[maybe_unused]] const bool experts, read_experts(s, m));
  TRY_INTO([[maybe_unused]] const bool latent, read_latent_attention(s, m));
  TRY_INTO([[maybe_unused]] const bool mixed, read_mixed_layers(s, m));
  Result<model::Model> checked = model::validated(std::move(m));
  if (!checked && checked.error().pos.file.empty()) checked.error().pos = s.pos("num_layers");
  if (!checked) return tl::make_unexpected(checked.error());
  return std::optional<model::Model>(std::move(*checked));
}

}  // namespace chokepoint::frameworks

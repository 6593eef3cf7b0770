// SPDX-License-Identifier: Apache-2.0
// What each family of decoders has in common, as its reference implementation in HF transformers builds it.
#include <chokepoint/base/text.hpp>
#include <chokepoint/model/model.hpp>
#include <algorithm>
#include <array>

namespace chokepoint::model {

namespace {

/// Properties as letters, so that the table reads at a glance:
///   g gated MLP, t tied embeddings, r RMSNorm, n LayerNorm bias, q bias on q, k, v, o bias on the attention output,
///   m MLP bias, k norm of queries and keys, p parallel block, e norm after the embedding, h bias of the head,
///   1 one norm per layer, 4 four norms per layer, a gate on the attention's output, s attention sinks, b all tokens see one another, T transform before the head, F no final norm,
///   B relative position biases
struct Family {
  std::string_view name;
  std::string_view properties;
};

constexpr std::array<Family, 33> kFamilies = {{
    {"gpt2", "tnqom"},       {"gpt3", "tnqom"},    {"megatron", "tnqom"},    {"opt", "tnqom"},       {"gpt_neox", "nqom"},
    {"bloom", "tnqome"},     {"mpt", "t"},         {"falcon", "tnp"},        {"llama", "gr"},        {"mistral", "gr"},
    {"qwen2", "grq"},        {"qwen3", "grk"},     {"gemma", "grt"},         {"gemma2", "grt4"},     {"gemma3", "grtk4"},
    {"phi", "nqomph1"},      {"phi3", "gr"},       {"mixtral", "gr"},        {"qwen2_moe", "grq"},   {"qwen3_moe", "grk"},
    {"deepseek_v2", "gr"},   {"deepseek_v3", "gr"}, {"gemma3_text", "grtk4"}, {"nemotron_h", "r"},   {"qwen3_next", "grka"},
    {"gpt_oss", "grqoms"},  {"olmo2", "grk"},     {"bert", "tnqomehbTF"},   {"roberta", "tnqomehbTF"}, {"t5", "trB"},
    {"vit", "nqomhb"},       {"mamba2", "r"},      {"bamba", "gr"},
}};

}  // namespace

Result<Model> family_defaults(std::string_view family) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& f) { return f.name == family; });
  if (found == kFamilies.end()) {
    std::vector<std::string> notes;
    if (const auto close = nearest(family, families())) notes.push_back("did you mean '" + *close + "'?");
    std::string known = "known families: ";
    for (const Family& f : kFamilies) known += (f.name == kFamilies.front().name ? "" : ", ") + std::string(f.name);
    notes.push_back(std::move(known));
    return fail("unknown model family '" + std::string(family.substr(0, 100)) + "'", {}, std::move(notes));
  }
  const auto has = [&](char property) { return found->properties.find(property) != std::string_view::npos; };
  Model model;
  model.family = family == "gemma3_text" ? "gemma3" : std::string(family);
  model.gated_mlp = has('g');
  model.tied_embeddings = has('t');
  model.rms_norm = has('r');
  model.norm_bias = has('n');
  model.qkv_bias = has('q');
  model.attention_out_bias = has('o');
  model.mlp_bias = has('m');
  model.qk_norm = has('k');
  model.parallel_block = has('p');
  model.embedding_norm = has('e');
  model.head_bias = has('h');
  model.attention_gate = has('a');
  model.attention_sinks = has('s');
  model.bidirectional = has('b');
  model.head_transform = has('T');
  model.final_norm = !has('F');
  model.norms_per_layer = has('1') ? 1 : has('4') ? 4 : 2;
  if (has('B')) model.position_buckets = 32;
  return model;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

}  // namespace chokepoint::model

// SPDX-License-Identifier: Apache-2.0
#include "run_job.hpp"
#include "run_words.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::validate {
namespace {

using model::Model;

constexpr int kGpt2Vocabulary = 50257;   // arXiv 2005.14165
constexpr int kByteVocabulary = 256;
constexpr int kLlamaVocabulary = 32000;  // arXiv 2302.13971
/// Hidden size over layers of the GPT-3 models from 6.7 B on (arXiv 2005.14165, table 2.1).
constexpr double kWidthOverDepth = 128;
/// Learned position tables were usual while attention was not flash and sequences were short.
constexpr int kLongestLearnedPositions = 4096;

void note(std::vector<Note>& notes, std::string text) { notes.push_back({std::move(text), {}}); }

int round_to(double value, int multiple) {
  return std::max(multiple, static_cast<int>(std::lround(value / multiple)) * multiple);
}

/// Llama's rule for a gated MLP with as many parameters as 4 x hidden (arXiv 2302.13971, section 2.2).
int gated_ffn(int hidden) { return static_cast<int>(std::ceil(8.0 * hidden / 3.0 / 256.0)) * 256; }

bool says_gated(std::string_view mlp) { return mentions(mlp, {"glu", "gated"}); }

/// Catalogue model with the row's name as its own or as an alias, apart from spaces, signs and what stands in parentheses.
const Model* catalogue_model_named(std::string_view name) {
  const auto plain = [](std::string_view text) {
    std::string letters;
    for (const char c : lower(text)) {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) letters += c;
    }
    return letters;
  };
  const std::string wanted = plain(name.substr(0, name.find('(')));
  for (const Model& candidate : model::models()) {
    if (plain(candidate.name) == wanted) return &candidate;
    for (const std::string& alias : candidate.aliases) {
      if (plain(alias) == wanted) return &candidate;
    }
  }
  return nullptr;
}

/// Catalogue model with the sizes that the row states; it knows biases, norms and positions that a table never prints.
const Model* catalogue_model_shaped(const Model& shape) {
  for (const Model& candidate : model::models()) {
    if (candidate.layers == shape.layers && candidate.hidden == shape.hidden &&
        candidate.ffn_hidden == shape.ffn_hidden && candidate.heads == shape.heads &&
        candidate.kv_heads == shape.kv_heads && candidate.head_dim == shape.head_dim &&
        candidate.vocab == shape.vocab && candidate.gated_mlp == shape.gated_mlp && !candidate.moe) {
      return &candidate;
    }
  }
  return nullptr;
}

/// Only the parts of a model that set its parameter count coarsely: blocks of 4 h^2 + k h f, and the embeddings.
double block_parameters(double hidden, double ffn, bool gated) {
  return 4 * hidden * hidden + (gated ? 3 : 2) * hidden * ffn;
}

struct Shape {
  bool gated = false;
  bool tied = true;
  int ffn = 0;
};

/// MLP kind and width that come nearest to the printed parameter count, among the usual ones; the first of equals.
Shape shape_by_parameters(const RunFields& row, int layers, int hidden, int vocab) {
  // Widths of GPT, of Llama 1 and 2, and of Llama 3 (3.5 and 3.25 x hidden; arXiv 2407.21783, table 3).
  const Shape usual[] = {{false, true, 4 * hidden},        {true, true, 4 * hidden},       {true, false, gated_ffn(hidden)},
                         {true, true, gated_ffn(hidden)}, {false, false, 4 * hidden},     {true, false, 4 * hidden},
                         {true, false, hidden * 7 / 2},   {true, true, hidden * 7 / 2},   {true, false, hidden * 13 / 4}};
  const bool gated_family = row.mlp.empty() && mentions(row.model, {"llama", "mistral", "qwen"});
  Shape best = usual[gated_family ? 1 : 0];
  double best_error = 1e300;
  for (const Shape& shape : usual) {
    if (!row.mlp.empty() && shape.gated != says_gated(row.mlp)) continue;
    if (gated_family && !shape.gated) continue;
    const double total = layers * block_parameters(hidden, shape.ffn, shape.gated) +
                         static_cast<double>(vocab) * hidden * (shape.tied ? 1 : 2);
    const double error = std::abs(total - *row.params_b * 1e9);
    if (error < best_error) {
      best_error = error;
      best = shape;
    }
  }
  return best;
}

void fill_mlp(const RunFields& row, Model& model, std::vector<Note>& notes) {
  model.gated_mlp = says_gated(row.mlp);
  model.tied_embeddings = row.tied_embeddings.empty() ? !model.gated_mlp : row.tied_embeddings == "yes";
  if (row.ffn_hidden) {
    model.ffn_hidden = *row.ffn_hidden;
    if (row.mlp.empty()) {
      model.gated_mlp = model.ffn_hidden != 4 * model.hidden;
      note(notes, fmt::format("kind of MLP not stated: {} by its width", model.gated_mlp ? "gated" : "two matrices"));
    }
    return;
  }
  if (row.moe_experts && row.moe_ffn_hidden) {
    model.ffn_hidden = *row.moe_ffn_hidden;
    return;
  }
  if (row.params_b && row.mlp.empty()) {
    const Shape shape = shape_by_parameters(row, model.layers, model.hidden, model.vocab);
    model.gated_mlp = shape.gated;
    model.ffn_hidden = shape.ffn;
    if (row.tied_embeddings.empty()) model.tied_embeddings = shape.tied;
    note(notes, fmt::format("MLP not stated: {} of width {} comes nearest to {} B parameters",
                            shape.gated ? "gated" : "two matrices", shape.ffn, *row.params_b));
    return;
  }
  model.ffn_hidden = model.gated_mlp ? gated_ffn(model.hidden) : 4 * model.hidden;
  note(notes, fmt::format("MLP width not stated: {}", model.ffn_hidden));
  return;
}

/// Heads of 128, or the next usual width that divides the hidden size.
int usual_head_dim(int hidden, int tensor) {
  for (const int dim : {128, 96, 64, 80, 112, 144, 160, 192, 208, 256}) {
    if (hidden % dim == 0 && (hidden / dim) % tensor == 0) return dim;
  }
  for (int dim = 128; dim > 1; --dim) {
    if (hidden % dim == 0) return dim;
  }
  return hidden;
}

void fill_heads(const RunFields& row, Model& model, std::vector<Note>& notes) {
  if (row.n_heads) {
    model.heads = *row.n_heads;
  } else {
    const int dim = row.head_dim.value_or(usual_head_dim(model.hidden, row.tp.value_or(1)));
    model.heads = std::max(1, model.hidden / dim);
    note(notes, fmt::format("attention heads not stated: {} of width {}", model.heads, dim));
  }
  model.head_dim = row.head_dim.value_or(std::max(1, model.hidden / model.heads));
  model.kv_heads = row.n_kv_heads.value_or(model.heads);
}

/// Layers and hidden size from the parameter count when the row has only that.
Result<bool> fill_depth_and_width(const RunFields& row, Model& model, std::vector<Note>& notes) {
  if (row.n_layers && row.hidden) {
    model.layers = *row.n_layers;
    model.hidden = *row.hidden;
    return true;
  }
  if (!row.params_b) return fail("neither layers and hidden size nor a parameter count are stated");
  const double parameters = *row.params_b * 1e9;
  constexpr double block = 12;  // x hidden^2: 4 of attention and 8 of either kind of MLP
  const int heads_of_128 = 128 * std::min(row.tp.value_or(1), 64);  // so that tensor parallelism divides the heads
  if (row.hidden) {
    model.hidden = *row.hidden;
  } else if (row.n_layers) {
    model.hidden = round_to(std::sqrt(parameters / (block * *row.n_layers)), heads_of_128);
  } else {
    model.hidden = round_to(std::cbrt(parameters * kWidthOverDepth / block), heads_of_128);
  }
  const double embedding = static_cast<double>(model.vocab) * model.hidden;
  const double blocks = (parameters - embedding) / (block * model.hidden * static_cast<double>(model.hidden));
  if (blocks < 1 && !row.n_layers) {
    return fail(fmt::format("{} B parameters are too few for a vocabulary of {}, and no layer count is stated",
                            *row.params_b, model.vocab));
  }
  model.layers = row.n_layers.value_or(static_cast<int>(std::lround(blocks)));
  note(notes, fmt::format("shape not stated in full: {} layers of width {} hold {} B parameters", model.layers,
                          model.hidden, *row.params_b));
  return true;
}

void fill_block_details(const RunFields& row, Model& model) {
  const bool gpt_like = !model.gated_mlp;
  model.family = gpt_like ? "gpt2" : "llama";
  model.rms_norm = !gpt_like;
  model.norm_bias = gpt_like;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = gpt_like;
  const bool learned = gpt_like && !mentions(row.notes, {"alibi", "rotary", "rope"});
  const int sequence = row.seq_len.value_or(0);
  model.max_positions = learned && sequence <= kLongestLearnedPositions ? sequence : 0;
  model.embedding_norm = mentions(row.notes, {"embedding layer norm"});
}

void fill_experts(const RunFields& row, Model& model) {
  if (!row.moe_experts) return;
  model::Moe moe;
  moe.experts = *row.moe_experts;
  moe.top_k = row.moe_topk.value_or(1);
  moe.expert_ffn_hidden = row.moe_ffn_hidden.value_or(model.ffn_hidden);
  const auto shared = number_after(row.notes, "shared expert ffn ");
  if (shared && *shared >= 1 && *shared < 1e6) moe.shared_ffn_hidden = static_cast<int>(*shared);
  if (mentions(row.model, {"first layer dense"})) moe.first_layer = 1;
  model.moe = moe;
}

/// Latent attention and shared experts are parts of a family that tables hardly print: the catalogue entry with the same
/// width, heads and experts knows them; notes that print the ranks come first ("q_lora 1536, kv_lora 512, qk 128+64, v 128").
void fill_family_details(const RunFields& row, Model& model, std::vector<Note>& notes) {
  if (!model.moe) return;
  for (const Model& known : model::models()) {
    const bool same = known.moe && known.hidden == model.hidden && known.moe->experts == model.moe->experts &&
                      known.moe->top_k == model.moe->top_k && known.moe->expert_ffn_hidden == model.moe->expert_ffn_hidden;
    if (!same) continue;
    note(notes, fmt::format("attention and shared experts of the catalogue entry '{}' of the same experts", known.name));
    model.mla = known.mla;
    model.qk_norm = known.qk_norm;
    if (model.moe->shared_ffn_hidden == 0) model.moe->shared_ffn_hidden = known.moe->shared_ffn_hidden;
    if (model.layers == known.layers) model.moe->first_layer = known.moe->first_layer;
    if (!row.ffn_hidden) model.ffn_hidden = known.ffn_hidden;
    model.moe->router_bias = known.moe->router_bias;
    model.attention_sinks = known.attention_sinks;
    model.sliding_window = known.sliding_window;
    model.full_attention_every = known.full_attention_every;
    if (model.layers == known.layers) {
      model.further = known.further;
      model.further_pattern = known.further_pattern;
    }
    break;
  }
  const auto rank = [&](std::string_view phrase) { return static_cast<int>(number_after(row.notes, phrase).value_or(0)); };
  const int kv = rank("kv_lora ");
  const int qk = rank(" qk ");
  const int v = rank(", v ");
  const bool printed = kv > 0 && kv < 65536 && qk > 0 && qk < 4096 && v > 0 && v < 4096;
  if (!printed) return;
  const int rope = static_cast<int>(number_after(row.notes, fmt::format(" qk {}+", qk)).value_or(qk / 2));
  model.mla = model::Mla{std::clamp(rank("q_lora "), 0, 65535), kv, qk, std::clamp(rope, 1, 4096), v};
}

/// Modules that predict further tokens train where the row says so, or where the framework builds the model from its published
/// description (Megatron-Core's mtp_num_layers, which Megatron-Bridge takes from config.json); others leave them out.
void settle_further_tokens(const RunFields& row, Model& model, std::vector<Note>& notes) {
  if (model.further.modules == 0) return;
  const bool without = mentions(row.model, {"no mtp", "without mtp"});
  const bool with = mentions(row.model, {"with mtp"}) || mentions(row.framework, {"megatron"});
  if (without || !with) model.further.modules = 0;
  note(notes, model.further.modules > 0 ? "further tokens are predicted in training (MTP)" : "no further tokens are predicted (MTP off)");
}

void compare_parameters(const RunFields& row, const Model& model, std::vector<Note>& notes) {
  if (!row.params_b || model.moe) return;
  const double counted = model::count_parameters(model).total;
  if (std::abs(counted / (*row.params_b * 1e9) - 1) > 0.1) {
    note(notes, fmt::format("the shape holds {} parameters, the table says {} B", format_billions(counted),
                            *row.params_b));
  }
}

}  // namespace

Result<Model> model_of(const RunFields& row, std::vector<Note>& notes) {
  const bool sized = row.n_layers && row.hidden;
  if (!sized) {
    if (const Model* known = catalogue_model_named(row.model)) {
      note(notes, fmt::format("shape from the catalogue entry '{}'", known->name));
      Model model = *known;
      settle_further_tokens(row, model, notes);
      return model;
    }
    if (row.ep.value_or(1) > 1 && !row.moe_experts) return fail("expert parallelism is stated, but not the experts");
  }
  if (mentions(row.model, {"mamba", "hybrid"}) || mentions(row.notes, {"not a plain transformer", "mamba"})) {
    return fail("not a plain transformer: which of its layers are recurrent is not stated");
  }
  if (!sized && (mentions(row.model, {"moe"}) || mentions(row.notes, {"moe:", "experts"}))) {
    return fail("a mixture of experts whose shape is not stated");
  }
  Model model;
  model.name = row.model.empty() ? "unnamed" : row.model;
  const int usual = mentions(row.model, {"character-level"}) ? kByteVocabulary
                    : says_gated(row.mlp)                       ? kLlamaVocabulary
                                                                : kGpt2Vocabulary;
  model.vocab = row.vocab.value_or(usual);
  if (!row.vocab) note(notes, fmt::format("vocabulary not stated: {}", model.vocab));
  if (auto filled = fill_depth_and_width(row, model, notes); !filled) return tl::make_unexpected(filled.error());
  fill_mlp(row, model, notes);
  fill_heads(row, model, notes);
  fill_block_details(row, model);
  fill_experts(row, model);
  fill_family_details(row, model, notes);
  settle_further_tokens(row, model, notes);
  if (const Model* known = model.moe ? nullptr : catalogue_model_shaped(model)) {
    note(notes, fmt::format("details of the block from the catalogue entry '{}' of the same shape", known->name));
    const bool tied = row.tied_embeddings.empty() ? known->tied_embeddings : model.tied_embeddings;
    model = *known;
    model.tied_embeddings = tied;
  }
  compare_parameters(row, model, notes);
  return model::validated(std::move(model));
}

}  // namespace chokepoint::validate

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transformer, or a hybrid with recurrent layers: exact parameter counts and FLOPs.
#include <chokepoint/base/result.hpp>
#include <chokepoint/model/layers.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint {
class YamlMap;
}

namespace chokepoint::model {

/// Mixture-of-experts layers; every layer from `first_layer` on, in steps of `every`, is one.
struct Moe {
  int experts = 0;
  int top_k = 0;
  int expert_ffn_hidden = 0;
  int shared_ffn_hidden = 0;  ///< summed width of the experts every token visits; 0 for none
  int first_layer = 0;
  int every = 1;
  bool shared_gate = false;   ///< the shared experts' output is gated by one more router column (Qwen2-MoE)
  int latent = 0;             ///< width at which tokens travel to the experts and pass them; 0: hidden
  bool router_bias = false;   ///< gpt-oss
  bool operator==(const Moe&) const = default;
};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).
struct Mla {
  int q_lora_rank = 0;  ///< 0: queries are not compressed
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  bool operator==(const Mla&) const = default;
};

struct Model {
  std::string name;
  std::vector<std::string> aliases;
  std::string family;           ///< gpt2, opt, bloom, mpt, falcon, llama, mistral, qwen2, qwen3, gemma, megatron ...
  int layers = 0;
  int hidden = 0;
  int ffn_hidden = 0;
  int heads = 0;
  int kv_heads = 0;             ///< equals heads for multi-head attention
  int head_dim = 0;             ///< may differ from hidden / heads
  int vocab = 0;
  int max_positions = 0;        ///< rows of a learned position table; 0: rotary, ALiBi or none
  bool gated_mlp = false;       ///< three matrices (SwiGLU, GeGLU) instead of two
  bool tied_embeddings = false; ///< head shares the input embedding
  bool rms_norm = false;        ///< weight only; else LayerNorm with weight and bias
  bool norm_bias = true;        ///< LayerNorm carries a bias (MPT: no)
  int norms_per_layer = 2;      ///< Falcon-7B 1, Gemma-2 4
  bool final_norm = true;
  bool embedding_norm = false;  ///< BLOOM
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;         ///< Qwen3, Gemma-3: RMSNorm of head_dim on queries and keys
  bool parallel_block = false;  ///< attention and MLP side by side (Falcon)
  bool head_bias = false;
  int embedding_width = 0;      ///< narrower embedding with a projection in and out (OPT-350M); 0: hidden
  int sliding_window = 0;       ///< 0: full attention
  int full_attention_every = 0; ///< beside windows: layers at multiples of it (from 1) see all; 0: none do
  bool attention_gate = false;  ///< queries bring a gate of their own width for the attention's output (Qwen3-Next)
  bool attention_sinks = false; ///< a learned logit per head in each softmax (gpt-oss)
  std::string pattern;          ///< a letter per layer (layers.hpp); empty: attention and channel in every layer
  FurtherTokens further;
  std::string further_pattern;  ///< layers of one such module; empty: one like the last layer
  bool bidirectional = false;   ///< every token sees all (BERT, ViT)
  int encoder_layers = 0;       ///< of `layers`; the others are a decoder that also attends to the encoder's output (T5)
  int decoder_sequence = 0;     ///< tokens on the decoder's side; 0: as many as on the encoder's
  int position_buckets = 0;     ///< relative positions: a bias per bucket and head, once in each stack (T5)
  int token_types = 0;          ///< rows of a segment table (BERT)
  bool head_transform = false;  ///< a product and a norm before the head (BERT's masked-token head)
  int patch_inputs = 0;         ///< values of an image patch; tokens are patches and one class token (ViT), 0: text
  std::optional<Moe> moe;
  std::optional<Mla> mla;
  std::optional<Mamba> mamba;
  std::optional<Delta> delta;
  std::optional<double> published_parameters;  ///< printed total, for the check
  double published_tolerance = 0;              ///< relative; 0: the printed total is exact
  std::string source;

  LayerKind kind_of(int layer) const;
  bool is_moe_layer(int layer) const;
  /// Layers begin ... end - 1.
  LayerCounts kinds(int begin, int end) const;
  LayerCounts kinds() const { return kinds(0, layers); }
  /// Layers of one module that predicts a further token.
  LayerCounts further_kinds() const;
  Recurrence recurrence(Mixer mixer) const;
  /// Tokens on the side where a layer of this kind works, of a sequence of so many.
  double tokens_of(Mixer mixer, double sequence) const {
    return mixer == Mixer::kCross && decoder_sequence > 0 ? decoder_sequence : sequence;
  }
};

/// Exact counts, in elements.
struct ParameterCount {
  double embedding = 0;         ///< token (and learned position) tables
  double head = 0;              ///< 0 when tied
  double attention_per_layer = 0;
  double mlp_per_layer = 0;     ///< dense MLP
  double moe_per_layer = 0;     ///< all experts, router and shared experts of one MoE layer
  double norms_per_layer = 0;
  double experts_per_layer = 0; ///< routed experts alone, part of moe_per_layer
  double mamba_per_layer = 0;
  double delta_per_layer = 0;
  double further = 0;           ///< modules that predict further tokens, without the embedding and head they share
  double final = 0;             ///< final and embedding norms, position biases, what stands before the head
  double total = 0;
  double active = 0;            ///< parameters one token passes through
};
ParameterCount count_parameters(const Model& model);

/// Of one layer: what every data-parallel rank holds, and the routed experts that expert parallelism spreads.
struct LayerParameters {
  double dense = 0;
  double experts = 0;
};
LayerParameters layer_parameters(const Model& model, const ParameterCount& count, LayerKind kind);

/// Forward FLOPs (2 per multiply-add) of matrix products for one sequence of `sequence` tokens.
struct ForwardFlops {
  double attention_projections = 0;  ///< one layer
  double attention_scores = 0;       ///< one layer, QK^T and PV over the full square
  double mlp = 0;                    ///< one dense layer
  double moe = 0;                    ///< one MoE layer (active experts and router)
  double mamba = 0;                  ///< one layer: projections, convolution and the scan in blocks
  double delta = 0;
  double head = 0;                   ///< logits
  double total = 0;                  ///< whole model; `causal` halves the attention square
};
ForwardFlops forward_flops(const Model& model, int sequence, bool causal);
/// Products inside the blocks of a recurrence, per token.
double scan_flops_per_token(const Recurrence& recurrence);

/// How published tables count FLOPs of one step; a field, never an assumption.
enum class FlopConvention {
  kModelFullAttention,    ///< 3 x forward, full attention square (PaLM appendix B, llm-foundry, torchtitan)
  kModelCausalAttention,  ///< 3 x forward, half the square
  kHardwareMegatron,      ///< 96 B s l h^2 (1 + s/6h + V/16lh), recomputed forward included (arXiv 2104.04473)
};
/// FLOPs of one training step on `sequences` sequences.
double step_flops(const Model& model, int sequence, double sequences, FlopConvention convention);

/// What the family fixes: kind of norm, biases, gated MLP, tied embeddings; no sizes. Unknown families are an error.
Result<Model> family_defaults(std::string_view family);
/// The families that family_defaults() knows.
std::vector<std::string> families();

/// Everything of a mapping that describes a model but its name, family and sizes (docs/formats/job.md).
Result<bool> read_parts(const YamlMap& entry, Model& model);

/// Checks degrees of freedom (heads divide, positive sizes) and expands the pattern; the error names the field.
Result<Model> validated(Model model);

/// "MEM*" for four layers; a shorter pattern is repeated where it divides them. Megatron's '|' between pipeline stages is
/// dropped. The error names the letter.
Result<std::string> expanded_pattern(std::string_view text, int layers);

/// HF transformers config.json of the known families; an unknown model_type is an error.
Result<Model> read_hf_config(std::string_view json_text, const std::string& file);

/// Catalogue entry by name ("llama-3-70b", "gpt3-175b"), case ignored.
Result<Model> find_model(std::string_view name);
const std::vector<Model>& models();

}  // namespace chokepoint::model

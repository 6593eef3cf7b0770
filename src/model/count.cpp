// SPDX-License-Identifier: Apache-2.0
// Parameters and FLOPs. Counts are doubles that hold whole numbers below 2^53, hence exact.
#include <chokepoint/model/model.hpp>

namespace chokepoint::model {

namespace {

double square(double x) { return x * x; }

/// Weights of the attention matrices of one layer, without biases and norms; each is one multiply-add per token.
double attention_weights(const Model& m) {
  const double h = m.hidden;
  const double heads = m.heads;
  if (!m.mla) {
    const double query = heads * m.head_dim;
    const double key_value = 2.0 * m.kv_heads * m.head_dim;
    return h * (query + key_value) + query * h;
  }
  const Mla& mla = *m.mla;
  const double query_dim = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim);
  const double query = mla.q_lora_rank > 0 ? mla.q_lora_rank * (h + query_dim) : h * query_dim;
  const double down = h * (mla.kv_lora_rank + mla.qk_rope_head_dim);
  const double up = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  return query + down + up + heads * mla.v_head_dim * h;
}

double attention_biases(const Model& m) {
  const double qkv = m.qkv_bias ? static_cast<double>(m.heads + 2 * m.kv_heads) * m.head_dim : 0;
  return qkv + (m.attention_out_bias ? m.hidden : 0);
}

double mlp_weights(const Model& m, double width) { return (m.gated_mlp ? 3.0 : 2.0) * m.hidden * width; }
double mlp_biases(const Model& m, double width) {
  return m.mlp_bias ? (m.gated_mlp ? 2.0 : 1.0) * width + m.hidden : 0;
}

double norm_parameters(const Model& m, double width) { return m.rms_norm || !m.norm_bias ? width : 2 * width; }

double norms_of_layer(const Model& m) {
  double norms = m.norms_per_layer * norm_parameters(m, m.hidden);
  if (m.qk_norm) norms += 2.0 * m.head_dim;
  if (m.mla) norms += m.mla->kv_lora_rank + m.mla->q_lora_rank;
  return norms;
}

double router_weights(const Model& m) { return static_cast<double>(m.hidden) * (m.moe->experts + (m.moe->shared_gate ? 1 : 0)); }

int moe_layers(const Model& m) {
  int count = 0;
  for (int layer = 0; layer < m.layers; ++layer) count += m.is_moe_layer(layer) ? 1 : 0;
  return count;
}

}  // namespace

bool Model::is_moe_layer(int layer) const {
  return moe && layer >= moe->first_layer && (layer - moe->first_layer) % (moe->every > 0 ? moe->every : 1) == 0;
}

ParameterCount count_parameters(const Model& m) {
  const double width = m.embedding_width > 0 ? m.embedding_width : m.hidden;
  ParameterCount count;
  count.embedding = m.vocab * width + static_cast<double>(m.max_positions) * m.hidden;
  if (m.embedding_width > 0) count.embedding += 2.0 * width * m.hidden;
  count.head = (m.tied_embeddings ? 0 : m.vocab * width) + (m.head_bias ? m.vocab : 0);
  count.attention_per_layer = attention_weights(m) + attention_biases(m);
  count.mlp_per_layer = mlp_weights(m, m.ffn_hidden) + mlp_biases(m, m.ffn_hidden);
  count.norms_per_layer = norms_of_layer(m);
  count.final = (m.final_norm ? norm_parameters(m, m.hidden) : 0) + (m.embedding_norm ? norm_parameters(m, m.hidden) : 0);
  double unused_per_moe_layer = 0;
  if (m.moe) {
    const double expert = mlp_weights(m, m.moe->expert_ffn_hidden) + mlp_biases(m, m.moe->expert_ffn_hidden);
    const double shared = m.moe->shared_ffn_hidden > 0 ? mlp_weights(m, m.moe->shared_ffn_hidden) + mlp_biases(m, m.moe->shared_ffn_hidden) : 0;
    count.moe_per_layer = m.moe->experts * expert + shared + router_weights(m);
    unused_per_moe_layer = (m.moe->experts - m.moe->top_k) * expert;
  }
  const int sparse = moe_layers(m);
  count.total = count.embedding + count.head + count.final +
                m.layers * (count.attention_per_layer + count.norms_per_layer) + (m.layers - sparse) * count.mlp_per_layer +
                sparse * count.moe_per_layer;
  count.active = count.total - sparse * unused_per_moe_layer;
  return count;
}

ForwardFlops forward_flops(const Model& m, int sequence, bool causal) {
  const double s = sequence;
  ForwardFlops flops;
  flops.attention_projections = 2 * s * attention_weights(m);
  const double score_dim = m.mla ? m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim : m.head_dim;
  const double value_dim = m.mla ? m.mla->v_head_dim : m.head_dim;
  flops.attention_scores = 2 * square(s) * m.heads * (score_dim + value_dim);
  flops.mlp = 2 * s * mlp_weights(m, m.ffn_hidden);
  if (m.moe) {
    flops.moe = 2 * s * (m.moe->top_k * mlp_weights(m, m.moe->expert_ffn_hidden) + mlp_weights(m, m.moe->shared_ffn_hidden) + router_weights(m));
  }
  const double width = m.embedding_width > 0 ? m.embedding_width : m.hidden;
  flops.head = 2 * s * width * m.vocab + (m.embedding_width > 0 ? 4 * s * width * m.hidden : 0);
  const int sparse = moe_layers(m);
  flops.total = m.layers * (flops.attention_projections + flops.attention_scores * (causal ? 0.5 : 1.0)) +
                (m.layers - sparse) * flops.mlp + sparse * flops.moe + flops.head;
  return flops;
}

double step_flops(const Model& model, int sequence, double sequences, FlopConvention convention) {
  const ForwardFlops full = forward_flops(model, sequence, false);
  switch (convention) {
    case FlopConvention::kModelFullAttention: return 3 * sequences * full.total;
    case FlopConvention::kModelCausalAttention: return 3 * sequences * forward_flops(model, sequence, true).total;
    case FlopConvention::kHardwareMegatron:
      // The published formula counts each layer's forward pass twice (it is recomputed) and the head's once:
      // 4 (24 s h^2 + 4 s^2 h) l + 3 (2 s h V) = 96 s l h^2 (1 + s/6h + V/16lh). Stated through the parts it also holds
      // for other MLP widths and for grouped queries.
      return sequences * (4 * (full.total - full.head) + 3 * full.head);
  }
  return 0;
}

}  // namespace chokepoint::model

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
    return h * (query + key_value) + query * h + (m.attention_gate ? h * query : 0);
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
  return qkv + (m.attention_out_bias ? m.hidden : 0) + (m.attention_sinks ? m.heads : 0);
}

double mlp_weights(const Model& m, double width, double hidden) { return (m.gated_mlp ? 3.0 : 2.0) * hidden * width; }
double mlp_biases(const Model& m, double width, double hidden) {
  return m.mlp_bias ? (m.gated_mlp ? 2.0 : 1.0) * width + hidden : 0;
}

double norm_parameters(const Model& m, double width) { return m.rms_norm || !m.norm_bias ? width : 2 * width; }

double norms_of_layer(const Model& m, LayerKind kind) {
  double norms = m.norms_per_layer * norm_parameters(m, m.hidden) * kind.branches() / 2;
  if (!kind.attends()) return norms;
  if (m.qk_norm) norms += 2.0 * m.head_dim;
  if (m.mla) norms += m.mla->kv_lora_rank + m.mla->q_lora_rank;
  return norms;
}

double router_weights(const Model& m) { return static_cast<double>(m.hidden) * (m.moe->experts + (m.moe->shared_gate ? 1 : 0)); }

double expert_hidden(const Model& m) { return m.moe->latent > 0 ? m.moe->latent : m.hidden; }

/// To the experts' narrower width and back.
double latent_weights(const Model& m) { return 2.0 * m.hidden * m.moe->latent; }

double recurrence_parameters(const Model& m, Mixer mixer) {
  const Recurrence r = m.recurrence(mixer);
  const double products = m.hidden * (r.projected + r.inner);
  // Mamba-2: convolution with bias, a time-step bias, a decay and a skip per head, the gated norm. Gated delta rule:
  // convolution, a time-step bias and a decay per head, a norm of one head.
  if (mixer == Mixer::kMamba) return products + (m.mamba->conv + 1) * r.convolved + 3 * r.heads + r.inner;
  return products + m.delta->conv * r.convolved + 2 * r.heads + r.value;
}

/// Shared by all layers of a stack or standing before the head.
double final_parameters(const Model& m) {
  const double stacks = m.encoder_layers > 0 ? 2 : 1;
  const double norm = norm_parameters(m, m.hidden);
  double sum = (m.final_norm ? stacks * norm : 0) + (m.embedding_norm ? norm : 0);
  sum += stacks * static_cast<double>(m.position_buckets) * m.heads;
  if (m.head_transform) sum += square(m.hidden) + m.hidden + norm;
  return sum;
}

double embedding_parameters(const Model& m, double width) {
  const double positions = static_cast<double>(m.max_positions) * m.hidden;
  if (m.patch_inputs > 0) return static_cast<double>(m.hidden) * (m.patch_inputs + 2) + positions;  // bias and class token
  const double projection = m.embedding_width > 0 ? 2.0 * width * m.hidden : 0;
  return m.vocab * width + positions + static_cast<double>(m.token_types) * m.hidden + projection;
}

/// Sums `value(kind)` over the layers.
template <class Value>
double over_layers(const LayerCounts& counts, Value value) {
  double sum = 0;
  for (int i = 0; i < LayerCounts::kKinds; ++i) {
    if (counts.at(i) > 0) sum += counts.at(i) * value(LayerCounts::kind(i));
  }
  return sum;
}

double further_parameters(const Model& m, const ParameterCount& count) {
  if (m.further.modules == 0) return 0;
  const double layers = over_layers(m.further_kinds(), [&](LayerKind kind) {
    const LayerParameters one = layer_parameters(m, count, kind);
    return one.dense + one.experts;
  });
  const double each = layers + 2 * square(m.hidden) + 3 * norm_parameters(m, m.hidden);
  return each * (m.further.shared_weights ? 1 : m.further.modules);
}

}  // namespace

/// Products inside one block of the scan, per token. Mamba-2 (arXiv 2405.21060, section 6): C B^T for each group, its
/// masked product with X, the block's state and what an earlier state gives. Gated delta rule (arXiv 2412.06464 with the
/// WY form of 2406.06484): K K^T and Q K^T, the triangular inverse and its products with K and V, three with the state.
double scan_flops_per_token(const Recurrence& r) {
  const double state = r.key * r.value * r.heads;
  if (r.delta) return r.heads * 2 * r.chunk * (3 * r.key + 2 * r.value + r.chunk / 3) + 6 * state;
  return 2 * r.chunk * (r.key * r.groups + r.value * r.heads) + 4 * state;
}

bool Model::is_moe_layer(int layer) const { return kind_of(layer).channel == Channel::kExperts; }

namespace {
Channel channel_by_step(const Model& m, int layer) {
  const bool experts = m.moe && layer >= m.moe->first_layer &&
                       (layer - m.moe->first_layer) % (m.moe->every > 0 ? m.moe->every : 1) == 0;
  return experts ? Channel::kExperts : Channel::kMlp;
}

LayerKind kind_of_letter(const Model& m, char letter, int layer) {
  switch (letter) {
    case 'M': return {Mixer::kMamba, Channel::kNone};
    case 'G': return {Mixer::kDelta, Channel::kNone};
    case '*': return {m.sliding_window > 0 && m.full_attention_every == 0 ? Mixer::kWindow : Mixer::kAttention, Channel::kNone};
    case '-': return {Mixer::kNone, Channel::kMlp};
    case 'E': return {Mixer::kNone, Channel::kExperts};
    case 'm': return {Mixer::kMamba, channel_by_step(m, layer)};
    case 'g': return {Mixer::kDelta, channel_by_step(m, layer)};
    case 'w': return {Mixer::kWindow, channel_by_step(m, layer)};
    default: return {Mixer::kAttention, channel_by_step(m, layer)};
  }
}
}  // namespace

LayerKind Model::kind_of(int layer) const {
  const auto at = static_cast<std::size_t>(layer);
  if (!pattern.empty()) return kind_of_letter(*this, pattern[at % pattern.size()], layer);
  const Channel channel = channel_by_step(*this, layer);
  if (encoder_layers > 0) return {layer < encoder_layers ? Mixer::kEncoder : Mixer::kCross, channel};
  if (bidirectional) return {Mixer::kEncoder, channel};
  const bool all = sliding_window == 0 || (full_attention_every > 0 && (layer + 1) % full_attention_every == 0);
  return {all ? Mixer::kAttention : Mixer::kWindow, channel};
}

LayerCounts Model::kinds(int begin, int end) const {
  LayerCounts counts;
  const bool alike = pattern.empty() && !moe && encoder_layers == 0 && full_attention_every == 0;
  if (alike) {
    counts[kind_of(0)] = end > begin ? end - begin : 0;
    return counts;
  }
  for (int layer = begin; layer < end; ++layer) ++counts[kind_of(layer)];
  return counts;
}

LayerCounts Model::further_kinds() const {
  LayerCounts counts;
  if (further.modules == 0) return counts;
  if (further_pattern.empty()) ++counts[kind_of(layers - 1)];
  for (const char letter : further_pattern) ++counts[kind_of_letter(*this, letter, layers - 1)];
  return counts;
}

Recurrence Model::recurrence(Mixer mixer) const {
  Recurrence r;
  if (mixer == Mixer::kMamba && mamba) {
    r.heads = mamba->heads;
    r.groups = mamba->groups;
    r.key = mamba->state;
    r.value = mamba->head_dim;
    r.chunk = mamba->chunk;
    r.inner = r.heads * r.value;
    r.convolved = r.inner + 2 * r.groups * r.key;
    r.projected = r.convolved + r.inner + r.heads;
  } else if (mixer == Mixer::kDelta && delta) {
    r.delta = true;
    r.heads = delta->value_heads;
    r.groups = delta->key_heads;
    r.key = delta->key_dim;
    r.value = delta->value_dim;
    r.chunk = delta->chunk;
    r.inner = r.heads * r.value;
    r.convolved = r.inner + 2 * r.groups * r.key;
    r.projected = r.convolved + r.inner + 2 * r.heads;
  }
  return r;
}

LayerParameters layer_parameters(const Model& m, const ParameterCount& count, LayerKind kind) {
  LayerParameters out;
  out.dense = norms_of_layer(m, kind);
  if (kind.attends()) out.dense += count.attention_per_layer * (kind.mixer == Mixer::kCross ? 2 : 1);
  if (kind.mixer == Mixer::kMamba) out.dense += count.mamba_per_layer;
  if (kind.mixer == Mixer::kDelta) out.dense += count.delta_per_layer;
  if (kind.channel == Channel::kMlp) out.dense += count.mlp_per_layer;
  if (kind.channel == Channel::kExperts) {
    out.dense += count.moe_per_layer - count.experts_per_layer;
    out.experts = count.experts_per_layer;
  }
  return out;
}

ParameterCount count_parameters(const Model& m) {
  const double width = m.embedding_width > 0 ? m.embedding_width : m.hidden;
  const double h = m.hidden;
  ParameterCount count;
  count.embedding = embedding_parameters(m, width);
  count.head = (m.tied_embeddings ? 0 : m.vocab * width) + (m.head_bias ? m.vocab : 0);
  count.attention_per_layer = attention_weights(m) + attention_biases(m);
  count.mlp_per_layer = mlp_weights(m, m.ffn_hidden, h) + mlp_biases(m, m.ffn_hidden, h);
  count.norms_per_layer = norms_of_layer(m, {});
  if (m.mamba) count.mamba_per_layer = recurrence_parameters(m, Mixer::kMamba);
  if (m.delta) count.delta_per_layer = recurrence_parameters(m, Mixer::kDelta);
  count.final = final_parameters(m);
  double unused_per_moe_layer = 0;
  if (m.moe) {
    const double outside = expert_hidden(m);
    const double ffn = m.moe->expert_ffn_hidden;
    const double shared_ffn = m.moe->shared_ffn_hidden;
    const double expert = mlp_weights(m, ffn, outside) + mlp_biases(m, ffn, outside);
    const double shared = shared_ffn > 0 ? mlp_weights(m, shared_ffn, h) + mlp_biases(m, shared_ffn, h) : 0;
    count.experts_per_layer = m.moe->experts * expert;
    count.moe_per_layer = count.experts_per_layer + shared + router_weights(m) + latent_weights(m) +
                          (m.moe->router_bias ? m.moe->experts : 0);
    unused_per_moe_layer = (m.moe->experts - m.moe->top_k) * expert;
  }
  const LayerCounts kinds = m.kinds();
  count.total = count.embedding + count.head + count.final + over_layers(kinds, [&](LayerKind kind) {
                  const LayerParameters one = layer_parameters(m, count, kind);
                  return one.dense + one.experts;
                });
  count.active = count.total -
                 over_layers(kinds, [&](LayerKind kind) { return kind.channel == Channel::kExperts ? unused_per_moe_layer : 0; });
  count.further = further_parameters(m, count);
  return count;
}

namespace {

/// Share of the square of queries and keys that a kind of attention computes.
double seen_share(const Model& m, Mixer mixer, double s, bool causal) {
  if (!causal || mixer == Mixer::kEncoder) return 1;
  if (mixer != Mixer::kWindow || m.sliding_window >= s) return 0.5;
  const double w = m.sliding_window / s;
  return w * (1 - w / 2);
}

/// Forward of one layer whose sequence has `s` tokens, before an encoder of `encoder` tokens.
double layer_flops(const Model& m, const ForwardFlops& f, LayerKind kind, double s, double encoder, bool causal) {
  // The parts hold for `encoder` tokens; a decoder with its own length scales them.
  const double scale = s / encoder;
  double sum = 0;
  if (kind.attends()) {
    sum = f.attention_projections * scale + f.attention_scores * scale * scale * seen_share(m, kind.mixer, s, causal);
  }
  if (kind.mixer == Mixer::kCross) {
    const double q_and_out = 4.0 * s * m.hidden * m.heads * m.head_dim;
    sum += q_and_out + f.attention_projections - q_and_out / scale + f.attention_scores * scale;
  }
  if (kind.mixer == Mixer::kMamba) sum = f.mamba;
  if (kind.mixer == Mixer::kDelta) sum = f.delta;
  if (kind.channel == Channel::kMlp) sum += f.mlp * scale;
  if (kind.channel == Channel::kExperts) sum += f.moe * scale;
  return sum;
}

double recurrence_flops(const Model& m, Mixer mixer, double s) {
  const Recurrence r = m.recurrence(mixer);
  const double taps = mixer == Mixer::kMamba ? m.mamba->conv : m.delta->conv;
  return s * (2 * m.hidden * (r.projected + r.inner) + 2 * taps * r.convolved + scan_flops_per_token(r));
}

}  // namespace

ForwardFlops forward_flops(const Model& m, int sequence, bool causal) {
  const double s = sequence;
  ForwardFlops flops;
  flops.attention_projections = 2 * s * attention_weights(m);
  const double score_dim = m.mla ? m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim : m.head_dim;
  const double value_dim = m.mla ? m.mla->v_head_dim : m.head_dim;
  flops.attention_scores = 2 * square(s) * m.heads * (score_dim + value_dim);
  flops.mlp = 2 * s * mlp_weights(m, m.ffn_hidden, m.hidden);
  if (m.moe) {
    const double experts = m.moe->top_k * mlp_weights(m, m.moe->expert_ffn_hidden, expert_hidden(m));
    flops.moe = 2 * s * (experts + mlp_weights(m, m.moe->shared_ffn_hidden, m.hidden) + router_weights(m) + latent_weights(m));
  }
  if (m.mamba) flops.mamba = recurrence_flops(m, Mixer::kMamba, s);
  if (m.delta) flops.delta = recurrence_flops(m, Mixer::kDelta, s);
  const double width = m.embedding_width > 0 ? m.embedding_width : m.hidden;
  const double head_tokens = m.patch_inputs > 0 ? 1 : m.encoder_layers > 0 ? m.tokens_of(Mixer::kCross, s) : s;
  flops.head = 2 * head_tokens * width * m.vocab + (m.embedding_width > 0 ? 4 * s * width * m.hidden : 0);
  if (m.head_transform) flops.head += 2 * head_tokens * square(m.hidden);
  const auto one = [&](LayerKind kind) { return layer_flops(m, flops, kind, m.tokens_of(kind.mixer, s), s, causal); };
  flops.total = over_layers(m.kinds(), one) + flops.head;
  if (m.patch_inputs > 0) flops.total += 2 * s * m.hidden * m.patch_inputs;
  if (m.further.modules > 0) {
    flops.total += m.further.modules * (over_layers(m.further_kinds(), one) + 4 * s * square(m.hidden) + flops.head);
  }
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

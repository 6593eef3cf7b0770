// SPDX-License-Identifier: Apache-2.0
// Idea: list the tensors that each operator saves (arXiv 2205.05198, section 4), extended to RMSNorm, rotary embedding,
// grouped queries, gated MLPs, flash attention and experts. What differs between frameworks is only which operators are
// fused: a fused operator keeps its input alone, a chain of primitives keeps every link. Two bytes per element unless said.
#include "activations.hpp"

#include <algorithm>

namespace chokepoint::parallel {

namespace {

constexpr double kHalf = 2;    // bytes of a 16-bit element
constexpr double kSingle = 4;  // bytes of an fp32 element

struct Widths {
  double hidden, query, key, value, ffn;
};

Widths widths_of(const model::Model& m, model::LayerKind kind) {
  Widths w{};
  w.hidden = m.hidden;
  if (kind.channel == model::Channel::kMlp) w.ffn = m.ffn_hidden;
  if (kind.channel == model::Channel::kExperts) {
    w.ffn = static_cast<double>(m.moe->expert_ffn_hidden) * m.moe->top_k + m.moe->shared_ffn_hidden;
  }
  if (!kind.attends()) return w;
  w.query = static_cast<double>(m.heads) * m.head_dim;
  w.key = w.value = static_cast<double>(m.kv_heads) * m.head_dim;
  if (m.mla) {
    w.query = w.key = static_cast<double>(m.heads) * (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim);
    w.value = static_cast<double>(m.heads) * m.mla->v_head_dim;
  }
  return w;
}

/// Transformer Engine keeps the input of an fp8 product as the product took it, in one byte (module/layernorm_linear.py and
/// linear.py save the quantised tensor); the norm's own input and the activation's stay 16-bit.
double product_input(const Job& job, const Software& software) {
  const bool quantised = job.dtype == hardware::Dtype::kFp8 || job.dtype == hardware::Dtype::kFp4;
  return software.fused_library && quantised ? 1 : kHalf;
}

/// Inputs and outputs of the norms; the output is the input of the next product.
double norms(const Job& job, const Software& software, const Widths& w, model::LayerKind kind) {
  const model::Model& m = job.model;
  const double count = m.parallel_block ? 1 : kind.branches();
  // RMSNorm out of primitives: the fp32 copy and the normalised values before the weight, beside the output.
  const bool primitive = software.elementwise == Elementwise::kPrimitive && m.rms_norm;
  return count * w.hidden * (primitive ? kSingle + kHalf + kHalf : kHalf + product_input(job, software));
}

double attention(const Job& job, const Software& software, const Widths& w, model::LayerKind kind) {
  if (!kind.attends()) return 0;
  const model::Model& m = job.model;
  const double output = m.mla ? w.value : w.query;
  double bytes = kHalf * (w.query + w.key + w.value + output);
  const bool rotary = m.max_positions == 0;
  if (m.qk_norm) bytes += kHalf * (w.query + w.key);
  // The attention keeps its own 16-bit output; the quantised input of the output product comes beside it.
  if (product_input(job, software) < kHalf) bytes += product_input(job, software) * output;
  switch (software.elementwise) {
    case Elementwise::kFused:
      // The value is a view into the fused projection, which stays whole beside the rotated query and key.
      if (rotary) bytes += kHalf * (w.query + w.key);
      break;
    case Elementwise::kMixed:
      // flash-attn's packed key-value copy before the rotation, and the transposed output.
      bytes += kHalf * (w.key + w.value + output);
      break;
    case Elementwise::kPrimitive:
      // repeat_kv writes keys and values for every query head.
      if (!m.mla) bytes += kHalf * 2 * (w.query - w.key);
      break;
    case Elementwise::kCompiled: break;
  }
  if (m.attention_gate) bytes += kHalf * 2 * output;  // the gate, and what it made of the output
  return kind.mixer == model::Mixer::kCross ? 2 * bytes : bytes;
}

/// What the input projection made, before and after the convolution and scan, and the gated norm's output, which is the
/// output product's input (mamba_ssm, mamba_split_conv1d_scan_combined: the convolution runs again in backward).
double recurrence(const Job& job, const Software& software, model::LayerKind kind) {
  if (!kind.recurs()) return 0;
  const model::Recurrence r = job.model.recurrence(kind.mixer);
  double bytes = kHalf * (r.projected + r.inner) + product_input(job, software) * r.inner;
  // The kernels of the delta rule keep keys and values as the triangular inverse changed them, and the convolution's output.
  if (r.delta) bytes += kHalf * (r.convolved + r.heads * (r.key + r.value));
  return bytes;
}

/// Probabilities of unfused attention: softmax output, and with dropout its result and its one-byte mask; a chain of
/// primitives keeps the fp32 softmax beside its 16-bit copy.
double scores(const Job& job, const Software& software, model::LayerKind kind) {
  if (!kind.attends() || job.attention != compute::AttentionKernel::kUnfused) return 0;
  const double each = software.dropout ? 5 : software.elementwise == Elementwise::kPrimitive ? 6 : 2;
  return each * job.model.heads * job.sequence;
}

double mlp(const Job& job, const Software& software, const Widths& w) {
  const double product = product_input(job, software);
  if (!job.model.gated_mlp) return (kHalf + product) * w.ffn;  // before and after the activation function
  switch (software.elementwise) {
    case Elementwise::kCompiled:
    case Elementwise::kFused: return (kHalf * 2 + product) * w.ffn;  // gate, up and their product
    default: return kHalf * 4 * w.ffn;                   // and the activated gate
  }
}

/// torchtitan's operator policy: the layer input, attention's output, and the first, third, fifth and last of the products
/// query, key, value, output, gate, up, down; all else is computed again.
double kept_by_operator_policy(const model::Model& m, const Strategy& s, const Widths& w) {
  const double split = kHalf * (w.query + w.value + (m.mla ? w.value : w.query) + w.ffn);
  const double outside = s.sequence_parallel ? s.tensor : 1.0;
  return split / s.tensor + kHalf * 2 * w.hidden / outside;
}

}  // namespace

LayerActivations layer_activations(const Job& job, const Strategy& s, const Software& software, model::LayerKind kind) {
  const model::Model& m = job.model;
  const Widths w = widths_of(m, kind);
  const double t = s.tensor;
  const double outside = s.sequence_parallel ? t : 1.0;  // norms, residuals and dropout outside the split
  const double branches = kind.branches();
  const double masks = software.dropout ? branches * w.hidden : 0;
  const double probabilities = scores(job, software, kind) / t;
  LayerActivations a;
  a.recomputed = (norms(job, software, w, kind) + masks) / outside +
                 (attention(job, software, w, kind) + recurrence(job, software, kind) + mlp(job, software, w)) / t;
  // Permuted inputs and unpermuted outputs of the experts, both kept for the weighted sum's backward.
  if (kind.channel == model::Channel::kExperts) {
    a.recomputed += kHalf * 2 * (m.moe->latent > 0 ? m.moe->latent : w.hidden) * m.moe->top_k / outside;
  }
  a.saved = a.recomputed + (s.recompute == Recompute::kSelective ? 0 : probabilities);
  a.recomputed += probabilities;
  if (s.recompute == Recompute::kSelective && software.operator_recompute) a.saved = kept_by_operator_policy(m, s, w);
  a.checkpoint = kHalf * w.hidden / outside;
  a.gradients = kHalf * ((m.gated_mlp ? 2.0 : 1.0) * w.ffn / t + (s.sequence_parallel ? 4 : 2) * w.hidden);
  a.widest = kHalf * (m.gated_mlp ? 2 : 1) * w.ffn / t;
  if (s.sequence_parallel && s.tensor > 1) {
    a.gathers = kind.branches();  // before attention and before the MLP
    a.gathered = kHalf * w.hidden;
  }
  return a;
}

LayerActivations mean_activations(const Job& job, const Strategy& s, const Software& software, const model::LayerCounts& kinds) {
  LayerActivations mean;
  const double layers = kinds.total();
  double gathers = 0;
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (kinds.at(i) == 0) continue;
    const model::LayerKind kind = model::LayerCounts::kind(i);
    const LayerActivations one = layer_activations(job, s, software, kind);
    // A layer on another side of the model, with tokens of its own number.
    const double share = kinds.at(i) / layers * job.model.tokens_of(kind.mixer, job.sequence) / job.sequence;
    mean.saved += one.saved * share;
    mean.checkpoint += one.checkpoint * share;
    gathers += one.gathers * kinds.at(i) / layers;
    mean.recomputed = std::max(mean.recomputed, one.recomputed);
    mean.gradients = std::max(mean.gradients, one.gradients);
    mean.gathered = std::max(mean.gathered, one.gathered);
    mean.widest = std::max(mean.widest, one.widest);
  }
  mean.gathers = static_cast<int>(gathers + 0.5);
  return mean;
}

}  // namespace chokepoint::parallel

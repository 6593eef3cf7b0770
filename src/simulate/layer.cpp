// SPDX-License-Identifier: Apache-2.0
// One transformer layer, operator by operator. Products come from the kernel model at their real shapes; everything else
// is a pass over memory, counted in bytes per token; tensor-parallel collectives are timed at their real message size.
// Backward of a product is two products (input and weight gradient); of a memory pass, its reads and writes.
#include "layer.hpp"

#include <algorithm>
#include <cmath>


namespace chokepoint::simulate {

namespace {

using collective::Op;
using hardware::Dtype;

struct Product {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  double flops = 0;
};

/// y[T, n] = x[T, k] W[k, n] with its two backward products.
Product product(const StepContext& c, Dtype dtype, double tokens, double n, double k, double copies = 1) {
  // Row-wise scaled fp8 runs outside cuBLAS and loses in casts and epilogues what the format gains: published A/B runs
  // (torchtitan on H100 and B200) are no faster than bf16.
  if (dtype == Dtype::kFp8 && c.job.fp8_rowwise) dtype = Dtype::kBf16;
  Product p;
  p.forward = c.kernels.gemm_s(dtype, tokens, n, k, copies);
  p.input_gradient = c.kernels.gemm_s(dtype, tokens, k, n, copies);
  p.weight_gradient = c.job.frozen_weights ? 0 : c.kernels.gemm_s(dtype, k, n, tokens, copies);
  p.flops = 2 * tokens * n * k * copies;
  return p;
}

/// Memory passes of one layer in bytes per token (bf16 activations), forward and backward.
struct Traffic {
  double outer_forward = 0;  ///< norms and residuals: on every rank, or split by sequence parallelism
  double outer_backward = 0;
  double inner_forward = 0;  ///< rotary, activation: split by tensor parallelism
  double inner_backward = 0;
};

/// Forward and backward bytes of one operator per element of its output.
struct Bytes {
  double forward = 0;
  double backward = 0;
};

/// RMSNorm as primitives casts to fp32 (2+4), squares (4+4), averages (4), scales (4+4), casts back (4+2) and multiplies
/// by the weight (2+2); LayerNorm is one kernel in eager PyTorch too. Backward runs the same chain with gradients.
Bytes norm_bytes(const model::Model& m, parallel::Elementwise style) {
  if (style == parallel::Elementwise::kPrimitive && m.rms_norm) return {36, 60};
  if (style == parallel::Elementwise::kCompiled) return {2, 5};  // reads come with the residual pass
  return {4, 6};
}

/// Rotary embedding: primitives cast to fp32 (2+4), multiply as complex numbers (4+4) and cast back (4+2).
Bytes rotary_bytes(parallel::Elementwise style) {
  return style == parallel::Elementwise::kPrimitive ? Bytes{20, 20} : Bytes{4, 4};
}

/// Activation: GELU reads and writes; SwiGLU reads two and writes one, as primitives in two kernels.
Bytes activation_bytes(const model::Model& m, parallel::Elementwise style) {
  if (!m.gated_mlp) return {4, 6};
  const bool primitive = style == parallel::Elementwise::kPrimitive || style == parallel::Elementwise::kMixed;
  return primitive ? Bytes{10, 18} : Bytes{6, 10};
}

Traffic traffic(const model::Model& m, const parallel::Software& software, double ffn) {
  Traffic t;
  const double h = m.hidden;
  const double q_kv = static_cast<double>(m.heads + m.kv_heads) * m.head_dim;
  const Bytes norm = norm_bytes(m, software.elementwise);
  // A residual add reads two and writes one; backward adds two gradients.
  t.outer_forward = m.norms_per_layer * norm.forward * h + 2 * 6 * h;
  t.outer_backward = m.norms_per_layer * norm.backward * h + 2 * 6 * h;
  if (software.dropout) {
    t.outer_forward += 2 * 1 * h;
    t.outer_backward += 2 * 5 * h;
  }
  if (m.qkv_bias || m.mlp_bias) t.outer_backward += 2 * h;
  if (m.max_positions == 0) {
    const Bytes rotary = rotary_bytes(software.elementwise);
    t.inner_forward += rotary.forward * q_kv;
    t.inner_backward += rotary.backward * q_kv;
  }
  if (m.qk_norm) {
    t.inner_forward += norm.forward * q_kv;
    t.inner_backward += norm.backward * q_kv;
  }
  const double copied = 4 * software.attention_copies * (q_kv + static_cast<double>(m.kv_heads) * m.head_dim);
  t.inner_forward += copied;
  t.inner_backward += copied;
  if (m.mla) {
    // Queries and keys are joined from their rotary and other parts, keys spread over the heads: read and written.
    const double joined = 2.0 * m.heads * (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim);
    t.inner_forward += 4 * joined;
    t.inner_backward += 4 * joined;
  }
  const Bytes activation = activation_bytes(m, software.elementwise);
  t.inner_forward += activation.forward * ffn;
  t.inner_backward += activation.backward * ffn;
  return t;
}

double outside_split(const StepContext& c) { return c.strategy.sequence_parallel ? c.strategy.tensor : 1.0; }

void add_traffic(const StepContext& c, const Traffic& t, LayerCost& cost) {
  const double outer = c.tokens / outside_split(c);
  const double inner = c.tokens / c.strategy.tensor;
  // A layer's passes are some ten kernels; each pays the ramp of its own size.
  const auto passes = [&](double bytes, int kernels) { return kernels * c.kernels.memory_s(bytes / kernels); };
  cost.forward.compute += passes(t.outer_forward * outer, 4) + passes(t.inner_forward * inner, 2);
  cost.backward.compute += passes(t.outer_backward * outer, 4) + passes(t.inner_backward * inner, 2);
}

/// Weight gradients of one layer: written by the product in the resident dtype; a separate accumulation reads them and
/// updates the accumulation buffer.
double gradient_accumulation(const StepContext& c, double parameters) {
  const double accumulate = c.software.accumulation_bytes > 0 ? 2 + 2 * c.software.accumulation_bytes
                                                              : 2 * c.software.gradient_bytes;
  return c.kernels.memory_s(accumulate * parameters);
}

compute::AttentionShape attention_shape(const StepContext& c) {
  const model::Model& m = c.job.model;
  compute::AttentionShape shape;
  shape.batch = c.strategy.micro_batch;
  shape.heads = std::max(1.0, static_cast<double>(m.heads) / c.strategy.tensor);
  shape.kv_heads = std::max(1.0, static_cast<double>(m.kv_heads) / c.strategy.tensor);
  shape.head_dim = m.mla ? (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim + m.mla->v_head_dim) / 2.0 : m.head_dim;
  shape.sequence = static_cast<double>(c.job.sequence) / c.strategy.context;
  shape.kv_sequence = c.job.sequence;
  if (m.sliding_window > 0) shape.kv_sequence = std::min<double>(shape.kv_sequence, 2.0 * m.sliding_window);
  shape.causal = c.job.causal;
  if (c.strategy.context > 1 && shape.causal) {
    // Zig-zag slices: every rank sees half of the keys on average, in blocks without a mask.
    shape.causal = false;
    shape.kv_sequence /= 2;
  }
  return shape;
}

/// Tensor-parallel collectives. With sequence parallelism an all-gather before and a reduce-scatter after each half;
/// without it one all-reduce after each half (arXiv 2205.05198, section 4.2).
void add_tensor(const StepContext& c, double hidden, double hidden_dgrad_s, double hiding_wgrad_s, int halves, LayerCost& cost) {
  if (c.strategy.tensor == 1) return;
  const double bytes = c.tokens * hidden * 2;
  const double slow = interference(c.job.accelerator, c.constants);
  double forward = 0;
  double backward = 0;
  if (c.strategy.sequence_parallel) {
    const collective::Cost gathered = c.network.cost(Op::kAllGather, bytes, c.groups.tensor);
    const double gather = gathered.time_s;
    // A gather and a scatter forward, two gathers and a scatter backward.
    cost.forward.host += 2 * halves * gathered.call_s;
    cost.backward.host += 3 * halves * gathered.call_s;
    const double scatter = c.network.cost(Op::kReduceScatter, bytes, c.groups.tensor).time_s;
    forward = halves * (gather + scatter);
    const double per_half_dgrad = hidden_dgrad_s / halves;
    const double per_half_wgrad = hiding_wgrad_s / halves;
    if (c.software.wgrad_hides_tensor) {
      // Row-parallel side gathers the gradient exposed; column-parallel side hides the input gather under dgrad and the
      // reduce-scatter under wgrad.
      const double hidden_part = overlapped(per_half_dgrad, gather, slow) + overlapped(per_half_wgrad, scatter, slow) -
                                 per_half_dgrad - per_half_wgrad;
      backward = halves * (gather + std::max(0.0, hidden_part));
    } else {
      backward = halves * (2 * gather + scatter);
    }
  } else {
    const collective::Cost reduced = c.network.cost(Op::kAllReduce, bytes, c.groups.tensor);
    const double reduce = reduced.time_s;
    cost.forward.host += halves * reduced.call_s;
    cost.backward.host += halves * reduced.call_s;
    forward = halves * reduce;
    const double per_half = hiding_wgrad_s / halves;
    backward = c.software.wgrad_hides_tensor ? halves * (overlapped(per_half, reduce, slow) - per_half) : halves * reduce;
  }
  if (c.strategy.overlap_tensor) {
    // Pieces of the product run while pieces of the tensor travel: what is left is one piece in `tensor` and the loss of
    // efficiency of cut products (MODEL 3(d), kappa 1.05-1.15).
    // No more hides than the products take: forward those of the columns, backward both gradients unless one already
    // hides something.
    const double hiding_backward = hidden_dgrad_s + (c.software.wgrad_hides_tensor ? 0 : hiding_wgrad_s);
    forward = std::max(c.constants.async_tensor_exposed * forward, forward - hidden_dgrad_s);
    backward = std::max(c.constants.async_tensor_exposed * backward, backward - hiding_backward);
  }
  cost.forward.tensor += forward;
  cost.backward.tensor += std::max(0.0, backward);
}

/// Ring or all-gather context parallelism: keys and values of the other slices pass by while attention runs.
void add_context(const StepContext& c, double attention_forward_s, double attention_backward_s, LayerCost& cost) {
  if (c.strategy.context == 1) return;
  const model::Model& m = c.job.model;
  const double kv_bytes = 2.0 * c.tokens * c.strategy.context * m.kv_heads * m.head_dim * 2 / c.strategy.tensor;
  const double gather = c.network.cost(Op::kAllGather, kv_bytes, c.groups.context).time_s;
  const double steps = c.strategy.context;
  const double exposed_share = 1.0 / steps;  // the first hop has nothing to hide behind
  cost.forward.context += gather * exposed_share + std::max(0.0, gather * (1 - exposed_share) - attention_forward_s);
  cost.backward.context +=
      2 * gather * exposed_share + std::max(0.0, 2 * gather * (1 - exposed_share) - attention_backward_s);
}

struct Attention {
  Product qkv, out;
  double forward = 0;
  double backward = 0;
  double flops = 0;
  double parameters = 0;  ///< on this rank
};

Attention attention_half(const StepContext& c) {
  const model::Model& m = c.job.model;
  const double t = c.strategy.tensor;
  Attention a;
  const double q = static_cast<double>(m.heads) * m.head_dim;
  const double kv = static_cast<double>(m.kv_heads) * m.head_dim;
  if (m.mla) {
    // Low-rank projections: down (replicated over tensor ranks) and up (split).
    const double q_rank = m.mla->q_lora_rank > 0 ? m.mla->q_lora_rank : 0;
    const double qk = m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim;
    const double down = q_rank + m.mla->kv_lora_rank + m.mla->qk_rope_head_dim;
    const double up_q = m.heads * qk / t;
    const double up_kv = m.heads * static_cast<double>(m.mla->qk_nope_head_dim + m.mla->v_head_dim) / t;
    const Product d = product(c, c.job.dtype, c.tokens, down, m.hidden);
    const Product uq = product(c, c.job.dtype, c.tokens, up_q, q_rank > 0 ? q_rank : m.hidden);
    const Product ukv = product(c, c.job.dtype, c.tokens, up_kv, m.mla->kv_lora_rank);
    a.qkv = {d.forward + uq.forward + ukv.forward, d.input_gradient + uq.input_gradient + ukv.input_gradient,
             d.weight_gradient + uq.weight_gradient + ukv.weight_gradient, d.flops + uq.flops + ukv.flops};
    a.out = product(c, c.job.dtype, c.tokens, m.hidden, m.heads * static_cast<double>(m.mla->v_head_dim) / t);
    a.parameters = (a.qkv.flops + a.out.flops) / (2 * c.tokens);
  } else {
    a.qkv = product(c, c.job.dtype, c.tokens, (q + 2 * kv) / t, m.hidden);
    a.out = product(c, c.job.dtype, c.tokens, m.hidden, q / t);
    a.parameters = (q + 2 * kv + q) / t * m.hidden;
  }
  const compute::AttentionShape shape = attention_shape(c);
  const Dtype dtype = c.job.dtype == Dtype::kFp8 || c.job.dtype == Dtype::kFp4 ? Dtype::kBf16 : c.job.dtype;
  a.forward = c.constants.machine_pace * c.kernels.attention_forward_s(c.job.attention, dtype, shape);
  a.backward = c.constants.machine_pace * c.kernels.attention_backward_s(c.job.attention, dtype, shape);
  a.flops = 4.0 * shape.batch * shape.heads * shape.head_dim * shape.sequence * shape.kv_sequence * (shape.causal ? 0.5 : 1.0);
  return a;
}

void add_host(const StepContext& c, LayerCost& cost);

/// What recomputation runs again in backward.
void add_recompute(const StepContext& c, const Attention& a, LayerCost& cost) {
  switch (c.strategy.recompute) {
    case parallel::Recompute::kNone: return;
    case parallel::Recompute::kSelective:
      if (c.job.framework == parallel::Framework::kMaxtext) {
        // Its "minimal" policies keep the outputs of all products (jax.checkpoint_policies); what lies between runs again.
        cost.recompute.compute = std::max(0.0, cost.forward.compute - cost.matmul_s) + a.forward;
        cost.recompute.host = 0;
      } else if (c.strategy.sharder == parallel::Sharder::kFsdp) {
        // Per-operator policy of torchtitan: every second product, attention and collectives are kept, the rest runs
        // again; policies by fraction of blocks (fms-fsdp) come to about as much.
        cost.recompute.compute = 0.5 * (cost.forward.compute - a.forward);
        cost.recompute.host = 0.6 * cost.forward.host;
        cost.recompute_flops = 0.5 * (cost.matmul_flops - a.flops);
      } else {
        cost.recompute.compute = a.forward;
        cost.recompute.host = 0.15 * cost.forward.host;
        cost.recompute_flops = a.flops;
      }
      return;
    case parallel::Recompute::kFull:
      cost.recompute = cost.forward;
      cost.recompute_flops = cost.matmul_flops;
      return;
  }
}

/// fp8 products need their operands cast and transposed: read bf16, write fp8 twice, per operand and pass.
void add_casts(const StepContext& c, double inputs_per_token, double parameters, LayerCost& cost) {
  if (c.job.dtype != Dtype::kFp8 && c.job.dtype != Dtype::kFp4) return;
  const double weights = 4 * parameters / std::max(1, c.strategy.accumulate);
  cost.forward.compute += c.kernels.memory_s(4 * inputs_per_token * c.tokens + weights);
  cost.backward.compute += c.kernels.memory_s(4 * inputs_per_token * c.tokens);
}

// Host time of one layer beside its calls of collectives: kernel launches, the Python around them, and what parallelism adds.
void add_host(const StepContext& c, LayerCost& cost) {
  using compute::Execution;
  const Execution execution = c.software.compiled ? Execution::kCompiled : Execution::kEager;
  const auto style = c.software.elementwise == parallel::Elementwise::kPrimitive ? compute::OperatorStyle::kPrimitive : compute::OperatorStyle::kFused;
  const bool unfused = c.job.attention == compute::AttentionKernel::kUnfused;
  const compute::LayerKernels kernels = c.launches.layer_kernels(execution, style, unfused);
  const double launch = c.launches.launch_s(execution, c.job.year);
  const double python = c.software.compiled ? c.constants.python_compiled_share : 1.0;
  double extra = 0;
  if (c.strategy.tensor > 1) extra += c.strategy.sequence_parallel ? c.constants.sequence_parallel_host_s : c.constants.tensor_host_s;
  if (c.strategy.zero == 3) extra += c.constants.sharded_unit_host_s;
  cost.forward.host += kernels.forward * launch + python * (c.constants.python_forward_s + extra);
  cost.backward.host += kernels.backward * launch + python * (c.constants.python_backward_s + extra);
}

double in_step_factor(const StepContext& c) {
  return c.constants.machine_pace * (c.software.fused_library || c.software.whole_program ? c.constants.kernel_in_step_fused : c.constants.kernel_in_step);
}

/// Kernels in a step run slower than alone; the attention core does not.
void in_step(const StepContext& c, const Attention& a, LayerCost& cost) {
  const double factor = in_step_factor(c);
  cost.forward.compute = factor * (cost.forward.compute - a.forward) + a.forward;
  cost.backward.compute = factor * (cost.backward.compute - a.backward) + a.backward;
  cost.matmul_s = factor * (cost.matmul_s - a.forward) + a.forward;
}

}  // namespace

double interference(const hardware::Accelerator& accelerator, const Constants& constants) {
  const double units = std::max(40, accelerator.compute_units);
  return units / (units - constants.communication_units);
}

double overlapped(double compute_s, double communication_s, double slowdown) {
  if (slowdown * compute_s >= communication_s) return compute_s + communication_s * (1.0 - 1.0 / slowdown);
  return communication_s;
}

LayerCost dense_layer(const StepContext& c) {
  const model::Model& m = c.job.model;
  const double t = c.strategy.tensor;
  LayerCost cost;
  const Attention a = attention_half(c);
  const double ffn = m.ffn_hidden / t;
  const Product up = product(c, c.job.dtype, c.tokens, (m.gated_mlp ? 2 : 1) * ffn, m.hidden);
  const Product down = product(c, c.job.dtype, c.tokens, m.hidden, ffn);
  cost.forward.compute = a.qkv.forward + a.out.forward + up.forward + down.forward + a.forward;
  cost.matmul_s = cost.forward.compute;
  cost.matmul_flops = a.qkv.flops + a.out.flops + up.flops + down.flops + a.flops;
  cost.backward.compute = a.qkv.input_gradient + a.qkv.weight_gradient + a.out.input_gradient + a.out.weight_gradient +
                          up.input_gradient + up.weight_gradient + down.input_gradient + down.weight_gradient + a.backward;
  add_traffic(c, traffic(m, c.software, m.ffn_hidden), cost);
  const double parameters = a.parameters + (m.gated_mlp ? 3 : 2) * ffn * m.hidden;
  add_casts(c, 2.0 * m.hidden + ffn + static_cast<double>(m.heads) * m.head_dim / t, parameters, cost);
  cost.backward.compute += gradient_accumulation(c, parameters);
  add_tensor(c, m.hidden, a.qkv.input_gradient + up.input_gradient, a.qkv.weight_gradient + up.weight_gradient,
             m.parallel_block ? 1 : 2, cost);
  add_context(c, a.forward, a.backward, cost);
  in_step(c, a, cost);
  add_host(c, cost);
  add_recompute(c, a, cost);
  return cost;
}

/// Share of the copies for other hosts that pass the NICs. A token needs one copy for each host that holds one of its k
/// experts, expected (H - 1)(1 - C(E - E/H, k)/C(E, k)) of them, instead of k (H - 1)/H (MODEL 3(f)).
double network_share(const StepContext& c, const model::Moe& moe) {
  const int domain = c.job.cluster.hosts.front().host.nvlink_domain_hosts;
  const double hosts = std::ceil(static_cast<double>(c.groups.expert.hosts()) / domain);
  if (!c.job.token_once_per_host || hosts < 2) return 1;
  const double elsewhere = moe.experts * (1 - 1 / hosts);
  double none = 1;
  for (int i = 0; i < moe.top_k; ++i) none *= std::max(0.0, (elsewhere - i) / (moe.experts - i));
  const double copies = (hosts - 1) * (1 - none);
  return std::min(1.0, copies / (moe.top_k * (hosts - 1) / hosts));
}

/// Bytes per element of the top_k copies of the tokens on their way to the experts and back. Fused kernels read and write
/// when they sort by expert, again when they return, weighting on the way; several local experts need a second sort behind
/// the exchange. Primitives gather (4), multiply by the scores in fp32 (6 + 8 + 6), sort and pad for the grouped
/// product and undo it (8), and add up into fp32 (12); their gradients add by index instead of copying.
Bytes permutation_bytes(const StepContext& c, double local_experts) {
  const double second_sort = c.strategy.expert > 1 && local_experts > 1 ? 8 : 0;
  if (c.job.token_once_per_host) return {8, 8};  // DeepEP and HybridEP sort on the way, with kernels of their own
  switch (c.software.elementwise) {
    case parallel::Elementwise::kPrimitive:
    case parallel::Elementwise::kMixed: return {36 + second_sort, 48 + second_sort};
    case parallel::Elementwise::kCompiled: return {16 + second_sort, 24 + second_sort};
    case parallel::Elementwise::kFused: break;
  }
  return {8 + second_sort, 8 + second_sort};
}

LayerCost moe_layer(const StepContext& c) {
  const model::Model& m = c.job.model;
  const model::Moe& moe = *m.moe;
  const double t = c.strategy.tensor;
  LayerCost cost;
  const Attention a = attention_half(c);
  // Tokens of the expert-parallel ranks meet: each local expert sees tokens x ep x top_k / experts of them.
  const double local = std::max(1.0, static_cast<double>(moe.experts) / c.strategy.expert);
  const double routed = c.tokens * moe.top_k;
  const double per_expert = std::max(1.0, routed * c.strategy.expert / moe.experts);
  const double width = moe.expert_ffn_hidden / (c.strategy.expert > 1 ? 1.0 : t);
  const double share = c.strategy.expert > 1 ? 1.0 / t : 1.0;  // sequence-parallel slices go to experts
  const Product up = product(c, c.job.dtype, std::max(1.0, per_expert * share), (m.gated_mlp ? 2 : 1) * width, m.hidden, local);
  const Product down = product(c, c.job.dtype, std::max(1.0, per_expert * share), m.hidden, width, local);
  Product shared_up, shared_down;
  if (moe.shared_ffn_hidden > 0) {
    shared_up = product(c, c.job.dtype, c.tokens, (m.gated_mlp ? 2 : 1) * moe.shared_ffn_hidden / t, m.hidden);
    shared_down = product(c, c.job.dtype, c.tokens, m.hidden, moe.shared_ffn_hidden / t);
  }
  const Product router = product(c, Dtype::kBf16, c.tokens / outside_split(c), moe.experts, m.hidden);
  cost.forward.compute = a.qkv.forward + a.out.forward + a.forward + up.forward + down.forward + shared_up.forward +
                         shared_down.forward + router.forward;
  cost.matmul_s = cost.forward.compute;
  cost.matmul_flops = a.qkv.flops + a.out.flops + a.flops + up.flops + down.flops + shared_up.flops + shared_down.flops;
  for (const Product* p : std::initializer_list<const Product*>{&a.qkv, &a.out, &up, &down, &shared_up, &shared_down, &router}) {
    cost.backward.compute += p->input_gradient + p->weight_gradient;
  }
  cost.backward.compute += a.backward;
  const double active = static_cast<double>(moe.expert_ffn_hidden) * moe.top_k + moe.shared_ffn_hidden;
  add_traffic(c, traffic(m, c.software, active), cost);
  // Small kernels whose size hardly matters: softmax, top-k, scatter, balance loss, counts, offsets of both sorts.
  cost.forward.compute += c.constants.routing_kernels * c.kernels.memory_s(0);
  cost.backward.compute += 0.5 * c.constants.routing_kernels * c.kernels.memory_s(0);
  const Bytes moved = permutation_bytes(c, local);
  const double copies = moe.top_k * m.hidden * c.tokens / outside_split(c);
  cost.forward.compute += c.kernels.memory_s(moved.forward * copies);
  cost.backward.compute += c.kernels.memory_s(moved.backward * copies);
  const double parameters =
      a.parameters + (m.gated_mlp ? 3 : 2) * m.hidden * (local * width + moe.shared_ffn_hidden / t);
  add_casts(c, 2.0 * m.hidden + active, parameters, cost);
  cost.backward.compute += gradient_accumulation(c, parameters);
  add_tensor(c, m.hidden, a.qkv.input_gradient, a.qkv.weight_gradient, c.strategy.expert > 1 ? 1 : 2, cost);
  add_context(c, a.forward, a.backward, cost);
  if (c.strategy.expert > 1) {
    const double bytes = c.tokens * share * moe.top_k * m.hidden * 2;
    const double exchange = c.network.exchange(bytes, network_share(c, moe), c.groups.expert).time_s;
    cost.forward.expert += 2 * exchange;
    cost.backward.expert += 2 * exchange;
  }
  in_step(c, a, cost);
  add_host(c, cost);
  cost.forward.host *= c.constants.moe_host_factor;
  cost.backward.host *= c.constants.moe_host_factor;
  add_recompute(c, a, cost);
  return cost;
}

EndCost embedding(const StepContext& c) {
  EndCost cost;
  const double bytes = c.tokens * c.job.model.hidden * 2;
  cost.forward.compute = c.kernels.memory_s(2 * bytes);
  cost.backward.compute = c.kernels.memory_s(3 * bytes);
  if (c.strategy.tensor > 1) {
    const Op op = c.strategy.sequence_parallel ? Op::kReduceScatter : Op::kAllReduce;
    cost.forward.tensor = c.network.cost(op, bytes, c.groups.tensor).time_s;
    if (c.strategy.sequence_parallel) cost.backward.tensor = c.network.cost(Op::kAllGather, bytes, c.groups.tensor).time_s;
  }
  return cost;
}

namespace {
/// Rows of the head on one rank. Megatron pads the vocabulary to a multiple of 128 x tensor (--make-vocab-size-divisible-by).
double head_rows(const StepContext& c) {
  const parallel::Job& job = c.job;
  const double t = c.strategy.tensor;
  if (job.padded_vocab > 0) return job.padded_vocab / t;
  const bool pads = job.framework == parallel::Framework::kMegatron || job.framework == parallel::Framework::kMegatronDeepspeed;
  return pads ? std::ceil(job.model.vocab / (128 * t)) * 128 : job.model.vocab / t;
}
}  // namespace

EndCost head(const StepContext& c) {
  EndCost cost;
  const model::Model& m = c.job.model;
  const double vocab = head_rows(c);
  const Dtype dtype = c.job.dtype == Dtype::kFp8 || c.job.dtype == Dtype::kFp4 ? Dtype::kBf16 : c.job.dtype;
  const Product logits = product(c, dtype, c.tokens, vocab, m.hidden);
  const double loss = c.kernels.memory_s(c.software.logits_bytes * c.tokens * vocab);
  const double factor = in_step_factor(c);
  cost.forward.compute = factor * (logits.forward + 0.5 * loss);
  cost.backward.compute = factor * (logits.input_gradient + logits.weight_gradient + 0.5 * loss +
                                    gradient_accumulation(c, vocab * m.hidden));
  if (c.strategy.tensor > 1) {
    const double bytes = c.tokens * m.hidden * 2;
    if (c.strategy.sequence_parallel) {
      cost.forward.tensor = c.network.cost(Op::kAllGather, bytes, c.groups.tensor).time_s;
      cost.backward.tensor = c.network.cost(Op::kReduceScatter, bytes, c.groups.tensor).time_s;
    } else {
      cost.backward.tensor = c.network.cost(Op::kAllReduce, bytes, c.groups.tensor).time_s;
    }
    // Maximum, target logit and sum of exponentials cross the group in fp32.
    cost.forward.tensor += 3 * c.network.cost(Op::kAllReduce, 4 * c.tokens, c.groups.tensor).time_s;
  }
  return cost;
}

}  // namespace chokepoint::simulate

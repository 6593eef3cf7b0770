// SPDX-License-Identifier: Apache-2.0
// One transformer layer, operator by operator. Products come from the kernel model at their real shapes; everything else
// is a pass over memory, counted in bytes per token; tensor-parallel collectives are timed at their real message size.
// Backward of a product is two products (input and weight gradient); of a memory pass, its reads and writes.
#include "layer.hpp"

#include "products.hpp"
#include "scan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace chokepoint::simulate {

using collective::Op;
using hardware::Dtype;
using model::Channel;
using model::Mixer;

/// y[T, n] = x[T, k] W[k, n] with its two backward products.
Product product(const StepContext& c, Dtype dtype, double tokens, double n, double k, double copies) {
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

/// Weight gradients of one layer: written by the product in the resident dtype; a separate accumulation reads them and
/// updates the accumulation buffer.
double gradient_accumulation(const StepContext& c, double parameters) {
  const double accumulate = c.software.accumulation_bytes > 0 ? 2 + 2 * c.software.accumulation_bytes
                                                              : 2 * c.software.gradient_bytes;
  return c.kernels.memory_s(accumulate * parameters);
}

double in_step_factor(const StepContext& c) {
  return c.constants.machine_pace * (c.software.fused_library || c.software.whole_program ? c.constants.kernel_in_step_fused : c.constants.kernel_in_step);
}

double outside_split(const StepContext& c) { return c.strategy.sequence_parallel ? c.strategy.tensor : 1.0; }

namespace {

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

/// Rotary embedding, norms of queries and keys, changes of layout.
void add_attention_traffic(const model::Model& m, const parallel::Software& software, Traffic& t) {
  const double q_kv = static_cast<double>(m.heads + m.kv_heads) * m.head_dim;
  if (m.max_positions == 0) {
    const Bytes rotary = rotary_bytes(software.elementwise);
    t.inner_forward += rotary.forward * q_kv;
    t.inner_backward += rotary.backward * q_kv;
  }
  if (m.qk_norm) {
    const Bytes norm = norm_bytes(m, software.elementwise);
    t.inner_forward += norm.forward * q_kv;
    t.inner_backward += norm.backward * q_kv;
  }
  const double copied = 4 * software.attention_copies * (q_kv + static_cast<double>(m.kv_heads) * m.head_dim);
  t.inner_forward += copied;
  t.inner_backward += copied;
  if (m.attention_gate) {
    // The gate: a sigmoid of it times the output, and both gradients.
    t.inner_forward += 6 * static_cast<double>(m.heads) * m.head_dim;
    t.inner_backward += 10 * static_cast<double>(m.heads) * m.head_dim;
  }
  if (m.mla) {
    // Queries and keys are joined from their rotary and other parts, keys spread over the heads: read and written.
    const double joined = 2.0 * m.heads * (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim);
    t.inner_forward += 4 * joined;
    t.inner_backward += 4 * joined;
  }
}

/// Convolution (read and written; backward reads its input and a gradient, writes one, and runs it again) and the norm that
/// the gate multiplies: two read, one written; backward three and two.
void add_recurrence_traffic(const model::Recurrence& r, Traffic& t) {
  t.inner_forward += 4 * r.convolved + 6 * r.inner;
  t.inner_backward += 10 * r.convolved + 10 * r.inner;
}

/// `ffn`: width between the products of the channel, all experts of a token together.
Traffic traffic(const model::Model& m, const parallel::Software& software, model::LayerKind kind, double ffn) {
  Traffic t;
  const double h = m.hidden;
  const double branches = kind.branches();
  const Bytes norm = norm_bytes(m, software.elementwise);
  // A residual add reads two and writes one; backward adds two gradients.
  t.outer_forward = m.norms_per_layer * branches / 2 * norm.forward * h + branches * 6 * h;
  t.outer_backward = m.norms_per_layer * branches / 2 * norm.backward * h + branches * 6 * h;
  if (software.dropout) {
    t.outer_forward += branches * 1 * h;
    t.outer_backward += branches * 5 * h;
  }
  if (m.qkv_bias || m.mlp_bias) t.outer_backward += branches * h;
  if (kind.attends()) add_attention_traffic(m, software, t);
  if (kind.mixer == Mixer::kCross) add_attention_traffic(m, software, t);
  if (kind.recurs()) add_recurrence_traffic(m.recurrence(kind.mixer), t);
  if (kind.channel == Channel::kNone) return t;
  const Bytes activation = activation_bytes(m, software.elementwise);
  t.inner_forward += activation.forward * ffn;
  t.inner_backward += activation.backward * ffn;
  return t;
}

void add_traffic(const StepContext& c, const Traffic& t, int branches, LayerCost& cost) {
  const double outer = c.tokens / outside_split(c);
  const double inner = c.tokens / c.strategy.tensor;
  // A layer's passes are some ten kernels; each pays the ramp of its own size.
  const auto passes = [&](double bytes, int kernels) { return kernels * c.kernels.memory_s(bytes / kernels); };
  cost.forward.compute += passes(t.outer_forward * outer, 2 * branches) + passes(t.inner_forward * inner, branches);
  cost.backward.compute += passes(t.outer_backward * outer, 2 * branches) + passes(t.inner_backward * inner, branches);
}

compute::AttentionShape attention_shape(const StepContext& c, Mixer mixer) {
  const model::Model& m = c.job.model;
  compute::AttentionShape shape;
  shape.batch = c.strategy.micro_batch;
  shape.heads = std::max(1.0, static_cast<double>(m.heads) / c.strategy.tensor);
  shape.kv_heads = std::max(1.0, static_cast<double>(m.kv_heads) / c.strategy.tensor);
  shape.head_dim = m.mla ? (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim + m.mla->v_head_dim) / 2.0 : m.head_dim;
  const double sequence = m.tokens_of(mixer, c.job.sequence);
  shape.sequence = sequence / c.strategy.context;
  shape.kv_sequence = sequence;
  // Kernels that materialise the scores only mask what lies outside a window.
  const bool skips = c.job.attention != compute::AttentionKernel::kUnfused;
  if (mixer == Mixer::kWindow && skips) shape.kv_sequence = std::min<double>(shape.kv_sequence, 2.0 * m.sliding_window);
  shape.causal = c.job.causal && mixer != Mixer::kEncoder;
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
  if (c.strategy.tensor == 1 || halves == 0) return;
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

/// Of a mixer on this rank, one micro-batch.
struct Mixing {
  Product in;               ///< column-parallel: queries, keys, values; gate, input and the rest of a recurrent layer
  Product out;
  double forward = 0;       ///< attention core
  double backward = 0;
  double scan_forward = 0;  ///< recurrence in blocks
  double scan_backward = 0;
  double core_flops = 0;    ///< of attention or scan
  double inner = 0;         ///< width into `out`
  double parameters = 0;
};

Product sum(const Product& a, const Product& b) {
  return {a.forward + b.forward, a.input_gradient + b.input_gradient, a.weight_gradient + b.weight_gradient, a.flops + b.flops};
}

/// Low-rank projections: down (replicated over tensor ranks) and up (split).
void add_latent_projections(const StepContext& c, Mixing& a) {
  const model::Model& m = c.job.model;
  const double t = c.strategy.tensor;
  const double q_rank = m.mla->q_lora_rank > 0 ? m.mla->q_lora_rank : 0;
  const double qk = m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim;
  const double down = q_rank + m.mla->kv_lora_rank + m.mla->qk_rope_head_dim;
  const double up_q = m.heads * qk / t;
  const double up_kv = m.heads * static_cast<double>(m.mla->qk_nope_head_dim + m.mla->v_head_dim) / t;
  const Product d = product(c, c.job.dtype, c.tokens, down, m.hidden);
  const Product uq = product(c, c.job.dtype, c.tokens, up_q, q_rank > 0 ? q_rank : m.hidden);
  const Product ukv = product(c, c.job.dtype, c.tokens, up_kv, m.mla->kv_lora_rank);
  a.in = sum(sum(d, uq), ukv);
  a.out = product(c, c.job.dtype, c.tokens, m.hidden, m.heads * static_cast<double>(m.mla->v_head_dim) / t);
  a.parameters = (a.in.flops + a.out.flops) / (2 * c.tokens);
}

/// Adds the attention core at `shape`.
void add_core(const StepContext& c, const compute::AttentionShape& shape, Mixing& a) {
  const Dtype dtype = c.job.dtype == Dtype::kFp8 || c.job.dtype == Dtype::kFp4 ? Dtype::kBf16 : c.job.dtype;
  a.forward += c.constants.machine_pace * c.kernels.attention_forward_s(c.job.attention, dtype, shape);
  a.backward += c.constants.machine_pace * c.kernels.attention_backward_s(c.job.attention, dtype, shape);
  a.core_flops += 4.0 * shape.batch * shape.heads * shape.head_dim * shape.sequence * shape.kv_sequence * (shape.causal ? 0.5 : 1.0);
}

/// Attention of a decoder to an encoder's output: queries of one side, keys and values of the other.
void add_cross(const StepContext& c, Mixing& a) {
  const model::Model& m = c.job.model;
  const double t = c.strategy.tensor;
  const double q = static_cast<double>(m.heads) * m.head_dim / t;
  const double kv = 2.0 * m.kv_heads * m.head_dim / t;
  const double encoder_tokens = c.tokens * c.job.sequence / m.tokens_of(Mixer::kCross, c.job.sequence);
  a.in = sum(a.in, sum(product(c, c.job.dtype, c.tokens, q, m.hidden), product(c, c.job.dtype, encoder_tokens, kv, m.hidden)));
  a.out = sum(a.out, product(c, c.job.dtype, c.tokens, m.hidden, q));
  compute::AttentionShape shape = attention_shape(c, Mixer::kCross);
  shape.kv_sequence = c.job.sequence;
  shape.causal = false;
  add_core(c, shape, a);
  a.parameters += (2 * q + kv) * m.hidden;
}

Mixing attention(const StepContext& c, Mixer mixer) {
  const model::Model& m = c.job.model;
  const double t = c.strategy.tensor;
  const double q = static_cast<double>(m.heads) * m.head_dim;
  const double kv = static_cast<double>(m.kv_heads) * m.head_dim;
  Mixing a;
  a.inner = q;
  if (m.mla) {
    add_latent_projections(c, a);
  } else {
    const double gate = m.attention_gate ? q : 0;
    a.in = product(c, c.job.dtype, c.tokens, (q + gate + 2 * kv) / t, m.hidden);
    a.out = product(c, c.job.dtype, c.tokens, m.hidden, q / t);
    a.parameters = (q + gate + 2 * kv + q) / t * m.hidden;
  }
  add_core(c, attention_shape(c, mixer), a);
  if (mixer == Mixer::kCross) add_cross(c, a);
  return a;
}

Mixing recurrent(const StepContext& c, Mixer mixer) {
  const model::Recurrence r = c.job.model.recurrence(mixer);
  const double t = c.strategy.tensor;
  Mixing a;
  a.inner = r.inner;
  a.in = product(c, c.job.dtype, c.tokens, r.projected / t, c.job.model.hidden);
  a.out = product(c, c.job.dtype, c.tokens, c.job.model.hidden, r.inner / t);
  a.parameters = (r.projected + r.inner) / t * c.job.model.hidden;
  const Scan scan = scan_in_blocks(c, r);
  a.scan_forward = scan.forward_s;
  a.scan_backward = scan.backward_s;
  a.core_flops = scan.flops;
  return a;
}

void add_host(const StepContext& c, double share, LayerCost& cost);

/// What recomputation runs again in backward.
void add_recompute(const StepContext& c, const Mixing& a, LayerCost& cost) {
  const double attention_flops = a.forward > 0 ? a.core_flops : 0;
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
        cost.recompute_flops = 0.5 * (cost.matmul_flops - attention_flops);
      } else {
        cost.recompute.compute = a.forward;
        cost.recompute.host = a.forward > 0 ? 0.15 * cost.forward.host : 0;
        cost.recompute_flops = attention_flops;
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

/// Host time of a layer that is `share` of a usual one, beside its calls of collectives: kernel launches, the Python around them, and what parallelism adds.
void add_host(const StepContext& c, double share, LayerCost& cost) {
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
  cost.forward.host += share * (kernels.forward * launch + python * (c.constants.python_forward_s + extra));
  cost.backward.host += share * (kernels.backward * launch + python * (c.constants.python_backward_s + extra));
}

/// Kernels in a step run slower than alone; the attention core does not.
void in_step(const StepContext& c, const Mixing& a, LayerCost& cost) {
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

namespace {

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

/// Of a channel on this rank, one micro-batch.
struct Working {
  std::array<Product, 7> products;
  std::size_t count = 0;
  double matmul_flops = 0;
  double extra_forward = 0;   ///< routing and sorting
  double extra_backward = 0;
  double width = 0;           ///< between the products, all experts of a token together; whole model
  double inputs = 0;          ///< per token, of products on this rank: what fp8 casts
  double parameters = 0;
  double exchange_s = 0;      ///< one of the two in each direction
  Product column;             ///< behind the gather of tensor parallelism
  int halves = 0;             ///< that gather and reduce over tensor ranks
  void add(const Product& p) { products[count++] = p; }
};

Working mlp(const StepContext& c) {
  const model::Model& m = c.job.model;
  const double ffn = m.ffn_hidden / static_cast<double>(c.strategy.tensor);
  Working w;
  w.column = product(c, c.job.dtype, c.tokens, (m.gated_mlp ? 2 : 1) * ffn, m.hidden);
  w.add(w.column);
  w.add(product(c, c.job.dtype, c.tokens, m.hidden, ffn));
  w.matmul_flops = w.products[0].flops + w.products[1].flops;
  w.width = m.ffn_hidden;
  w.inputs = m.hidden + ffn;
  w.parameters = (m.gated_mlp ? 3 : 2) * ffn * m.hidden;
  w.halves = m.parallel_block ? 0 : 1;
  return w;
}

/// Routing, sorting and the way to the experts and back.
void add_routing(const StepContext& c, double local_experts, double outside, double share, Working& w) {
  const model::Moe& moe = *c.job.model.moe;
  // Small kernels whose size hardly matters: softmax, top-k, scatter, balance loss, counts, offsets of both sorts.
  w.extra_forward = c.constants.routing_kernels * c.kernels.memory_s(0);
  w.extra_backward = 0.5 * c.constants.routing_kernels * c.kernels.memory_s(0);
  const Bytes moved = permutation_bytes(c, local_experts);
  const double copies = moe.top_k * outside * c.tokens / outside_split(c);
  w.extra_forward += c.kernels.memory_s(moved.forward * copies);
  w.extra_backward += c.kernels.memory_s(moved.backward * copies);
  if (c.strategy.expert <= 1) return;
  const double bytes = c.tokens * share * moe.top_k * outside * 2;
  w.exchange_s = c.network.exchange(bytes, network_share(c, moe), c.groups.expert).time_s;
}

Working experts(const StepContext& c) {
  const model::Model& m = c.job.model;
  const model::Moe& moe = *m.moe;
  const double t = c.strategy.tensor;
  const double in_up = m.gated_mlp ? 2 : 1;
  Working w;
  // Tokens of the expert-parallel ranks meet: each local expert sees tokens x ep x top_k / experts of them.
  const double local = std::max(1.0, static_cast<double>(moe.experts) / c.strategy.expert);
  const double routed = c.tokens * moe.top_k;
  const double per_expert = std::max(1.0, routed * c.strategy.expert / moe.experts);
  const double width = moe.expert_ffn_hidden / (c.strategy.expert > 1 ? 1.0 : t);
  const double share = c.strategy.expert > 1 ? 1.0 / t : 1.0;  // sequence-parallel slices go to experts
  const double outside = moe.latent > 0 ? moe.latent : m.hidden;
  w.add(product(c, c.job.dtype, std::max(1.0, per_expert * share), in_up * width, outside, local));
  w.add(product(c, c.job.dtype, std::max(1.0, per_expert * share), outside, width, local));
  if (moe.shared_ffn_hidden > 0) {
    w.add(product(c, c.job.dtype, c.tokens, in_up * moe.shared_ffn_hidden / t, m.hidden));
    w.add(product(c, c.job.dtype, c.tokens, m.hidden, moe.shared_ffn_hidden / t));
  }
  if (moe.latent > 0) {
    w.add(product(c, c.job.dtype, c.tokens / outside_split(c), moe.latent, m.hidden));
    w.add(product(c, c.job.dtype, c.tokens / outside_split(c), m.hidden, moe.latent));
  }
  for (std::size_t i = 0; i < w.count; ++i) w.matmul_flops += w.products[i].flops;
  w.add(product(c, Dtype::kBf16, c.tokens / outside_split(c), moe.experts, m.hidden));
  w.width = static_cast<double>(moe.expert_ffn_hidden) * moe.top_k + moe.shared_ffn_hidden;
  w.inputs = m.hidden + w.width;
  w.parameters = (m.gated_mlp ? 3 : 2) * (outside * local * width + m.hidden * moe.shared_ffn_hidden / t) + 2.0 * m.hidden * moe.latent;
  w.halves = c.strategy.expert > 1 ? 0 : 1;
  add_routing(c, local, outside, share, w);
  return w;
}

/// Context parallelism of a recurrent layer: every rank takes all tokens for its share of the heads, by all-to-all of what
/// the input projection made and of the result (Megatron-Core, ssm/mamba_context_parallel.py).
void add_recurrent_context(const StepContext& c, Mixer mixer, LayerCost& cost) {
  if (c.strategy.context == 1) return;
  const model::Recurrence r = c.job.model.recurrence(mixer);
  const double bytes = 2 * c.tokens / c.strategy.tensor;
  const double both = c.network.cost(Op::kAllToAll, bytes * r.projected, c.groups.context).time_s +
                      c.network.cost(Op::kAllToAll, bytes * r.inner, c.groups.context).time_s;
  cost.forward.context += both;
  cost.backward.context += both;
}

LayerCost cost_of(const StepContext& c, model::LayerKind kind) {
  const model::Model& m = c.job.model;
  const Mixing a = kind.recurs() ? recurrent(c, kind.mixer) : kind.attends() ? attention(c, kind.mixer) : Mixing{};
  const Working w = kind.channel == Channel::kMlp ? mlp(c) : kind.channel == Channel::kExperts ? experts(c) : Working{};
  LayerCost cost;
  cost.forward.compute = a.in.forward + a.out.forward + a.forward + a.scan_forward;
  cost.backward.compute = a.in.input_gradient + a.in.weight_gradient + a.out.input_gradient + a.out.weight_gradient + a.backward +
                          a.scan_backward;
  for (std::size_t i = 0; i < w.count; ++i) {
    cost.forward.compute += w.products[i].forward;
    cost.backward.compute += w.products[i].input_gradient + w.products[i].weight_gradient;
  }
  cost.matmul_s = cost.forward.compute;
  cost.matmul_flops = a.in.flops + a.out.flops + a.core_flops + w.matmul_flops;
  add_traffic(c, traffic(m, c.software, kind, w.width), kind.branches(), cost);
  cost.forward.compute += w.extra_forward;
  cost.backward.compute += w.extra_backward;
  const double mixed_inputs = kind.mixer == Mixer::kNone ? 0 : m.hidden + a.inner / c.strategy.tensor;
  add_casts(c, mixed_inputs + w.inputs, a.parameters + w.parameters, cost);
  cost.backward.compute += gradient_accumulation(c, a.parameters + w.parameters);
  const int halves = kind.branches() - (kind.channel == Channel::kNone ? 0 : 1) + w.halves;
  add_tensor(c, m.hidden, a.in.input_gradient + w.column.input_gradient, a.in.weight_gradient + w.column.weight_gradient, halves, cost);
  if (kind.attends()) add_context(c, a.forward, a.backward, cost);
  if (kind.recurs()) add_recurrent_context(c, kind.mixer, cost);
  cost.forward.expert += 2 * w.exchange_s;
  cost.backward.expert += 2 * w.exchange_s;
  in_step(c, a, cost);
  const double share = kind.branches() / 2.0;
  add_host(c, share, cost);
  if (kind.channel == Channel::kExperts) {
    // What routing adds is the same whether a mixer stands in front or not.
    const double factor = (share + c.constants.moe_host_factor - 1) / share;
    cost.forward.host *= factor;
    cost.backward.host *= factor;
  }
  add_recompute(c, a, cost);
  return cost;
}

}  // namespace

LayerCost layer_cost(const StepContext& c, model::LayerKind kind) {
  const double sequence = c.job.model.tokens_of(kind.mixer, c.job.sequence);
  if (sequence == c.job.sequence) return cost_of(c, kind);
  StepContext decoder = c;
  decoder.tokens = c.tokens * sequence / c.job.sequence;
  return cost_of(decoder, kind);
}

LayerCost mixed(const std::vector<LayerCost>& kinds, const model::LayerCounts& counts) {
  LayerCost out;
  const double layers = counts.total();
  const auto add = [](Pass& to, const Pass& pass, double share) {
    to.compute += pass.compute * share;
    to.tensor += pass.tensor * share;
    to.context += pass.context * share;
    to.expert += pass.expert * share;
    to.host += pass.host * share;
  };
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (counts.at(i) == 0) continue;
    const double share = counts.at(i) / layers;
    const LayerCost& kind = kinds[static_cast<std::size_t>(i)];
    add(out.forward, kind.forward, share);
    add(out.backward, kind.backward, share);
    add(out.recompute, kind.recompute, share);
    out.matmul_flops += kind.matmul_flops * share;
    out.matmul_s += kind.matmul_s * share;
    out.recompute_flops += kind.recompute_flops * share;
  }
  return out;
}

}  // namespace chokepoint::simulate

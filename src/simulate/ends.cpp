// SPDX-License-Identifier: Apache-2.0
// What stands before the first layer and behind the last: embedding, modules that predict further tokens, head and loss.
#include "products.hpp"

#include <algorithm>
#include <cmath>

namespace chokepoint::simulate {

using collective::Op;
using hardware::Dtype;

EndCost embedding(const StepContext& c) {
  EndCost cost;
  const double bytes = c.tokens * c.job.model.hidden * 2;
  cost.forward.compute = c.kernels.memory_s(2 * bytes);
  cost.backward.compute = c.kernels.memory_s(3 * bytes);
  if (c.job.model.patch_inputs > 0) {
    // Patches pass a product instead of being looked up; nothing needs their own gradient.
    const Product patches = product(c, c.job.dtype, c.tokens, c.job.model.hidden, c.job.model.patch_inputs);
    cost.forward.compute += in_step_factor(c) * patches.forward;
    cost.backward.compute += in_step_factor(c) * patches.weight_gradient;
  }
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

void add(Pass& to, const Pass& pass, double times) {
  to.compute += pass.compute * times;
  to.tensor += pass.tensor * times;
  to.context += pass.context * times;
  to.expert += pass.expert * times;
  to.host += pass.host * times;
}

/// Tokens that reach the head: one per image, the decoder's of an encoder-decoder, else all.
double head_tokens(const StepContext& c) {
  const model::Model& m = c.job.model;
  if (m.patch_inputs > 0) return c.strategy.micro_batch;
  if (m.encoder_layers == 0) return c.tokens;
  return c.tokens * m.tokens_of(model::Mixer::kCross, c.job.sequence) / c.job.sequence;
}

EndCost head_once(const StepContext& whole) {
  EndCost cost;
  const model::Model& m = whole.job.model;
  StepContext c = whole;
  c.tokens = head_tokens(whole);
  const double vocab = head_rows(c);
  const Dtype dtype = c.job.dtype == Dtype::kFp8 || c.job.dtype == Dtype::kFp4 ? Dtype::kBf16 : c.job.dtype;
  Product logits = product(c, dtype, c.tokens, vocab, m.hidden);
  if (m.head_transform) {
    const Product transform = product(c, dtype, c.tokens, m.hidden, m.hidden);
    logits.forward += transform.forward;
    logits.input_gradient += transform.input_gradient;
    logits.weight_gradient += transform.weight_gradient;
  }
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

/// Each module that predicts a further token joins the embedding of that token to the last hidden state by a product, runs
/// its layers and takes the head again.
void add_further_tokens(const StepContext& c, EndCost& cost) {
  const model::Model& m = c.job.model;
  const double modules = m.further.modules;
  const model::LayerCounts kinds = m.further_kinds();
  std::vector<LayerCost> costs(model::LayerCounts::kKinds);
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (kinds.at(i) > 0) costs[static_cast<std::size_t>(i)] = layer_cost(c, model::LayerCounts::kind(i));
  }
  const LayerCost layer = mixed(costs, kinds);
  const double layers = modules * kinds.total();
  const EndCost once = cost;
  add(cost.forward, layer.forward, layers);
  add(cost.backward, layer.backward, layers);
  add(cost.backward, layer.recompute, layers);
  add(cost.forward, once.forward, modules);
  add(cost.backward, once.backward, modules);
  const Product join = product(c, c.job.dtype, c.tokens / c.strategy.tensor, m.hidden, 2.0 * m.hidden);
  cost.forward.compute += modules * in_step_factor(c) * join.forward;
  cost.backward.compute += modules * in_step_factor(c) * (join.input_gradient + join.weight_gradient);
}

}  // namespace

EndCost head(const StepContext& c) {
  EndCost cost = head_once(c);
  if (c.job.model.further.modules > 0) add_further_tokens(c, cost);
  return cost;
}

}  // namespace chokepoint::simulate

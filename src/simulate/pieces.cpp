// SPDX-License-Identifier: Apache-2.0
#include "pieces.hpp"

#include <algorithm>

namespace chokepoint::simulate {

namespace {

PassPieces pieces_of(const Pass& pass) { return {pass.compute, pass.tensor, pass.context, pass.expert, pass.host}; }

void add(PassPieces& to, const Pass& pass) {
  to.compute_s += pass.compute;
  to.tensor_s += pass.tensor;
  to.context_s += pass.context;
  to.expert_s += pass.expert;
  to.host_s += pass.host;
}

}  // namespace

Pieces step_pieces(const StepContext& c, const collective::Cost& hop, double send_s, bool blocking,
                   const Prediction& prediction) {
  Pieces p;
  p.groups = {c.groups.tensor, c.groups.context,   c.groups.expert,        c.groups.data,
              c.groups.shard,  c.groups.replicate, c.groups.stage_distance};
  p.activation_bytes = c.tokens * c.job.model.hidden * 2;
  p.send = {collective::Op::kSendRecv, send_s, hop.latency_s + send_s - hop.time_s,
            p.activation_bytes / c.strategy.tensor};
  p.send_wire_s = std::max(0.0, hop.time_s - hop.latency_s);
  p.blocking_sends = blocking;
  p.interference = interference(c.job.accelerator, c.constants);
  p.optimizer_s = prediction.item(Bill::kOptimizer);
  p.offload_s = prediction.item(Bill::kOffload);
  p.fixed_s = prediction.item(Bill::kOther);
  p.closed_form_s = prediction.step_time_s;
  return p;
}

StagePieces stage_pieces(const StepContext& c, const LayerCost& layer, const EndCost* first, const EndCost* last,
                         const StageCost& stage, const StageHost& host) {
  StagePieces s;
  s.layers = static_cast<int>(stage.layers);
  s.forward = pieces_of(layer.forward);
  s.backward = pieces_of(layer.backward);
  s.recompute = pieces_of(layer.recompute);
  for (const EndCost* end : {first, last}) {
    if (end == nullptr) continue;
    add(s.end_forward, end->forward);
    add(s.end_backward, end->backward);
  }
  s.forward_host_s = host.forward_s;
  s.backward_host_s = host.backward_s;
  s.recompute_host_s = host.recompute_s;
  s.weight_gradient_s = host.weight_gradient_s;
  s.parameters = stage.parameters;
  s.data = data_pieces(c, stage);
  return s;
}

TransferPieces tied_pieces(const StepContext& c, double embedding_parameters) {
  const int distance = c.groups.stage_distance * (c.strategy.pipeline - 1);
  collective::Group ends;
  ends.ranks = 2;
  ends.ranks_per_host = distance < c.job.cluster.gpus_per_host() ? 2 : 1;
  ends.local_stride = ends.ranks_per_host == 2 ? distance : 1;
  const double bytes = embedding_parameters / c.strategy.tensor * c.software.reduce_bytes;
  const collective::Cost cost = c.network.cost(collective::Op::kAllReduce, bytes, ends);
  return {collective::Op::kAllReduce, cost.time_s, std::min(cost.latency_s, cost.time_s), bytes};
}

namespace {

/// The stages' own times, exchanges behind other micro-batches' kernels left out as far as they hide.
std::vector<StageTimes> stage_times(const Pieces& pieces) {
  std::vector<StageTimes> times;
  for (const StagePieces& s : pieces.stages) {
    const auto device = [&](const PassPieces& pass) { return pass.device_s() - (1 - s.paired_expert) * pass.expert_s; };
    const double forward = s.layers * device(s.forward) + s.end_forward.device_s() + s.forward_host_s;
    const double backward = s.layers * (device(s.backward) + device(s.recompute)) + s.end_backward.device_s() + s.backward_host_s +
                            s.recompute_host_s;
    times.push_back({forward, backward, s.weight_gradient_s});
  }
  return times;
}

}  // namespace

double pipeline_s(const Pieces& pieces, const parallel::Strategy& s) {
  return pipeline_time(stage_times(pieces), s.accumulate, s.virtual_stages, s.schedule, pieces.send.seconds, pieces.blocking_sends,
                       pieces.send_wire_s)
      .total;
}

bool pipeline_is_exact(const Pieces& pieces, const parallel::Strategy& s) {
  return is_exact(stage_times(pieces), s.accumulate, s.virtual_stages, s.schedule, pieces.send.seconds, pieces.blocking_sends,
                  pieces.send_wire_s);
}

int interleaved_group(int stages, int micro_batches) {
  if (micro_batches <= stages) return std::max(1, micro_batches);
  int size = std::max(1, stages);
  while (micro_batches % size != 0 && micro_batches % size < stages) ++size;
  return size;
}

}  // namespace chokepoint::simulate

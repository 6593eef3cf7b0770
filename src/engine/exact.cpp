// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/engine/exact.hpp>

#include <algorithm>

namespace chokepoint::engine {

namespace {

using simulate::DataPieces;
using simulate::PassPieces;
using simulate::StagePieces;

bool only_kernels(const PassPieces& p) { return p.tensor_s <= 0 && p.context_s <= 0 && p.expert_s <= 0; }

/// Kernels keep the device busy, and nothing else runs on it.
bool only_kernels(const StagePieces& s) {
  const bool host = s.forward_host_s > 0 || s.backward_host_s > 0 || s.recompute_host_s > 0;
  return !host && only_kernels(s.forward) && only_kernels(s.backward) && only_kernels(s.recompute) && only_kernels(s.end_forward) &&
         only_kernels(s.end_backward);
}

/// Every bucket but the one that nothing can hide is done before the next one is ready, in the shortest part of its pass.
bool buckets_hide(const StagePieces& s) {
  const DataPieces& d = s.data;
  if (d.each_micro_step || !d.reduces_behind_backward) return false;
  const double backward = s.layers * (s.backward.compute_s + s.recompute.compute_s);
  if (d.buckets > 1 && d.reduce.seconds * d.buckets > backward) return false;
  if (d.gather_buckets <= 0 || !d.gathers_behind_forward) return true;
  return d.gather_buckets <= 1 || d.parameters.seconds * d.gather_buckets <= s.layers * s.forward.compute_s;
}

/// Of each unit the gather of the next and the reduction of the last fit behind its kernels.
bool units_hide(const StagePieces& s) {
  const DataPieces& d = s.data;
  if (d.overlap_share < 1 || d.replicate.seconds > 0 || !d.gathers_behind_forward || !d.reduces_behind_backward) return false;
  return d.gather.seconds <= s.forward.compute_s &&
         d.gather_again.seconds + d.scatter.seconds <= s.backward.compute_s + s.recompute.compute_s;
}

}  // namespace

bool closed_form_is_exact(const simulate::Pieces& pieces, const parallel::Strategy& s) {
  const auto pairs = [](const StagePieces& stage) { return stage.paired_expert < 1; };
  if (std::any_of(pieces.stages.begin(), pieces.stages.end(), pairs)) return false;
  if (pieces.stages.size() > 1) {
    const auto reduces = [](const StagePieces& stage) { return stage.data.active; };
    return !std::any_of(pieces.stages.begin(), pieces.stages.end(), reduces) && simulate::pipeline_is_exact(pieces, s);
  }
  const StagePieces& one = pieces.stages.front();
  if (!one.data.active) return true;
  return only_kernels(one) && (one.data.by_unit ? units_hide(one) : buckets_hide(one));
}

}  // namespace chokepoint::engine

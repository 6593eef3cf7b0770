// SPDX-License-Identifier: Apache-2.0
// From the pieces of a step to its graph: passes in the schedule's order on the compute lane, transfers between stages,
// collectives of data parallelism where the framework issues them, the end of the step.
//
// Dependencies within a lane follow from its order, so only those across lanes are written down. A gather that runs k
// units ahead waits for the computation k units before it; backward issues the gather of the next unit before it
// reduces the last one (FSDP's BACKWARD_PRE), both on one communicator.
#include <chokepoint/engine/graph.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace chokepoint::engine {

namespace {

using parallel::Strategy;
using simulate::DataPieces;
using simulate::PassPieces;
using simulate::Pieces;
using simulate::StagePieces;
using simulate::TransferPieces;

constexpr int kNone = -1;
constexpr int kMostBuckets = 1024;  // more in one pass run as so many larger ones of the same total time

/// Key of the first operation of a pass: forward or backward, micro-batch, chunk.
using PassKey = std::tuple<Slot::Kind, int, int>;

/// First and last operation of each part of a pass, on the compute lane.
struct Parts {
  std::vector<int> first;
  std::vector<int> last;
};

class StageBuilder {
 public:
  StageBuilder(const Pieces& pieces, const Strategy& strategy, int stage, const GraphOptions& options)
      : pieces_(pieces),
        s_(strategy),
        index_(stage),
        own_(pieces.stages[static_cast<std::size_t>(stage)]),
        pass_(&own_),
        mirror_(pieces.stages[pieces.stages.size() - 1 - static_cast<std::size_t>(stage)]),
        options_(options),
        chunks_(chunks_of(strategy)) {}

  StageGraph build(const std::vector<Slot>& order) {
    gather_updated_parameters(order);
    const std::vector<char> paired = paired_passes(order);
    for (std::size_t k = 0; k < order.size(); ++k) {
      expert_share_ = paired[k] != 0 ? own_.paired_expert : 1;
      add_slot(order[k], is_last_of_chunk(order, k));
    }
    end_of_step();
    close();
    return std::move(graph_);
  }

  /// Operation that waits for the message which starts a pass.
  const std::map<PassKey, std::uint32_t>& first_of_pass() const { return first_; }
  struct Send {
    std::uint32_t op;
    int to_stage;
    PassKey to;
  };
  const std::vector<Send>& sends() const { return sends_; }

 private:
  bool splits() const {
    using parallel::Schedule;
    return s_.pipeline > 1 && (s_.schedule == Schedule::kZeroBubble1 || s_.schedule == Schedule::kZeroBubble2 ||
                               s_.schedule == Schedule::kZeroBubbleV || s_.schedule == Schedule::kDualPipe);
  }
  bool dual() const { return s_.pipeline > 1 && s_.schedule == parallel::Schedule::kDualPipe; }
  /// A forward and a backward that follow each other hide each other's expert exchanges.
  std::vector<char> paired_passes(const std::vector<Slot>& order) const {
    std::vector<char> paired(order.size(), 0);
    if (own_.paired_expert >= 1) return paired;
    std::size_t last = order.size();  // a pass without a partner yet
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (order[k].kind == Slot::Kind::kWeightGradient) continue;
      if (last < order.size() && order[last].kind != order[k].kind && order[last].micro_batch != order[k].micro_batch) {
        paired[last] = paired[k] = 1;
        last = order.size();
      } else {
        last = k;
      }
    }
    return paired;
  }
  /// Whether order[k] is the backward pass that completes the gradients of its chunk.
  bool is_last_of_chunk(const std::vector<Slot>& order, std::size_t k) const {
    const Slot::Kind completes = splits() ? Slot::Kind::kWeightGradient : Slot::Kind::kBackward;
    // Each direction of DualPipe has a last micro-batch of its own.
    return order[k].kind == completes && order[k].micro_batch >= s_.accumulate - (dual() ? 2 : 1);
  }
  /// Where the pass stands in the pipeline of its micro-batch.
  int position(int chunk, int micro_batch) const { return position_of(s_, index_, chunk, micro_batch); }
  bool holds_embedding(int chunk) const { return position(chunk, micro_batch_) == 0; }
  bool holds_head(int chunk) const { return position(chunk, micro_batch_) == s_.pipeline * chunks_ - 1; }
  /// Embedding and head of one stage are one piece: the V, which has both in different chunks, puts it where the head is.
  bool holds_end(int chunk) const {
    const bool both_apart = s_.schedule == parallel::Schedule::kZeroBubbleV && s_.pipeline > 1;
    return holds_head(chunk) || (!both_apart && holds_embedding(chunk));
  }

  int add(const Op& op) {
    graph_.ops.push_back(op);
    after_.emplace_back();
    const auto i = static_cast<std::uint32_t>(graph_.ops.size() - 1);
    if (op.meet != Meet::kNobody) graph_.ops.back().ordinal = graph_.meetings[static_cast<std::size_t>(op.meet)]++;
    graph_.lanes[static_cast<std::size_t>(op.lane)].push_back(i);
    if (op.lane == Lane::kCompute) last_compute_ = static_cast<int>(i);
    return static_cast<int>(i);
  }
  void depend(int later, int earlier) {
    if (later >= 0 && earlier >= 0 && later != earlier)
      after_[static_cast<std::size_t>(later)].push_back(static_cast<std::uint32_t>(earlier));
  }

  int transfer(Work work, Lane lane, Meet meet, const TransferPieces& t, int chunk, int part, double share = 1) {
    Op op;
    op.work = work;
    op.lane = lane;
    op.meet = meet;
    op.collective = t.op;
    op.chunk = chunk;
    op.part = part;
    op.seconds = t.seconds * share;
    op.latency_s = std::min(t.latency_s * share, op.seconds);
    op.bytes = t.bytes * share;
    op.micro_batch = micro_batch_;
    op.overlaps = lane == Lane::kData || lane == Lane::kReplicate;
    return add(op);
  }

  void work(Work kind, double seconds, Meet meet, int part, Parts& parts) {
    if (seconds <= 0 && !(parts.first.back() == kNone && kind == own_kind_)) return;
    Op op;
    op.work = kind;
    op.meet = meet;
    if (meet == Meet::kContext) op.collective = collective::Op::kAllGather;
    if (meet == Meet::kExpert) op.collective = collective::Op::kAllToAll;
    op.micro_batch = micro_batch_;
    op.chunk = chunk_;
    op.part = part;
    op.seconds = std::max(0.0, seconds);
    const int i = add(op);
    if (parts.first.back() == kNone) parts.first.back() = i;
    parts.last.back() = i;
  }

  /// One part of a pass: `layers` of the pieces and a share of the host's excess.
  void part_of(Work kind, const PassPieces& layer, double layers, double compute_off_s, double host_s,
               const PassPieces* end, int part, Parts& parts) {
    const auto sum = [&](double PassPieces::*field) {
      return layer.*field * layers + (end != nullptr ? end->*field : 0.0);
    };
    own_kind_ = kind == Work::kRecompute ? Work::kFixed : kind;  // a pass without compute still has one operation
    work(kind, sum(&PassPieces::compute_s) - compute_off_s, Meet::kNobody, part, parts);
    work(Work::kTensor, sum(&PassPieces::tensor_s), Meet::kTensor, part, parts);
    work(Work::kContext, sum(&PassPieces::context_s), Meet::kContext, part, parts);
    work(Work::kExpert, expert_share_ * sum(&PassPieces::expert_s), Meet::kExpert, part, parts);
    work(Work::kHost, host_s, Meet::kNobody, part, parts);
  }

  int layers_of_chunk() const {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(pass_->layers) / chunks_)));
  }

  /// Parts into which a pass is cut.
  int parts_of(Slot::Kind kind, bool completes) const {
    int parts = 1;
    if (own_.data.by_unit || options_.by_layer) parts = layers_of_chunk();
    if (own_.data.active && !own_.data.by_unit) {
      if ((completes || own_.data.each_micro_step) && kind == Slot::Kind::kBackward)
        parts = std::max(parts, buckets(own_.data.buckets));
      if (kind == Slot::Kind::kForward && needs_parameters(micro_batch_)) parts = std::max(parts, parameter_buckets_);
    }
    return parts;
  }
  int buckets(int of_stage) const {
    if (of_stage <= 0) return 0;
    return std::min(kMostBuckets, std::max(1, (of_stage + chunks_ - 1) / chunks_));
  }

  void add_slot(const Slot& slot, bool completes) {
    micro_batch_ = slot.micro_batch;
    chunk_ = slot.chunk;
    pass_ = dual() && slot.micro_batch % 2 == 1 ? &mirror_ : &own_;
    switch (slot.kind) {
      case Slot::Kind::kForward:
        forward(slot);
        return;
      case Slot::Kind::kBackward:
        backward(slot, completes);
        return;
      case Slot::Kind::kWeightGradient: {
        // The last one goes through the layers as backward would: bucket after bucket becomes ready.
        const bool reduces = own_.data.active && !own_.data.by_unit && (completes || own_.data.each_micro_step);
        const int n = reduces ? std::max(1, buckets(own_.data.buckets)) : 1;
        Parts parts;
        own_kind_ = Work::kWeightGradient;
        for (int j = 0; j < n; ++j) {
          parts.first.push_back(kNone);
          parts.last.push_back(kNone);
          work(Work::kWeightGradient, pass_->weight_gradient_s / chunks_ / n, Meet::kNobody, n > 1 ? n - 1 - j : -1, parts);
        }
        if (completes || own_.data.each_micro_step) reduce_buckets(parts, completes);
        return;
      }
    }
  }

  // ---- forward

  void forward(const Slot& slot) {
    const int before = last_compute_;
    const int n = parts_of(slot.kind, false);
    const double layers = static_cast<double>(pass_->layers) / chunks_;
    const bool end = holds_end(chunk_);
    gathers_.assign(static_cast<std::size_t>(n), kNone);
    const bool by_unit = own_.data.by_unit && own_.data.active;
    if (by_unit) root_gather_ = end ? gather(own_.data.root_gather, before) : kNone;
    Parts parts;
    for (int j = 0; j < n; ++j) {
      if (by_unit) gather_ahead(own_.data.gather, j, n, before, parts, false);
      parts.first.push_back(kNone);
      parts.last.push_back(kNone);
      if (by_unit) exposed_gather(own_.data.gather, parts, j);
      // Embedding in the first part, head in the last; with both on one stage they are one piece, put where the head
      // is.
      const bool here = end && j == (holds_head(chunk_) ? n - 1 : 0);
      part_of(Work::kForward, pass_->forward, layers / n, 0, pass_->forward_host_s / chunks_ / n,
              here ? &pass_->end_forward : nullptr, n > 1 ? j : -1, parts);
      wait_for_gather(parts, j);
      wait_for_parameters(slot, parts, j, n);
    }
    first_[{slot.kind, slot.micro_batch, slot.chunk}] = static_cast<std::uint32_t>(parts.first.front());
    send(slot, parts.last.back());
  }

  void wait_for_gather(const Parts& parts, int j) {
    if (!own_.data.by_unit) return;
    depend(parts.first.back(), gathers_[static_cast<std::size_t>(j)]);
    if (j == 0) depend(parts.first.back(), root_gather_);
  }

  int gather(const TransferPieces& t, int after) {
    if (t.seconds <= 0) return kNone;
    const int i = transfer(Work::kGather, Lane::kData, Meet::kShard, t, chunk_, -1);
    depend(i, after);
    return i;
  }

  /// Issues the gathers that may run by the time part `j` begins. `parts` holds those before it.
  void gather_ahead(const TransferPieces& t, int j, int n, int before, const Parts& parts, bool backward) {
    if (t.seconds <= 0) return;
    const bool overlaps = own_.data.gathers_behind_forward;
    const int ahead = overlaps ? own_.data.prefetch : 0;
    const int until = std::min(n - 1, j + ahead);
    for (int u = 0; u <= until; ++u) {
      if (gathers_[static_cast<std::size_t>(u)] != kNone) continue;
      const int i = transfer(Work::kGather, Lane::kData, Meet::kShard, t, chunk_, backward ? n - 1 - u : u,
                             overlaps ? own_.data.overlap_share : 1);
      gathers_[static_cast<std::size_t>(u)] = i;
      depend(i, j == 0 ? before : parts.last[static_cast<std::size_t>(j - 1)]);
    }
  }

  /// The share of a gather that cannot hide holds up the computation itself.
  void exposed_gather(const TransferPieces& t, Parts& parts, int j) {
    const double share = own_.data.gathers_behind_forward ? 1 - own_.data.overlap_share : 0;
    if (t.seconds <= 0 || share <= 0) return;
    const int i = transfer(Work::kGather, Lane::kCompute, Meet::kShard, t, chunk_, j, share);
    parts.first.back() = parts.last.back() = i;
  }

  // ---- backward

  void backward(const Slot& slot, bool completes) {
    const int before = last_compute_;
    const int n = parts_of(slot.kind, completes);
    const double layers = static_cast<double>(pass_->layers) / chunks_;
    const bool end = holds_end(chunk_);
    const DataPieces& d = own_.data;
    const bool by_unit = d.by_unit && d.active;
    const bool reduces = by_unit && (!d.scatters_last_only || slot.micro_batch == s_.accumulate - 1);
    const double delayed = splits() ? pass_->weight_gradient_s / chunks_ / n : 0;
    gathers_.assign(static_cast<std::size_t>(n), kNone);
    root_gather_ = kNone;
    Parts parts;
    for (int j = 0; j < n; ++j) {
      if (by_unit) gather_ahead(d.gather_again, j, n, before, parts, true);
      parts.first.push_back(kNone);
      parts.last.push_back(kNone);
      if (by_unit) exposed_gather(d.gather_again, parts, j);
      const bool here = end && j == (holds_head(chunk_) ? 0 : n - 1);
      const int layer = n > 1 ? n - 1 - j : -1;
      part_of(Work::kRecompute, pass_->recompute, layers / n, 0, pass_->recompute_host_s / chunks_ / n, nullptr, layer,
              parts);
      part_of(Work::kBackward, pass_->backward, layers / n, delayed, pass_->backward_host_s / chunks_ / n,
              here ? &pass_->end_backward : nullptr, layer, parts);
      wait_for_gather(parts, j);
      if (reduces) scatter(n - 1 - j, parts.last.back());
    }
    first_[{slot.kind, slot.micro_batch, slot.chunk}] = static_cast<std::uint32_t>(parts.first.front());
    if (reduces && end) scatter_root(parts.last.back());
    send(slot, parts.last.back());
    if (!by_unit && !splits() && (completes || d.each_micro_step)) reduce_buckets(parts, completes);
  }

  void scatter(int unit, int after) {
    const DataPieces& d = own_.data;
    if (d.scatter.seconds <= 0) return;
    // Work that cannot hide stands on the compute lane itself.
    const Lane lane = d.reduces_behind_backward ? Lane::kData : Lane::kCompute;
    const int i = transfer(Work::kReduce, lane, Meet::kShard, d.scatter, chunk_, unit);
    depend(i, after);
    if (d.replicate.seconds <= 0) return;
    const int r = transfer(Work::kReplicate, d.reduces_behind_backward ? Lane::kReplicate : Lane::kCompute,
                           Meet::kReplicate, d.replicate, chunk_, unit);
    depend(r, i);
  }

  void scatter_root(int after) {
    const DataPieces& d = own_.data;
    if (d.root_scatter.seconds <= 0) return;
    const int i = transfer(Work::kReduce, Lane::kData, Meet::kShard, d.root_scatter, chunk_, -1);
    depend(i, after);
    if (d.root_replicate.seconds <= 0) return;
    const int r = transfer(Work::kReplicate, Lane::kReplicate, Meet::kReplicate, d.root_replicate, chunk_, -1);
    depend(r, i);
  }

  /// Gradients in buckets become ready evenly over the parts of the pass that completes them.
  void reduce_buckets(const Parts& parts, bool completes) {
    const DataPieces& d = own_.data;
    const int of_pass = dual() ? (d.buckets + 1) / 2 : d.buckets;
    const int n = buckets(of_pass);
    if (!d.active || d.by_unit || n == 0) return;
    // The first chunk's last bucket is the stage's; DualPipe's two last backwards reduce half of the buckets each.
    const bool odd = chunk_ == 0 && (!dual() || micro_batch_ == s_.accumulate - 1);
    const double whole = dual() && d.buckets == 1 ? 0.5 : 1;  // one bucket for both directions
    const double share = whole * share_of_bucket(of_pass, n, odd);
    int last = kNone;
    for (int b = 0; b < n; ++b) {
      const bool final_one = odd && b == n - 1;
      last = transfer(Work::kReduce, Lane::kData, Meet::kData, final_one ? d.reduce_last : d.reduce, chunk_, b,
                      final_one ? whole : share);
      const auto count = static_cast<double>(parts.last.size());
      const auto ready = d.reduces_behind_backward ? static_cast<std::size_t>(std::ceil((b + 1.0) / n * count)) - 1
                                                   : parts.last.size() - 1;
      depend(last, parts.last[ready]);
    }
    // Without no_sync, autograd ends only when the last bucket has.
    if (!completes) wait_for_ = last;
  }

  /// Buckets of the stage that one of a chunk's `n` operations stands for; one of all is told by itself (`odd`: here).
  double share_of_bucket(int of_stage, int n, bool odd) const {
    const double here = std::max(0.0, static_cast<double>(of_stage) / chunks_ - (odd ? 1 : 0));
    return here / std::max(1, n - (odd ? 1 : 0));
  }

  // ---- parameters that the optimizer of the last step changed

  void gather_updated_parameters(const std::vector<Slot>& order) {
    const DataPieces& d = own_.data;
    if (!d.active || d.by_unit || d.gather_buckets <= 0 || d.parameters_first.seconds <= 0 || !d.gathers_behind_forward)
      return;
    const int of_pass = dual() ? (d.gather_buckets + 1) / 2 : d.gather_buckets;
    parameter_buckets_ = buckets(of_pass);
    parameter_ops_.resize(static_cast<std::size_t>(dual() ? 2 : chunks_));
    for (const Slot& slot : order) {
      if (slot.kind != Slot::Kind::kForward || !needs_parameters(slot.micro_batch)) continue;
      const bool odd = slot.chunk == 0 && slot.micro_batch == 0;
      const double share = share_of_bucket(of_pass, parameter_buckets_, odd);
      for (int b = 0; b < parameter_buckets_; ++b) {
        const bool first = odd && b == 0;
        const int i = transfer(Work::kParameters, Lane::kData, Meet::kData, first ? d.parameters_first : d.parameters,
                               slot.chunk, b, first ? 1 : share);
        parameter_ops_[parameters_of(slot)].push_back(i);
      }
    }
  }
  /// First micro-batch on its way through the stage; DualPipe has one from each end.
  bool needs_parameters(int micro_batch) const { return micro_batch < (dual() ? 2 : 1); }
  std::size_t parameters_of(const Slot& slot) const {
    return static_cast<std::size_t>(dual() ? slot.micro_batch : slot.chunk);
  }

  void wait_for_parameters(const Slot& slot, const Parts& parts, int j, int n) {
    if (wait_for_ != kNone) {
      depend(parts.first.back(), wait_for_);
      wait_for_ = kNone;
    }
    if (parameter_buckets_ == 0 || !needs_parameters(slot.micro_batch)) return;
    const std::vector<int>& gathers = parameter_ops_[parameters_of(slot)];
    if (gathers.empty()) return;
    // Bucket b holds the parameters of the parts from b / buckets on.
    for (int b = 0; b < parameter_buckets_; ++b) {
      if (b * n / parameter_buckets_ == j)
        depend(parts.first.back(), gathers[static_cast<std::size_t>(b)]);
    }
  }

  // ---- between stages

  void send(const Slot& slot, int after) {
    const bool forward = slot.kind == Slot::Kind::kForward;
    const int p = s_.pipeline;
    const int at = position(slot.chunk, slot.micro_batch) + (forward ? 1 : -1);
    if (p == 1 || at < 0 || at >= p * chunks_) return;
    const Place to = place_of(s_, at, slot.micro_batch);
    if (to.stage == index_) return;  // the bottom of a V: the lane's order is enough
    Op op;
    op.work = forward ? Work::kSendForward : Work::kSendBackward;
    op.lane = pieces_.blocking_sends ? Lane::kCompute : forward ? Lane::kSendForward : Lane::kSendBackward;
    op.collective = collective::Op::kSendRecv;
    op.micro_batch = slot.micro_batch;
    op.chunk = slot.chunk;
    op.seconds = pieces_.send.seconds;
    op.latency_s = std::max(0.0, pieces_.send.seconds - pieces_.send_wire_s);
    op.bytes = pieces_.send.bytes;
    op.peer_stage = to.stage;
    const int i = add(op);
    depend(i, after);
    sends_.push_back({static_cast<std::uint32_t>(i), to.stage, {slot.kind, slot.micro_batch, to.chunk}});
  }

  // ---- end of the step

  void end_of_step() {
    micro_batch_ = -1;
    chunk_ = 0;
    const DataPieces& d = own_.data;
    if (pieces_.tied_embedding.seconds > 0 && s_.pipeline > 1 && (index_ == 0 || index_ == s_.pipeline - 1)) {
      const int tied = transfer(Work::kTied, Lane::kData, Meet::kTied, pieces_.tied_embedding, 0, -1);
      depend(tied, last_compute_);
    }
    // All ranks need the norm of all gradients: nobody updates before the last gradient is there.
    const int norm = transfer(Work::kNorm, Lane::kCompute, Meet::kWorld, {}, 0, -1);
    for (const Lane lane : {Lane::kData, Lane::kReplicate}) {
      const auto& line = graph_.lanes[static_cast<std::size_t>(lane)];
      if (!line.empty()) depend(norm, static_cast<int>(line.back()));
    }
    finish(Work::kOptimizer, pieces_.optimizer_s);
    finish(Work::kOffload, pieces_.offload_s);
    if (d.active && !d.by_unit && d.gather_buckets > 0 && !d.gathers_behind_forward && d.parameters_first.seconds > 0) {
      if (d.gather_buckets > 1)
        transfer(Work::kParameters, Lane::kCompute, Meet::kData, d.parameters, 0, -1, d.gather_buckets - 1);
      transfer(Work::kParameters, Lane::kCompute, Meet::kData, d.parameters_first, 0, -1);
    }
    finish(Work::kFixed, pieces_.fixed_s);
  }

  void finish(Work kind, double seconds) {
    if (seconds <= 0) return;
    Op op;
    op.work = kind;
    op.seconds = seconds;
    add(op);
  }

  void close() {
    const std::size_t n = graph_.ops.size();
    graph_.waits_for.assign(n, 0);
    graph_.successor_begin.assign(n + 1, 0);
    for (std::size_t i = 0; i < n; ++i) {
      std::sort(after_[i].begin(), after_[i].end());
      after_[i].erase(std::unique(after_[i].begin(), after_[i].end()), after_[i].end());
      graph_.waits_for[i] = static_cast<std::uint16_t>(std::min<std::size_t>(after_[i].size(), 60000));
      for (const std::uint32_t before : after_[i]) ++graph_.successor_begin[before + 1];
    }
    for (std::size_t i = 0; i < n; ++i) graph_.successor_begin[i + 1] += graph_.successor_begin[i];
    std::vector<std::uint32_t> at(graph_.successor_begin.begin(), graph_.successor_begin.end() - 1);
    graph_.successors.resize(graph_.successor_begin[n]);
    for (std::size_t i = 0; i < n; ++i) {
      for (const std::uint32_t before : after_[i]) graph_.successors[at[before]++] = static_cast<std::uint32_t>(i);
    }
    after_.clear();
  }

  const Pieces& pieces_;
  const Strategy& s_;
  int index_;
  const StagePieces& own_;
  const StagePieces* pass_;  ///< of the pass being added: the stage's own, or for half of DualPipe's its mirror's
  const StagePieces& mirror_;
  const GraphOptions& options_;
  int chunks_;
  double expert_share_ = 1;  ///< of expert exchanges that the pass being added shows
  StageGraph graph_;
  std::vector<std::vector<std::uint32_t>> after_;
  std::map<PassKey, std::uint32_t> first_;
  std::vector<Send> sends_;
  std::vector<int> gathers_;  ///< of the pass being added, by part; kNone: not issued yet
  int root_gather_ = kNone;
  int wait_for_ = kNone;  ///< what the next forward waits for
  int parameter_buckets_ = 0;
  std::vector<std::vector<int>> parameter_ops_;
  int last_compute_ = kNone;
  int micro_batch_ = -1;
  int chunk_ = 0;
  Work own_kind_ = Work::kForward;
};

std::vector<SlotTimes> slot_times(const Pieces& pieces) {
  std::vector<SlotTimes> times;
  const auto device = [](const PassPieces& pass, double expert) {
    return pass.device_s() - (1 - expert) * pass.expert_s;
  };
  for (const StagePieces& s : pieces.stages) {
    const double share = s.paired_expert;
    const double forward = s.layers * device(s.forward, share) + s.end_forward.device_s() + s.forward_host_s;
    const double backward = s.layers * (device(s.backward, share) + device(s.recompute, share)) +
                            s.end_backward.device_s() + s.backward_host_s + s.recompute_host_s;
    times.push_back({forward, std::max(0.0, backward - s.weight_gradient_s), s.weight_gradient_s});
  }
  return times;
}

/// An upper bound on the operations of a step, before any is made.
double estimated_ops(const Pieces& pieces, const Strategy& s, const GraphOptions& options) {
  double sum = 0;
  for (const StagePieces& stage : pieces.stages) {
    const double parts =
        stage.data.by_unit || options.by_layer ? std::max(1, stage.layers) : std::max(1, s.virtual_stages);
    const double buckets =
        stage.data.each_micro_step ? 3.0 * stage.data.buckets * s.accumulate : 6.0 * stage.data.buckets;
    sum += 12.0 * parts * s.accumulate + buckets;
  }
  return sum;
}

}  // namespace

std::size_t StepGraph::ops() const {
  std::size_t sum = 0;
  for (const StageGraph& s : stages) sum += s.ops.size();
  return sum;
}

Result<StepGraph> build_graph(const Pieces& pieces, const Strategy& strategy, const GraphOptions& options) {
  if (pieces.stages.size() != static_cast<std::size_t>(std::max(1, strategy.pipeline))) {
    return fail(fmt::format("{} stages described, the strategy has {}", pieces.stages.size(), strategy.pipeline));
  }
  if (strategy.accumulate < 1) return fail("a step needs at least one micro-batch");
  const double estimate = estimated_ops(pieces, strategy, options);
  if (!(estimate <= static_cast<double>(options.most_ops))) {
    return fail(
        fmt::format("the graph of this step would have about {:.0f} million operations, more than {:.0f} million",
                    estimate / 1e6, static_cast<double>(options.most_ops) / 1e6),
        {}, {"use fewer micro-batches (larger ones, or a smaller batch)"});
  }
  const std::vector<std::vector<Slot>> orders = schedule_order(strategy, slot_times(pieces));
  StepGraph graph;
  graph.interference = pieces.interference;
  std::vector<std::map<PassKey, std::uint32_t>> first;
  std::vector<std::vector<StageBuilder::Send>> sends;
  for (int i = 0; i < strategy.pipeline; ++i) {
    StageBuilder builder(pieces, strategy, i, options);
    graph.stages.push_back(builder.build(orders[static_cast<std::size_t>(i)]));
    first.push_back(builder.first_of_pass());
    sends.push_back(builder.sends());
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    for (const StageBuilder::Send& send : sends[i]) {
      const auto to = static_cast<std::size_t>(send.to_stage);
      const auto at = first[to].find(send.to);
      if (at == first[to].end()) return fail("a stage sends to a pass that does not exist: the schedule is broken");
      graph.stages[i].ops[send.op].peer_op = at->second;
      ++graph.stages[to].waits_for[at->second];
    }
  }
  TRY_INTO([[maybe_unused]] const bool runs, check(graph));
  return graph;
}

}  // namespace chokepoint::engine

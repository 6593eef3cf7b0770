// SPDX-License-Identifier: Apache-2.0
// What is legal. Where the framework of a job is stated, only what it has is listed; where it was assumed, what the
// common ones have. `any_framework` and frozen words open the rest.
#include "space.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chokepoint::plan {

namespace {

using parallel::Framework;
using parallel::Offload;
using parallel::Recompute;
using parallel::Schedule;
using parallel::Sharder;
using parallel::Strategy;

std::vector<int> divisors(int n, int limit) {
  std::vector<int> out;
  for (int i = 1; i <= std::min(n, limit); ++i) {
    if (n % i == 0) out.push_back(i);
  }
  return out;
}

/// Degrees beyond which splitting a sequence or the experts is no strategy anyone runs.
constexpr int kMostContext = 64;
/// Tokens of a sequence on one context-parallel rank: no published run whose time is known splits finer.
constexpr int kLeastPiece = 4096;
constexpr int kMostExpert = 256;
constexpr int kMostChunks = 16;
constexpr int kMostMicroBatch = 4096;

bool is_deepspeed(Framework f) { return f == Framework::kDeepspeed || f == Framework::kMegatronDeepspeed; }
bool is_torch(Framework f) {
  return f == Framework::kPytorch || f == Framework::kTorchtitan || f == Framework::kLlmFoundry || f == Framework::kFmsFsdp || f == Framework::kMaxtext;
}

std::string long_name(std::string key) {
  constexpr std::pair<std::string_view, std::string_view> kLong[] = {
      {"tp", "tensor"}, {"pp", "pipeline"}, {"vpp", "virtual"}, {"cp", "context"}, {"ep", "expert"}, {"dp", "data"},
      {"mbs", "microbatch"}, {"micro-batch", "microbatch"}, {"micro_batch", "microbatch"}, {"gas", "accumulate"}, {"sequence", "sp"}};
  for (const auto& [from, to] : kLong) {
    if (key == from) return std::string(to);
  }
  for (const std::string_view sharding : {"ddp", "zero", "fsdp", "hsdp"}) {
    if (key == sharding) return "sharding";
  }
  return key;
}

/// `words` -1 ranks: groups of any size.
bool same_sharding(const Strategy& s, const Strategy& words) {
  if (s.zero != words.zero || (s.zero >= 2 && s.sharder != words.sharder)) return false;
  return words.shard_ranks < 0 ? s.shard_ranks > 0 : s.shard_ranks == words.shard_ranks;
}

}  // namespace

Result<Frozen> Frozen::read(const std::string& words) {
  Frozen out;
  TRY_INTO(out.values_, parallel::parse_strategy(words));
  for (const std::string_view item : split_blanks(words)) out.keys_.push_back(long_name(lower(item.substr(0, item.find('=')))));
  if (out.has("virtual") && out.values_.virtual_stages > 1 && !out.has("schedule")) out.keys_.push_back("schedule");
  return out;
}

bool Frozen::has(std::string_view key) const { return std::find(keys_.begin(), keys_.end(), key) != keys_.end(); }

bool Frozen::allows(const Strategy& s, std::initializer_list<std::string_view> keys) const {
  const Strategy& v = values_;
  for (const std::string_view key : keys) {
    if (!has(key)) continue;
    const bool same = key == "tensor"       ? s.tensor == v.tensor
                      : key == "pipeline"   ? s.pipeline == v.pipeline
                      : key == "context"    ? s.context == v.context
                      : key == "expert"     ? s.expert == v.expert
                      : key == "data"       ? s.data == v.data
                      : key == "virtual"    ? s.virtual_stages == v.virtual_stages
                      : key == "schedule"   ? s.schedule == v.schedule
                      : key == "microbatch" ? s.micro_batch == v.micro_batch
                      : key == "accumulate" ? s.accumulate == v.accumulate
                      : key == "recompute"  ? s.recompute == v.recompute
                      : key == "sp"         ? s.sequence_parallel == v.sequence_parallel || s.tensor == 1
                      : key == "offload"    ? s.offload == v.offload
                      : key == "reshard"    ? s.reshard_after_forward == v.reshard_after_forward
                      : key == "overlap-tensor" ? s.overlap_tensor == v.overlap_tensor
                      : key == "overlap-expert" ? s.overlap_expert == v.overlap_expert
                      : key == "sync"       ? s.sync_last_only == v.sync_last_only
                      : key == "sharding"   ? same_sharding(s, v)
                                            : true;
    if (!same) return false;
  }
  return true;
}

Result<Space> Space::of(const parallel::Job& job, const Options& options) {
  TRY_INTO(Frozen frozen, Frozen::read(options.constraints.frozen));
  for (const std::string_view key : {"stages", "overlap", "overlap-reduce", "overlap-gather", "qwz", "qgz", "hpz", "zero++", "sharder", "shard", "local-steps"}) {
    if (!frozen.has(key)) continue;
    return fail("'" + std::string(key) + "' cannot be frozen: the planner does not vary it, or only together with the sharding", {},
                {"chokepoint predict takes it: --strategy \"" + options.constraints.frozen + "\""});
  }
  return Space(job, options, std::move(frozen));
}

Space::Space(const parallel::Job& job, const Options& options, Frozen frozen) : job_(job), options_(options), frozen_(std::move(frozen)) {
  const int largest = options.constraints.largest_micro_batch > 0 ? options.constraints.largest_micro_batch : kMostMicroBatch;
  if (job.global_batch >= 1 && job.global_batch <= 1e9) micro_batches_ = divisors(static_cast<int>(job.global_batch), std::min(largest, kMostMicroBatch));
}

std::vector<Strategy> Space::degrees() const {
  std::vector<Strategy> out;
  const model::Model& m = job_.model;
  const int least_piece = anything() ? 2 : kLeastPiece;
  for (const int tensor : divisors(m.heads, job_.gpus)) {
    if (job_.gpus % tensor != 0 || m.ffn_hidden % tensor != 0) continue;
    for (const int context : divisors(job_.gpus / tensor, kMostContext)) {
      if (context > 1 && (job_.sequence % (2 * context) != 0 || (job_.sequence / context < least_piece && !frozen_.has("context")))) continue;
      for (const int pipeline : divisors(job_.gpus / (tensor * context), m.layers)) {
        for (const int expert : m.moe ? divisors(m.moe->experts, kMostExpert) : std::vector<int>{1}) {
          Strategy s;
          s.tensor = tensor;
          s.context = context;
          s.pipeline = pipeline;
          s.expert = expert;
          s.sequence_parallel = tensor > 1;
          s.data = job_.gpus / (tensor * context * pipeline);
          const int stage_ranks = s.data * context * tensor;
          if (expert > stage_ranks || stage_ranks % expert != 0) continue;
          if (frozen_.allows(s, {"tensor", "context", "pipeline", "expert", "data"})) out.push_back(std::move(s));
        }
      }
    }
  }
  return out;
}

bool Space::batch_divides(const Strategy& s) const {
  const double per_rank = job_.global_batch / s.data;
  return per_rank >= 1 && per_rank == std::floor(per_rank) && per_rank <= 1e9;
}

/// DDP and optimizer state shared as Megatron's distributed optimizer does.
void Space::state_sharings(const Strategy& s, std::vector<Strategy>& out) const {
  out.push_back(s);
  if (s.data * s.context == 1) return;
  const bool torch = is_torch(job_.framework) && !job_.framework_assumed && !anything();
  if (torch && !frozen_.has("sharding")) return;
  out.push_back(s);
  out.back().zero = 1;
  out.back().sharder = Sharder::kMegatronOptimizer;
}

/// FSDP: gradients and parameters shared unit by unit, over all ranks or in groups of every size.
void Space::unit_sharings(const Strategy& s, std::vector<Strategy>& out) const {
  const int ranks = s.data * s.context;
  if (ranks == 1 || (s.pipeline > 1 && job_.framework != Framework::kTorchtitan && !anything() && !frozen_.has("sharding"))) return;
  Strategy fsdp = s;
  fsdp.sharder = Sharder::kFsdp;
  fsdp.zero = 2;
  fsdp.reshard_after_forward = false;
  out.push_back(fsdp);
  fsdp.zero = 3;
  fsdp.reshard_after_forward = true;
  out.push_back(fsdp);
  if (s.pipeline > 1) return;
  for (const int shard : divisors(s.data, s.data)) {
    if (shard == 1 || shard == s.data) continue;
    fsdp.shard_ranks = shard;
    out.push_back(fsdp);
  }
}

/// DeepSpeed's stages 2 and 3, the last with each part of ZeRO++ on or off.
void Space::deepspeed_sharings(const Strategy& s, std::vector<Strategy>& out) const {
  if (s.data * s.context == 1 || s.pipeline > 1) return;
  Strategy zero = s;
  zero.sharder = Sharder::kDeepspeed;
  zero.zero = 2;
  out.push_back(zero);
  zero.zero = 3;
  for (const bool gathers : {false, true}) {
    for (const bool reduction : {false, true}) {
      for (const bool secondary : {false, true}) {
        zero.quantised_gathers = gathers;
        zero.quantised_reduction = reduction;
        zero.secondary_shard = secondary;
        out.push_back(zero);
      }
    }
  }
}

std::vector<Strategy> Space::shardings(const Strategy& s) const {
  std::vector<Strategy> out;
  const bool deepspeed = is_deepspeed(job_.framework);
  state_sharings(s, out);
  if (anything() || !deepspeed || frozen_.has("sharding")) unit_sharings(s, out);
  const bool named = frozen_.has("sharding") && frozen_.values().sharder == Sharder::kDeepspeed;
  if (anything() || deepspeed || named) deepspeed_sharings(s, out);
  const std::size_t kept = out.size();
  if (anything() || (deepspeed && !job_.framework_assumed) || frozen_.has("offload")) {
    for (std::size_t i = 0; i < kept; ++i) {
      for (const Offload offload : {Offload::kOptimizer, Offload::kParameters, Offload::kAll, Offload::kActivations}) {
        if (offload == Offload::kParameters && out[i].zero != 3) continue;
        if (offload == Offload::kAll && out[i].zero != 3) continue;
        out.push_back(out[i]);
        out.back().offload = offload;
      }
    }
  }
  std::erase_if(out, [this](const Strategy& x) { return !frozen_.allows(x, {"sharding", "offload", "reshard"}); });
  return out;
}

std::vector<Strategy> Space::kernels(const Strategy& sharded) const {
  std::vector<Strategy> out;
  const int per_rank = static_cast<int>(job_.global_batch / sharded.data);
  const Constraints& limits = options_.constraints;
  const bool stated = !job_.framework_assumed && ((job_.framework == Framework::kMegatron && job_.year >= 2023) || job_.framework == Framework::kTorchtitan);
  const bool overlaps = anything() || stated || frozen_.has("overlap-tensor");
  // Megatron-Core hides the all-to-all of one micro-batch behind another's passes since 2025.
  const bool megatron = job_.framework == Framework::kMegatron && job_.year >= 2025;
  const bool hides_exchanges = anything() || megatron || frozen_.has("overlap-expert");
  for (const int micro : micro_batches_) {
    if (per_rank % micro != 0) continue;
    Strategy s = sharded;
    s.micro_batch = micro;
    s.accumulate = per_rank / micro;
    if (limits.most_accumulation > 0 && s.accumulate > limits.most_accumulation) continue;
    for (const bool sequence : {true, false}) {
      if (sequence != sharded.sequence_parallel && sharded.tensor == 1) continue;
      if (sequence && sharded.tensor > 1 && job_.sequence % (sharded.tensor * sharded.context) != 0) continue;
      for (const bool overlap : {false, true}) {
        if (overlap && (!overlaps || sharded.tensor == 1 || !sequence)) continue;
        s.sequence_parallel = sequence;
        s.overlap_tensor = overlap;
        for (const bool exchanges : {false, true}) {
          if (exchanges && (!hides_exchanges || sharded.expert == 1)) continue;
          s.overlap_expert = exchanges;
          if (frozen_.allows(s, {"microbatch", "accumulate", "sp", "overlap-tensor", "overlap-expert"})) out.push_back(s);
        }
      }
    }
  }
  return out;
}

long Space::schedule_count(const Strategy& kernel) const {
  const int key = 2 * kernel.pipeline + (kernel.accumulate % kernel.pipeline == 0 ? 1 : 0);
  const auto found = counted_.find(key);
  if (found != counted_.end()) return found->second;
  return counted_[key] = static_cast<long>(schedules(kernel).size());
}

std::vector<Strategy> Space::schedules(const Strategy& kernel) const {
  std::vector<Strategy> out{kernel};
  if (kernel.pipeline > 1) {
    const bool torch = job_.framework == Framework::kTorchtitan || job_.framework == Framework::kPytorch;
    const auto has = [&](bool framework_has) { return anything() || framework_has || frozen_.has("schedule"); };
    const auto add = [&](Schedule schedule) {
      out.push_back(kernel);
      out.back().schedule = schedule;
    };
    if (has(torch || job_.framework == Framework::kNanotron)) add(Schedule::kGpipe);
    if (has(false)) add(Schedule::kZeroBubble1);
    if (has(false)) add(Schedule::kZeroBubble2);
    if (has(torch) && job_.model.layers % (2 * kernel.pipeline) == 0) {
      add(Schedule::kZeroBubbleV);
      out.back().virtual_stages = 2;
    }
    if (has(false) && kernel.pipeline % 2 == 0) add(Schedule::kDualPipe);
    const bool interleaves = !is_deepspeed(job_.framework) && job_.framework != Framework::kNanotron;
    if (has(interleaves) && kernel.accumulate % kernel.pipeline == 0 && job_.model.layers % kernel.pipeline == 0) {
      for (const int chunks : divisors(job_.model.layers / kernel.pipeline, kMostChunks)) {
        if (chunks == 1) continue;
        add(Schedule::kInterleaved);
        out.back().virtual_stages = chunks;
      }
    }
  }
  std::erase_if(out, [this](const Strategy& x) { return !frozen_.allows(x, {"schedule", "virtual"}); });
  return out;
}

std::vector<Recompute> Space::recomputes() const {
  std::vector<Recompute> out;
  for (const Recompute r : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    Strategy s;
    s.recompute = r;
    if (r != Recompute::kNone && !options_.recompute_choices && !frozen_.has("recompute")) break;
    if (frozen_.allows(s, {"recompute"})) out.push_back(r);
  }
  return out;
}

bool Space::may_wait(const Strategy& s) const { return s.zero >= 2 && s.sharder == Sharder::kFsdp && s.accumulate > 1; }

}  // namespace chokepoint::plan

// SPDX-License-Identifier: Apache-2.0
// What each rank's main thread does in a step, as PyTorch 1.13 and experiments/network/train.py do it.
#include <chokepoint/simulate/timed.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "messages.hpp"

namespace chokepoint::simulate {

using collective::gloo_schedule;
using collective::Op;
using topology::MeasuredNetwork;

namespace {

constexpr std::array<std::pair<std::string_view, TimedStrategy>, 4> kNames{{{"ddp", TimedStrategy::kDdp}, {"zero1", TimedStrategy::kZero1},
                                                                            {"sharded", TimedStrategy::kSharded}, {"pipeline", TimedStrategy::kPipeline}}};

class Step {
 public:
  Step(const TimedPlan& plan, const TimedCase& scheme, int ranks) : plan_(plan), scheme_(scheme), ranks_(ranks), all_(static_cast<std::size_t>(ranks)) {
    machine_.main.resize(all_.size());
    std::iota(all_.begin(), all_.end(), 0);
  }

  const Machine& build() {
    switch (scheme_.strategy) {
      case TimedStrategy::kDdp: data_parallel(); break;
      case TimedStrategy::kZero1:
        data_parallel();
        broadcast_shards();
        break;
      case TimedStrategy::kSharded: sharded(); break;
      case TimedStrategy::kPipeline: pipeline(); break;
    }
    return machine_;
  }

 private:
  void everyone(Do what, int index, double seconds = 0) {
    for (Program& program : machine_.main) program.push_back({what, index, seconds});
  }
  int collective_job(Op op, double bytes, int root = 0) { return machine_.add_job(gloo_schedule(op, bytes, all_, root), all_); }

  /// Layers of each gradient bucket, in the order in which backward fills them: a bucket closes once it holds the cap, the
  /// first at 1 MiB if that is less (torch/csrc/distributed/c10d/reducer.cpp, kDefaultFirstBucketBytes).
  std::vector<int> buckets() const {
    constexpr double kFirst = 1024 * 1024;
    std::vector<int> list;
    double open = 0;
    int layers = 0;
    for (int layer = 0; layer < plan_.layers; ++layer) {
      open += plan_.layer_bytes;
      ++layers;
      if (open < std::min(scheme_.bucket_bytes, list.empty() ? kFirst : scheme_.bucket_bytes)) continue;
      list.push_back(layers);
      open = layers = 0;
    }
    if (layers > 0) list.push_back(layers);
    return list;
  }

  void data_parallel() {
    const std::vector<int> sizes = buckets();
    for (int micro = 0; micro < scheme_.accumulate; ++micro) {
      const bool reduces = !scheme_.no_sync || micro + 1 == scheme_.accumulate;
      everyone(Do::kCompute, 0, plan_.layers * plan_.forward_s);
      std::vector<int> started;
      for (const int layers : sizes) {
        everyone(Do::kCompute, 0, layers * plan_.backward_s);
        if (!reduces) continue;
        started.push_back(collective_job(Op::kAllReduce, layers * plan_.layer_bytes));
        everyone(Do::kStart, started.back());
      }
      for (const int job : started) everyone(Do::kFinish, job);
    }
  }

  /// ZeroRedundancyOptimizer: equal tensors go to the ranks in turn; each owner broadcasts its own, rank after rank, all
  /// queued at once (torch/distributed/optim/zero_redundancy_optimizer.py, _sync_params).
  void broadcast_shards() {
    std::vector<int> started;
    for (int owner = 0; owner < ranks_; ++owner) {
      for (int layer = owner; layer < plan_.layers; layer += ranks_) {
        started.push_back(collective_job(Op::kBroadcast, plan_.layer_bytes, owner));
        everyone(Do::kStart, started.back());
      }
    }
    for (const int job : started) everyone(Do::kFinish, job);
  }

  int gather() {
    const int job = collective_job(Op::kAllGather, plan_.layer_bytes);
    everyone(Do::kStart, job);
    return job;
  }
  void walk(double seconds, std::vector<int>* scatters) {
    int ahead = gather();
    for (int layer = 0; layer < plan_.layers; ++layer) {
      everyone(Do::kFinish, ahead);
      if (layer + 1 < plan_.layers) ahead = gather();
      everyone(Do::kCompute, 0, seconds);
      if (scatters == nullptr) continue;
      scatters->push_back(collective_job(Op::kAllToAll, plan_.layer_bytes));
      everyone(Do::kStart, scatters->back());
    }
  }
  void sharded() {
    for (int micro = 0; micro < scheme_.accumulate; ++micro) {
      std::vector<int> scatters;
      walk(plan_.forward_s, nullptr);
      walk(plan_.backward_s, &scatters);
      for (const int job : scatters) everyone(Do::kFinish, job);
    }
  }

  /// 1F1B; the ranks of a stage are neighbours, and send to their counterpart `width` ranks on.
  void pipeline() {
    const int width = ranks_ / scheme_.stages;
    const int micro_batches = scheme_.accumulate * ranks_ / width;
    const auto rank_count = static_cast<std::size_t>(ranks_);
    // Messages forwards and backwards by micro-batch, of the rank that sends.
    std::vector<std::vector<int>> forth(rank_count), back(rank_count);
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int m = 0; m < micro_batches; ++m) {
        const auto r = static_cast<std::size_t>(rank);
        forth[r].push_back(rank + width < ranks_ ? machine_.add_message(rank, rank + width, plan_.activation_bytes) : -1);
        back[r].push_back(rank >= width ? machine_.add_message(rank, rank - width, plan_.activation_bytes) : -1);
      }
    }
    const int layers = plan_.layers / scheme_.stages;
    for (int rank = 0; rank < ranks_; ++rank) {
      const int ahead = std::min(micro_batches, scheme_.stages - 1 - rank / width);
      const auto pass = [&](bool forward, int m) {
        const int source = forward ? rank - width : rank + width;
        Program& program = machine_.main[static_cast<std::size_t>(rank)];
        const auto at = static_cast<std::size_t>(m);
        if (source >= 0 && source < ranks_) {
          const int message = (forward ? forth : back)[static_cast<std::size_t>(source)][at];
          program.push_back({Do::kPost, message, 0});
          program.push_back({Do::kWait, message, 0});
        }
        program.push_back({Do::kCompute, 0, layers * (forward ? plan_.forward_s : plan_.backward_s)});
        const int own = (forward ? forth : back)[static_cast<std::size_t>(rank)][at];
        if (own >= 0) program.push_back({Do::kPost, own, 0});
      };
      for (int m = 0; m < ahead; ++m) pass(true, m);
      for (int m = ahead; m < micro_batches; ++m) {
        pass(true, m);
        pass(false, m - ahead);
      }
      for (int m = micro_batches - ahead; m < micro_batches; ++m) pass(false, m);
    }
    share_stages(width, layers);
  }

  void share_stages(int width, int layers) {
    for (int stage = 0; stage < scheme_.stages && width > 1; ++stage) {
      std::vector<int> members(static_cast<std::size_t>(width));
      std::iota(members.begin(), members.end(), stage * width);
      std::vector<int> started;
      for (int layer = 0; layer < layers; ++layer) started.push_back(machine_.add_job(gloo_schedule(Op::kAllReduce, plan_.layer_bytes, members), members));
      for (const int rank : members) {
        Program& program = machine_.main[static_cast<std::size_t>(rank)];
        for (const int job : started) program.push_back({Do::kStart, job, 0});
        for (const int job : started) program.push_back({Do::kFinish, job, 0});
      }
    }
  }

  const TimedPlan& plan_;
  const TimedCase& scheme_;
  int ranks_;
  std::vector<int> all_;
  Machine machine_;
};

Result<bool> check(const TimedPlan& plan, const TimedCase& scheme, std::size_t ranks) {
  if (ranks < 2) return fail(fmt::format("'{}' needs two hosts, the network has {}", scheme.name, ranks));
  if (scheme.strategy != TimedStrategy::kPipeline) return true;
  const auto stages = static_cast<std::size_t>(scheme.stages);
  if (ranks % stages != 0) return fail(fmt::format("'{}': {} stages do not divide {} ranks", scheme.name, scheme.stages, ranks));
  if (plan.layers % scheme.stages != 0) return fail(fmt::format("'{}': {} stages do not divide {} layers", scheme.name, scheme.stages, plan.layers));
  return true;
}

using Json = nlohmann::json;

/// A number of the plan within limits; the message says which.
Result<double> number(const Json& json, const char* key, double low, double high, const std::string& file) {
  const auto at = json.find(key);
  if (at != json.end() && at->is_number() && at->get<double>() >= low && at->get<double>() <= high) return at->get<double>();
  return fail(fmt::format("'{}' is {}, expected a number from {:g} to {:g}", key, at == json.end() ? "missing" : at->dump(), low, high), {file, 1, 1});
}

Result<TimedCase> read_case(const Json& json, const std::string& file) {
  TimedCase scheme;
  if (!json.is_object() || !json.contains("strategy") || !json["strategy"].is_string()) return fail("a case needs a 'strategy'", {file, 1, 1});
  const std::string word = json["strategy"].get<std::string>();
  const auto* const at = std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == word; });
  if (at == kNames.end()) return fail("unknown strategy '" + word + "', expected ddp, zero1, sharded or pipeline", {file, 1, 1});
  scheme.strategy = at->second;
  scheme.name = json.contains("name") && json["name"].is_string() ? json["name"].get<std::string>() : word;
  TRY_INTO(const double accumulate, number(json, "accumulate", 1, 4096, file));
  scheme.accumulate = static_cast<int>(accumulate);
  if (json.contains("no_sync") && json["no_sync"].is_boolean()) scheme.no_sync = json["no_sync"].get<bool>();
  if (scheme.strategy == TimedStrategy::kDdp || scheme.strategy == TimedStrategy::kZero1) {
    TRY_INTO(scheme.bucket_bytes, number(json, "bucket_bytes", 1, 1e12, file));
  }
  if (scheme.strategy == TimedStrategy::kPipeline) {
    TRY_INTO(const double stages, number(json, "stages", 1, 1024, file));
    scheme.stages = static_cast<int>(stages);
  }
  return scheme;
}

}  // namespace

std::string_view name(TimedStrategy strategy) {
  for (const auto& [word, value] : kNames) {
    if (value == strategy) return word;
  }
  return "unknown";
}

Result<TimedPlan> read_timed_plan(std::string_view text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return fail("this is no JSON object, expected a plan as experiments/network/steps.json", {file, 1, 1});
  TimedPlan plan;
  TRY_INTO(const double layers, number(json, "layers", 1, 1024, file));
  plan.layers = static_cast<int>(layers);
  TRY_INTO(plan.layer_bytes, number(json, "layer_bytes", 4, 1e12, file));
  TRY_INTO(plan.activation_bytes, number(json, "activation_bytes", 4, 1e12, file));
  TRY_INTO(plan.forward_s, number(json, "forward_s", 0, 1e6, file));
  TRY_INTO(plan.backward_s, number(json, "backward_s", 0, 1e6, file));
  if (!json.contains("cases") || !json["cases"].is_array() || json["cases"].empty()) return fail("'cases' is missing or empty", {file, 1, 1});
  for (const Json& entry : json["cases"]) {
    TRY_INTO(TimedCase scheme, read_case(entry, file));
    plan.cases.push_back(std::move(scheme));
  }
  return plan;
}

Result<TimedStep> timed_step(const TimedPlan& plan, const TimedCase& scheme, const MeasuredNetwork& network) {
  TRY_INTO([[maybe_unused]] const bool legal, check(plan, scheme, network.hosts.size()));
  const MeasuredLinks links(network);
  Step step(plan, scheme, static_cast<int>(network.hosts.size()));
  const Machine& machine = step.build();
  const RunResult result = run(machine, links, network);
  if (result.stuck) return fail(fmt::format("'{}' never ends on this network: a link carries nothing", scheme.name));
  TimedStep timed;
  timed.step_time_s = result.end_s;
  for (const Program& program : machine.main) {
    double busy = 0;
    for (const Instruction& instruction : program) busy += instruction.seconds;
    timed.compute_s = std::max(timed.compute_s, busy);
  }
  for (std::size_t link = 0; link < result.carried_bytes.size(); ++link) {
    if (link < 2 * network.hosts.size() && link % 2 == 0) timed.sent_bytes = std::max(timed.sent_bytes, result.carried_bytes[link]);
    const double capacity = links.capacities()[link];
    const double share = result.end_s > 0 && capacity < flow::kNever ? result.carried_bytes[link] / capacity / result.end_s : 0;
    if (share <= timed.busiest_share) continue;
    timed.busiest_share = share;
    timed.busiest = links.name(link);
  }
  return timed;
}

}  // namespace chokepoint::simulate

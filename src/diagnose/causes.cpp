// SPDX-License-Identifier: Apache-2.0
#include "causes.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "choke_sentence.hpp"
#include "replay.hpp"
#include "shapley.hpp"

namespace chokepoint::diagnose {

using simulate::Bill;
using trace::RankTrace;

namespace {

constexpr double kWorthNaming = 0.02;   // of the measured time
constexpr double kReplayError = 0.02;   // above it the replay does not explain the measurement, and says so

/// From the first rank's beginning to the last one's end: of the steps where all ranks have equally many, else of the work.
std::optional<Interval> common_window(const std::vector<RankTrace>& traces, const Diagnosis& d) {
  const std::size_t steps = d.ranks.empty() ? 0 : d.ranks.front().steps.size();
  const bool stepped = steps > 0 && std::all_of(d.ranks.begin(), d.ranks.end(), [steps](const RankResult& r) { return r.steps.size() == steps; });
  std::optional<Interval> window;
  for (std::size_t m = 0; m < traces.size(); ++m) {
    if (traces[m].device.size() == 0) return std::nullopt;
    const RankResult& r = d.ranks[m];
    const Interval own = stepped ? Interval{r.steps.front().window.begin_ns, r.steps.back().window.end_ns}
                                 : Interval{r.time.start_ns, r.time.start_ns + r.time.span_ns};
    window = window ? Interval{std::min(window->begin_ns, own.begin_ns), std::max(window->end_ns, own.end_ns)} : own;
  }
  return window && window->begin_ns < window->end_ns ? window : std::nullopt;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

struct Words {
  std::string id;
  std::string where;
  std::string what;
  std::string remedy;
};

/// Class with the largest sum over all ranks, waiting left out, among those `pick` takes.
template <class Pick>
Bill largest(const Diagnosis& d, Pick pick) {
  MeasuredBill sum;
  for (const RankResult& r : d.ranks) sum += r.bill;
  int best = -1;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto moved = [&sum](int k) { return sum.ns[static_cast<std::size_t>(k)] - sum.wait_ns[static_cast<std::size_t>(k)]; };
    if (pick(static_cast<Bill>(i)) && (best < 0 || moved(i) > moved(best))) best = i;
  }
  return static_cast<Bill>(best);
}

/// The one rank on which the host's part is more than twice what it is on the median rank; "host" where it is several.
std::string where_of_host(const Diagnosis& d, bool (*counts)(HostPart)) {
  std::vector<std::int64_t> part;
  for (const RankResult& r : d.ranks) {
    part.push_back(0);
    for (int p = 0; p < kHostPartCount; ++p) part.back() += counts(static_cast<HostPart>(p)) ? r.bill.host_ns[static_cast<std::size_t>(p)] : 0;
  }
  std::vector<std::int64_t> sorted = part;
  std::sort(sorted.begin(), sorted.end());
  constexpr std::size_t kFewest = 3;  // ranks among which one can stand out
  if (part.size() < kFewest || sorted.back() <= 2 * sorted[sorted.size() / 2] || sorted[sorted.size() - 2] > sorted.back() / 2) return "host";
  const auto at = static_cast<std::size_t>(std::max_element(part.begin(), part.end()) - part.begin());
  return "rank " + std::to_string(d.ranks[at].rank);
}

std::string wire_remedy(Bill dimension) {
  switch (dimension) {
    case Bill::kTensor: return "keep tensor parallelism inside a host; Megatron-LM --sequence-parallel --tp-comm-overlap with CUDA_DEVICE_MAX_CONNECTIONS=1";
    case Bill::kPipeline: return "Megatron-LM --overlap-p2p-communication, or fewer stages";
    case Bill::kExpert: return "keep expert parallelism inside a host; Megatron-LM --moe-token-dispatcher-type flex (DeepEP), --overlap-moe-expert-parallel-comm";
    case Bill::kContext: return "Megatron-LM --cp-comm-type a2a+p2p, or fewer context ranks";
    case Bill::kDataGather: return "FSDP: forward_prefetch=True, backward_prefetch=BACKWARD_PRE, HYBRID_SHARD; DeepSpeed: overlap_comm, larger stage3_prefetch_bucket_size";
    default: return "gradient accumulation under no_sync(); DDP: bucket_cap_mb, gradient_as_bucket_view; Megatron-LM --overlap-grad-reduce";
  }
}

Words words_of_stage(const Replay& replay, const Diagnosis& d) {
  std::vector<std::string> names;
  for (const int m : replay.heavy_stage()) names.push_back(std::to_string(d.ranks[static_cast<std::size_t>(m)].rank));
  const std::string where = "stage of ranks " + short_list(names);
  char text[200];
  std::snprintf(text, sizeof text, "The pipeline stage of ranks %.80s computes %.2f\u00d7 as long as the others", short_list(names).c_str(), replay.slowest_factor());
  return {"heavy-stage", where, text,
          "move layers off that stage: Megatron-LM --decoder-last-pipeline-num-layers or --account-for-loss-in-pipeline-split; torchtitan pipeline_parallel_split_points"};
}

Words words_of(Removable kind, const Replay& replay, const Diagnosis& d) {
  char text[200];
  switch (kind) {
    case Removable::kSlowRank: {
      if (!replay.heavy_stage().empty()) return words_of_stage(replay, d);
      const int rank = replay.slowest_rank() >= 0 ? d.ranks[static_cast<std::size_t>(replay.slowest_rank())].rank : 0;
      std::snprintf(text, sizeof text, "Rank %d computes %.2f× as long as the median rank", rank, replay.slowest_factor());
      return {"slow-rank", "rank " + std::to_string(rank), text,
              "compare that GPU's clocks and throttle reasons (nvidia-smi -q -d PERFORMANCE,CLOCK) with its neighbours; exchange the host"};
    }
    case Removable::kImbalance:
      return {"imbalance", "all ranks", "Ranks take turns in computing longer than the others between collectives",
              "even out the work: sequences by length, experts by load (aux loss, capacity), equal micro-batches"};
    case Removable::kHost: {
      HostPart part = HostPart::kLaunch;
      std::int64_t most = -1;
      for (const HostPart p : {HostPart::kLaunch, HostPart::kSynchronise, HostPart::kCheckpoint}) {
        std::int64_t sum = 0;
        for (const RankResult& r : d.ranks) sum += r.bill.host_ns[static_cast<std::size_t>(p)];
        if (sum > most) {
          most = sum;
          part = p;
        }
      }
      const std::string where = where_of_host(d, [](HostPart p) { return p != HostPart::kDataLoader; });
      if (part == HostPart::kSynchronise) return {"host", where, "Devices idle behind synchronising calls of the host", "remove .item(), .cpu() and nonzero from the step; log every N steps; non_blocking=True"};
      if (part == HostPart::kCheckpoint) return {"host", where, "Devices idle while a checkpoint is written", "torch.distributed.checkpoint.async_save; Megatron-LM --async-save"};
      return {"host", where, "Devices idle because the host launches too slowly", "torch.compile(mode=\"reduce-overhead\") or CUDA graphs; larger micro-batches; fused optimizer (fused=True)"};
    }
    case Removable::kDataLoader:
      return {"data-loader", where_of_host(d, [](HostPart p) { return p == HostPart::kDataLoader; }), "Devices idle while the data loader works", "DataLoader(num_workers=…, pin_memory=True, persistent_workers=True, prefetch_factor=4); copy with non_blocking=True"};
    case Removable::kWire: {
      const Bill dimension = largest(d, [](Bill b) {
        return b == Bill::kTensor || b == Bill::kContext || b == Bill::kExpert || b == Bill::kPipeline || b == Bill::kDataGather || b == Bill::kDataReduce;
      });
      std::string dim(simulate::name(dimension));
      return {"wire", dim, "Exposed transfers, most of them of " + dim, wire_remedy(dimension)};
    }
    case Removable::kSlowWire: {
      // The operation and size that loses most against the wiring, by what it loses.
      std::map<std::string, std::pair<double, double>> lost;  // achieved and expected bus bandwidth of each, summed
      for (const MatchedCollective& c : d.collectives) {
        const double achieved = c.bus_bytes_per_s();
        if (achieved <= 0 || c.expected_bus_bytes_per_s <= achieved) continue;
        auto& [a, e] = lost[std::string(collective::name(c.op)) + " of group " + c.group];
        a += achieved;
        e += c.expected_bus_bytes_per_s;
      }
      const auto worst = std::min_element(lost.begin(), lost.end(), [](const auto& a, const auto& b) { return a.second.first * b.second.second < b.second.first * a.second.second; });
      const std::string where = worst == lost.end() ? "network" : worst->first;
      const double share = worst == lost.end() ? 1 : worst->second.first / worst->second.second;
      std::snprintf(text, sizeof text, "Transfers are slower than the wiring allows, worst %.90s at %.0f %% of it", where.c_str(), 100 * share);
      return {"slow-wire", where, text,
              "find the slow link: chokepoint measure --network, ibdiagnet, nccl-tests between pairs of hosts; NCCL_DEBUG=INFO says which NICs and transport are used"};
    }
    case Removable::kEarly: {
      std::size_t early = 0;
      std::size_t all = 0;
      for (const MatchedCollective& c : d.collectives) {
        early += c.early ? 1 : 0;
        all += c.early || (c.op == collective::Op::kAllReduce && c.dimension == Bill::kDataReduce) ? 1 : 0;
      }
      std::snprintf(text, sizeof text, "Gradients are reduced in every micro-step: %zu of %zu reductions are not the last of their step", early, all);
      return {"accumulation-sync", "data-reduce", text,
              "reduce once a step: model.no_sync() around all but the last micro-step (Accelerate: accelerator.accumulate(model); Lightning: accumulate_grad_batches)"};
    }
    case Removable::kCopies:
      return {"copies", "device", "Memory copies run while nothing computes", "pinned memory with non_blocking=True, prefetch on a stream of its own"};
    default:
      return {"idle", "device", "Devices idle although work was queued (dependencies between streams)", "fewer streams and events between kernels; look at the gaps in the timeline"};
  }
}

/// What a layout gives one stage to do beside its layers is a part of the bill, no cause; it is told where it can be evened out.
void note_own_work(const Replay& replay, double measured_s, Diagnosis& d) {
  const Replay::OwnWork& own = replay.own_work();
  if (own.seconds <= kWorthNaming * measured_s) return;
  std::vector<std::string> names;
  for (const int m : own.ranks) names.push_back(std::to_string(d.ranks[static_cast<std::size_t>(m)].rank));
  constexpr std::size_t kMostNameBytes = 60;
  d.notes.push_back({"the stage of ranks " + short_list(names) + " computes " + percent(own.seconds / measured_s) + " of the time longer for what it alone runs (" +
                         std::string(own.kernel.substr(0, kMostNameBytes)) +
                         "): fewer layers there even it out (Megatron-LM --account-for-loss-in-pipeline-split, --decoder-last-pipeline-num-layers)", {}});
}

}  // namespace

void find_causes(const std::vector<RankTrace>& traces, const std::vector<CommunicationView>& views, Diagnosis& d) {
  const std::optional<Interval> window = common_window(traces, d);
  if (!window) return;
  const Replay replay(traces, [&](std::size_t m) { return segments_of(traces[m], views[m], *window); }, d.collectives, *window);
  std::size_t steps = 1;
  std::size_t fewest = d.ranks.front().steps.size();
  for (const RankResult& r : d.ranks) {
    steps = std::max(steps, r.steps.size());
    fewest = std::min(fewest, r.steps.size());
  }
  if (fewest > 0 && fewest < steps) {
    d.notes.push_back({"the ranks hold different numbers of steps (" + std::to_string(fewest) + " to " + std::to_string(steps) + "): times per step are a mean over the longest recording", {}});
  }
  d.steps = static_cast<int>(steps);
  const double per_step = 1.0 / static_cast<double>(steps);
  const double measured = static_cast<double>(window->end_ns - window->begin_ns) * 1e-9;
  const double replayed = replay.seconds_without(0);
  if (std::fabs(replayed - measured) > kReplayError * measured) {
    d.notes.push_back({"the replay gives " + format_duration(replayed) + " where " + format_duration(measured) +
                           " were measured: waits that no trace explains; costs of causes are scaled to the measurement", {}});
  }
  note_own_work(replay, measured, d);
  const double scale = replayed > 0 ? measured / replayed * per_step : per_step;
  // Only classes that occur: each doubles the number of replays.
  std::vector<Removable> kinds;
  for (int k = 0; k < kRemovableCount; ++k) {
    if (replay.has(static_cast<Removable>(k))) kinds.push_back(static_cast<Removable>(k));
  }
  const auto time_without = [&](unsigned players) {
    unsigned mask = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if ((players & (1u << k)) != 0) mask |= 1u << static_cast<unsigned>(kinds[k]);
    }
    return replay.seconds_without(mask) * scale;
  };
  d.measured_s = measured * per_step;
  d.ideal_s = time_without((1u << kinds.size()) - 1);
  const std::vector<double> value = shapley(static_cast<int>(kinds.size()), time_without);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const double without = time_without(1u << k);
    if (value[k] == 0 && without == d.measured_s) continue;
    Words words = words_of(kinds[k], replay, d);
    Cause cause;
    cause.id = std::move(words.id);
    cause.where = std::move(words.where);
    cause.what = words.what + " (" + percent(value[k] / d.measured_s) + " of the time)";
    cause.remedy = std::move(words.remedy);
    cause.cost_s = value[k];
    cause.step_time_without_s = without;
    d.causes.push_back(std::move(cause));
  }
  std::stable_sort(d.causes.begin(), d.causes.end(), [](const Cause& a, const Cause& b) { return a.cost_s > b.cost_s; });
  if (d.causes.empty()) return;
  d.choke_point = d.causes.front().cost_s > kWorthNaming * d.measured_s
                      ? choke_sentence(d.causes.front(), d.measured_s)
                      : "Nothing stands out: no cause takes more than 2 % of " + format_duration(d.measured_s);
}

}  // namespace chokepoint::diagnose

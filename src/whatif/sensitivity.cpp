// SPDX-License-Identifier: Apache-2.0
// Every resource is a function from a scenario and a factor to a scenario; the step is evaluated anew for each. Two
// have no wire: the pipeline's bubble shrinks with the micro-batches in flight, and device memory buys less
// recomputation where that then fits. Cost: three evaluations per resource and one per fix, each well under a
// millisecond on hosts with a switch.
#include <chokepoint/base/progress.hpp>
#include <chokepoint/whatif/sensitivity.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <set>

#include "apply.hpp"
#include "rewire.hpp"

namespace chokepoint::whatif {

namespace {

constexpr double kInfiniteFactor = 1e6;
constexpr double kTenth = 1.1;
constexpr double kDouble = 2;
/// Below a thousandth nobody could measure the gain of a fix.
constexpr double kWorthFixing = 0.999;
/// Share of the gain of several resources together from which one of them is named alone.
constexpr double kMostOfTheGain = 0.75;

/// A scenario on its way through fixes: what is left of the bubble, and whether recomputation may be given up.
struct Trial {
  Scenario scenario;
  double bubble = 1;
  bool lighter_recompute = false;
  std::optional<double> imperfect;  ///< step with imperfections over the step without; empty: to be simulated
};

struct Resource {
  std::string name;
  std::string where;
  std::string twice;  ///< the fix in words
  std::function<void(Trial&, double)> scale;
  bool whole = false;  ///< several of the others together
};

std::string_view words(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::kGpuLinks:
      return "links between the GPUs of a host";
    case LinkClass::kGpuSlots:
      return "PCIe of the GPUs";
    case LinkClass::kSwitchUplinks:
      return "PCIe switches to the host";
    case LinkClass::kNicSlots:
      return "PCIe of the NICs";
    case LinkClass::kHostMemory:
      return "memory of the sockets";
    case LinkClass::kSockets:
      return "links between sockets";
  }
  return "?";
}

bool has_class(const topology::Cluster& cluster, LinkClass link_class) {
  for (const topology::HostGroup& group : cluster.hosts) {
    for (const topology::Link& link : group.host.links) {
      if (class_of(group.host, link) == link_class) return true;
    }
  }
  return false;
}

void add_links(const topology::Cluster& cluster, std::vector<Resource>& out) {
  for (int i = 0; i < kLinkClassCount; ++i) {
    const auto link_class = static_cast<LinkClass>(i);
    if (!has_class(cluster, link_class)) continue;
    out.push_back({std::string(name(link_class)), std::string(words(link_class)),
                   fmt::format("{} twice as fast", words(link_class)),
                   [link_class](Trial& t, double factor) { scale_class(t.scenario.job.cluster, link_class, factor); }});
  }
}

/// All that a newer board brings: classes that limit each other hide behind one another when each is asked alone.
void add_board(const topology::Cluster& cluster, std::vector<Resource>& out) {
  if (!has_class(cluster, LinkClass::kGpuSlots)) return;
  out.push_back({"board", "PCIe, memory and socket links inside the host together",
                 "a board one generation newer: PCIe, memory and socket links twice as fast",
                 [](Trial& t, double factor) { scale_board(t.scenario.job.cluster, factor); }, true});
}

/// Links slower than the best of their class, each on its own: a bridge gone, a slot that trained at fewer lanes.
void add_slow_links(const topology::Cluster& cluster, std::vector<Resource>& out) {
  constexpr double kSlower = 0.9;
  constexpr std::size_t kMost = 32;
  const topology::Host& host = cluster.hosts.front().host;
  std::set<std::string> seen;
  for (const topology::Link& link : host.links) {
    const auto link_class = class_of(host, link);
    if (!link_class) continue;
    double best = 0;
    for (const topology::Link& other : host.links) {
      if (class_of(host, other) == link_class && other.kind == link.kind)
        best = std::max(best, other.bandwidth.effective());
    }
    if (link.bandwidth.effective() >= kSlower * best || seen.size() >= kMost) continue;
    const std::string device = host.devices[static_cast<std::size_t>(link.from)].name;
    const std::string resource = fmt::format("{}.{}", device, name(*link_class));
    if (!seen.insert(resource).second) continue;
    out.push_back({resource,
                   fmt::format("{} of {}, {}", words(*link_class), device, format_rate(link.bandwidth.effective())),
                   "this link twice as fast", [device, link_class](Trial& t, double factor) {
                     scale_device(t.scenario.job.cluster, device, *link_class, factor);
                   }});
  }
}

void add_network(const Scenario& scenario, std::vector<Resource>& out) {
  const topology::Cluster& cluster = scenario.job.cluster;
  if (scenario.job.gpus <= cluster.gpus_per_host() || cluster.fabric.kind == topology::FabricKind::kNone) return;
  const double rate = nic_bytes_per_s(cluster.hosts.front().host);
  const std::size_t count = topology::compute_nics(cluster.hosts.front().host).size();
  out.push_back({"nic", fmt::format("{} x {:.0f} Gb/s NICs of each host", count, rate * 8e-9), "NICs twice as fast",
                 [](Trial& t, double factor) { scale_nics(t.scenario.job.cluster, factor); }});
  out.push_back({"network", "way between hosts: NICs, their slots, switches to the host",
                 "the whole way between hosts twice as fast",
                 [](Trial& t, double factor) {
                   scale_nics(t.scenario.job.cluster, factor);
                   for (const LinkClass part : {LinkClass::kNicSlots, LinkClass::kSwitchUplinks, LinkClass::kGpuSlots,
                                                LinkClass::kHostMemory}) {
                     scale_class(t.scenario.job.cluster, part, factor);
                   }
                 },
                 true});
  if (cluster.fabric.oversubscription > 1) {
    out.push_back({"fabric", fmt::format("leaf up-links, {:g}:1 oversubscribed", cluster.fabric.oversubscription),
                   "twice the leaf up-links", [](Trial& t, double factor) {
                     double& over = t.scenario.job.cluster.fabric.oversubscription;
                     over = std::max(1.0, over / factor);
                   }});
  }
}

void add_device(const Scenario& scenario, std::vector<Resource>& out) {
  const hardware::Accelerator& part = scenario.job.accelerator;
  out.push_back({"latency", "start-up and hops of collectives", "half the latency of each collective",
                 [](Trial& t, double factor) { scale_latency(t.scenario.parameters.collective, 1 / factor); }});
  out.push_back({"arithmetic", fmt::format("{} of {}", format_flop_rate(part.peak(scenario.job.dtype)), part.name),
                 "twice the arithmetic", [](Trial& t, double factor) { scale_arithmetic(t.scenario, factor); }});
  out.push_back({"hbm", fmt::format("{} of device memory", format_rate(part.memory_bytes_per_s)),
                 "device memory twice as fast",
                 [](Trial& t, double factor) { t.scenario.job.accelerator.memory_bytes_per_s *= factor; }});
  out.push_back({"host", "launches and Python of the host", "launches twice as fast, or captured graphs",
                 [](Trial& t, double factor) { speed_up_host(t.scenario.parameters, factor); }});
}

void add_schedule(const Scenario& scenario, const parallel::Strategy& completed, std::vector<Resource>& out) {
  if (completed.pipeline > 1) {
    out.push_back(
        {"micro-batches",
         fmt::format("bubble of {} stages with {} micro-batches in flight", completed.pipeline, completed.accumulate),
         "twice the micro-batches in flight", [](Trial& t, double factor) { t.bubble /= factor; }});
  }
  if (completed.recompute != parallel::Recompute::kNone) {
    out.push_back(
        {"memory",
         fmt::format("{} of device memory, {} recomputation", format_bytes(scenario.job.accelerator.memory_bytes),
                     parallel::name(completed.recompute)),
         "twice the device memory, as little recomputation as then fits", [](Trial& t, double factor) {
           t.scenario.job.accelerator.memory_bytes *= factor;
           t.lighter_recompute = true;
         }});
  }
}

/// What ails a real job, as resources that can be had in better quality: twice as good is half as slow or uneven.
void add_real(const Scenario& scenario, std::vector<Resource>& out) {
  const RealJob& real = scenario.real;
  const engine::Imperfections& i = real.imperfections;
  if (!i.slow_ranks.empty() || !i.stalls.empty() || (real.measured && real.measured->slow_rank.alone_s > 0)) {
    out.push_back({"slow ranks", "ranks that compute slower than the others, or stall", "half of their slowness gone",
                   [](Trial& t, double factor) {
                     RealJob& r = t.scenario.real;
                     for (engine::SlowRank& slow : r.imperfections.slow_ranks)
                       slow.factor = 1 + (slow.factor - 1) / factor;
                     for (engine::Stall& stall : r.imperfections.stalls) stall.seconds /= factor;
                     if (r.measured) r.measured->slow_rank_left /= factor;
                     t.imperfect.reset();
                   }});
  }
  if (!i.slow_hosts.empty()) {
    out.push_back({"slow hosts", "hosts with a part of their network", "half of what their network lacks",
                   [](Trial& t, double factor) {
                     for (engine::SlowHost& slow : t.scenario.real.imperfections.slow_hosts)
                       slow.share = 1 - (1 - slow.share) / factor;
                     t.imperfect.reset();
                   }});
  }
  const bool uneven = i.sequence_imbalance > 0 || i.expert_imbalance > 1 || i.stage_load != 1;
  if (!uneven && !(real.measured && real.measured->uneven_load.alone_s > 0)) return;
  out.push_back({"balance", "sequences, experts and stages loaded unevenly", "half of the unevenness gone",
                 [](Trial& t, double factor) {
                   engine::Imperfections& now = t.scenario.real.imperfections;
                   now.sequence_imbalance /= factor;
                   now.expert_imbalance = 1 + (now.expert_imbalance - 1) / factor;
                   now.stage_load = 1 + (now.stage_load - 1) / factor;
                   if (t.scenario.real.measured) t.scenario.real.measured->uneven_load_left /= factor;
                   t.imperfect.reset();
                 }});
}

std::vector<Resource> resources_of(const Scenario& scenario, const parallel::Strategy& completed) {
  std::vector<Resource> out;
  add_links(scenario.job.cluster, out);
  add_slow_links(scenario.job.cluster, out);
  add_board(scenario.job.cluster, out);
  add_network(scenario, out);
  add_device(scenario, out);
  add_schedule(scenario, completed, out);
  add_real(scenario, out);
  return out;
}

Trial with(const Trial& trial, const Resource& resource, double factor) {
  Trial out = trial;
  resource.scale(out, factor);
  carry_measurements(trial.scenario, out.scenario);
  return out;
}

double time_of(const Trial& trial, const parallel::Strategy& completed) {
  const simulate::Predictor predictor(trial.scenario.job, {}, trial.scenario.parameters);
  const RealJob& real = trial.scenario.real;
  const double imperfect = trial.imperfect ? *trial.imperfect
                                           : imperfect_over_even(real.imperfections, predictor, completed).value_or(1.0);
  const auto time = [&](const simulate::Prediction& p) {
    const MeasuredStep::Bill bill = real.measured ? moved_bill(*real.measured, p.bill) : p.bill;
    const double step_s = std::accumulate(bill.begin(), bill.end(), 0.0);
    return (step_s - (1 - trial.bubble) * bill[static_cast<std::size_t>(simulate::Bill::kBubble)]) * imperfect;
  };
  double best = time(predictor.evaluate(completed));
  for (const auto recompute : {parallel::Recompute::kNone, parallel::Recompute::kSelective}) {
    if (!trial.lighter_recompute || recompute >= completed.recompute) break;
    parallel::Strategy lighter = completed;
    lighter.recompute = recompute;
    const simulate::Prediction p = predictor.evaluate(lighter);
    if (p.memory.fits()) best = std::min(best, time(p));
  }
  return best;
}

/// The resource to double next. A part is named rather than the whole it belongs to when it gives most of its gain.
struct Next {
  std::size_t index = 0;
  double step_time_s = 0;
};
std::optional<Next> next_fix(const Trial& trial, const parallel::Strategy& completed,
                             const std::vector<Resource>& resources, const std::vector<bool>& used, double now) {
  std::optional<Next> part, whole;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (used[i]) continue;
    const double time = time_of(with(trial, resources[i], kDouble), completed);
    std::optional<Next>& best = resources[i].whole ? whole : part;
    if (time < kWorthFixing * now && (!best || time < best->step_time_s * (1 - 1e-9))) best = Next{i, time};
  }
  const bool part_suffices = part && (!whole || now - part->step_time_s >= kMostOfTheGain * (now - whole->step_time_s));
  return part_suffices ? part : whole;
}

std::vector<Fix> chain_of(Trial trial, const parallel::Strategy& completed, const std::vector<Resource>& resources,
                          double now, int depth) {
  std::vector<Fix> chain;
  std::vector<bool> used(resources.size(), false);
  while (static_cast<int>(chain.size()) < depth) {
    const auto next = next_fix(trial, completed, resources, used, now);
    if (!next) break;
    const Resource& resource = resources[next->index];
    used[next->index] = true;
    trial = with(trial, resource, kDouble);
    now = next->step_time_s;
    chain.push_back({resource.name, resource.where, resource.twice, now});
  }
  return chain;
}

}  // namespace

Result<Sensitivities> sensitivities(const Scenario& scenario, const parallel::Strategy& strategy, int depth) {
  TRY_INTO(const parallel::Strategy completed, parallel::completed(scenario.job, strategy));
  const std::vector<Resource> resources = resources_of(scenario, completed);
  Trial now{scenario, 1, false, {}};
  if (scenario.real.imperfections.any()) {
    const simulate::Predictor predictor(scenario.job, {}, scenario.parameters);
    TRY_INTO(now.imperfect, imperfect_over_even(scenario.real.imperfections, predictor, completed));
  } else {
    now.imperfect = 1;
  }
  Sensitivities out;
  out.step_time_s = time_of(now, completed);
  ProgressLoop progress(resources.size());
  for (const Resource& resource : resources) {
    if (stop_requested()) break;
    const ProgressLoop::Round round(progress);
    Sensitivity s;
    s.resource = resource.name;
    s.where = resource.where;
    s.step_time_plus_10_s = time_of(with(now, resource, kTenth), completed);
    s.step_time_double_s = time_of(with(now, resource, kDouble), completed);
    s.step_time_infinite_s = time_of(with(now, resource, kInfiniteFactor), completed);
    s.derivative = s.step_time_plus_10_s / out.step_time_s - 1;
    out.resources.push_back(std::move(s));
  }
  std::stable_sort(out.resources.begin(), out.resources.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return a.step_time_infinite_s < b.step_time_infinite_s;
  });
  if (!stop_requested()) out.chain = chain_of(now, completed, resources, out.step_time_s, depth);
  return out;
}

}  // namespace chokepoint::whatif

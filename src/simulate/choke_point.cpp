// SPDX-License-Identifier: Apache-2.0
// The choke point: each resource is set to an attainable better value, the step is evaluated again, and the resource that
// shortens it most is named. Link classes double (the next generation or twice the links); an oversubscribed fabric
// becomes non-blocking; kernels reach the rate that large shapes sustain; the host launches captured graphs.
#include <chokepoint/base/units.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <initializer_list>
#include <utility>

#include "groups.hpp"

namespace chokepoint::simulate {

namespace {

/// Words for the link that bounds a collective of this strategy, where it is one of `kinds`; `otherwise` when none is.
std::string limiting_link(const parallel::Job& job, const Prediction& p, std::initializer_list<collective::LimitKind> kinds,
                          const char* otherwise, const Parameters& parameters) {
  const collective::Network network(job.cluster, job.accelerator, {}, parameters.collective);
  const Groups groups = groups_of(job, p.strategy);
  const int per_host = std::max(1, job.cluster.gpus_per_host());
  // Last: two whole hosts, for stages that send through the NICs without being a group.
  const collective::Group hosts{job.gpus > per_host ? 2 * per_host : 1, per_host, 1, 1};
  for (const collective::Group& group : {groups.tensor, groups.data, groups.shard, groups.replicate, hosts}) {
    if (group.ranks <= 1) continue;
    const collective::Cost cost = network.cost(collective::Op::kAllReduce, 256e6, group);
    if (std::find(kinds.begin(), kinds.end(), cost.limit) != kinds.end()) return std::string(cost.where);
  }
  return otherwise;
}

struct Change {
  std::string kind;
  std::string where;
  std::string text;
  double step_time_s;
};

double with_scale(const parallel::Job& job, const Prediction& p, const collective::Scale& scale, const Parameters& parameters) {
  return Predictor(job, scale, parameters).evaluate(p.strategy).step_time_s;
}

void link_changes(const parallel::Job& job, const Prediction& p, const Parameters& parameters, std::vector<Change>& changes) {
  using collective::LimitKind;
  const auto changed = [&](const char* kind, std::string where, const char* text, const collective::Scale& scale) {
    changes.push_back({kind, std::move(where), text, with_scale(job, p, scale, parameters)});
  };
  collective::Scale scale;
  scale.nvlink = 2;
  changed("nvlink", limiting_link(job, p, {LimitKind::kNvLink}, "links between the GPUs of a host", parameters), "GPU links twice as fast", scale);
  scale = {};
  scale.pcie = 2;
  changed("pcie", limiting_link(job, p, {LimitKind::kPcie, LimitKind::kHostMemory, LimitKind::kSocket}, "PCIe inside the host", parameters),
          "PCIe one generation newer", scale);
  if (job.gpus > job.cluster.gpus_per_host()) {
    const std::string way = limiting_link(job, p, {LimitKind::kNic, LimitKind::kMeasured}, "way between hosts", parameters);
    scale = {};
    scale.nic = 2;
    changed("nic", way, "twice the NIC bandwidth per host", scale);
    scale.pcie = scale.fabric = 2;
    changed("network", way, "twice the bandwidth between hosts, PCIe and fabric included", scale);
    if (job.cluster.fabric.oversubscription > 1) {
      scale = {};
      scale.fabric = job.cluster.fabric.oversubscription;
      changed("fabric", fmt::format("leaf up-links, {:g}:1 oversubscribed", job.cluster.fabric.oversubscription), "a non-blocking fabric", scale);
    }
  }
  scale = {};
  scale.latency = 0.5;
  changed("latency", "start-up of collectives", "half the latency of each collective", scale);
}

void device_changes(const Prediction& p, std::vector<Change>& changes) {
  // Ladder rungs carry how far this job's kernels are from what large shapes sustain.
  double sustained = 0;
  double computing = 0;
  for (const Rung& rung : p.ladder) {
    if (rung.name == "sustained clocks") sustained = rung.fraction;
    if (rung.name == "memory-bound operators") computing = rung.fraction;
  }
  if (sustained > 0 && computing > 0) {
    const double gain = p.item(Bill::kCompute) * (1 - computing / sustained);
    changes.push_back({"kernels", "kernels of this model's shapes", "every operator at the rate large products sustain", p.step_time_s - gain});
  }
  const auto without = [&](const char* kind, const char* where, const char* text, Bill item, double share) {
    if (p.item(item) > 0) changes.push_back({kind, where, text, p.step_time_s - share * p.item(item)});
  };
  without("host", "launches from the host", "captured graphs or compiled layers", Bill::kHost, 0.8);
  without("bubble", "pipeline schedule", "twice the micro-batches in flight", Bill::kBubble, 0.5);
  without("recompute", "activation memory", "enough memory to keep activations", Bill::kRecompute, 1.0);
  without("offload", "PCIe and host memory", "states kept on the device", Bill::kOffload, 1.0);
  without("memory", "device memory bandwidth", "twice the memory bandwidth for the optimizer", Bill::kOptimizer, 0.5);
}

}  // namespace

void find_choke_points(const parallel::Job& job, Prediction& p, const Parameters& parameters) {
  std::vector<Change> changes;
  link_changes(job, p, parameters, changes);
  device_changes(p, changes);
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.step_time_s < b.step_time_s; });
  p.choke_points.clear();
  for (const Change& change : changes) {
    if (change.step_time_s > 0.998 * p.step_time_s) continue;  // below what anyone could measure
    const bool named = std::any_of(p.choke_points.begin(), p.choke_points.end(), [&](const ChokePoint& c) { return c.where == change.where; });
    if (named) continue;  // a lesser change of the same thing
    p.choke_points.push_back({change.kind, change.where, change.text, change.step_time_s});
  }
}

}  // namespace chokepoint::simulate

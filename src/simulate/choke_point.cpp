// SPDX-License-Identifier: Apache-2.0
// The choke point: each resource is set to an attainable better value, the step is evaluated again, and the resource that
// shortens it most is named. Link classes double (the next generation or twice the links); an oversubscribed fabric
// becomes non-blocking; kernels reach the rate that large shapes sustain; the host launches captured graphs.
#include <chokepoint/base/units.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <algorithm>
#include <fmt/format.h>

#include "groups.hpp"

namespace chokepoint::simulate {

namespace {

/// Words for the limiting link of the collective that matters most in this prediction.
std::string limiting_link(const parallel::Job& job, const Prediction& p) {
  const collective::Network network(job.cluster, job.accelerator);
  const Groups groups = groups_of(job, p.strategy);
  const double data = p.item(Bill::kDataGather) + p.item(Bill::kDataReduce);
  const bool tensor_matters = p.item(Bill::kTensor) > data;
  const collective::Group& group = tensor_matters ? groups.tensor : groups.data;
  if (group.ranks <= 1) return "";
  return std::string(network.cost(collective::Op::kAllReduce, 256e6, group).where);
}

struct Change {
  std::string kind;
  std::string where;
  std::string text;
  double step_time_s;
};

double with_scale(const parallel::Job& job, const Prediction& p, const collective::Scale& scale) {
  return Predictor(job, scale).evaluate(p.strategy).step_time_s;
}

void link_changes(const parallel::Job& job, const Prediction& p, std::vector<Change>& changes) {
  const std::string where = limiting_link(job, p);
  const auto named = [&where](const char* fallback) { return where.empty() ? std::string(fallback) : where; };
  collective::Scale scale;
  scale.nvlink = 2;
  changes.push_back({"nvlink", named("links between the GPUs of a host"), "GPU links twice as fast", with_scale(job, p, scale)});
  scale = {};
  scale.pcie = 2;
  changes.push_back({"pcie", named("PCIe inside the host"), "PCIe one generation newer", with_scale(job, p, scale)});
  if (job.gpus > job.cluster.gpus_per_host()) {
    scale = {};
    scale.nic = 2;
    changes.push_back({"nic", named("NICs of a host"), "twice the NIC bandwidth per host", with_scale(job, p, scale)});
    scale = {};
    scale.nic = scale.pcie = scale.fabric = 2;
    changes.push_back({"network", named("way between hosts"), "twice the bandwidth between hosts, PCIe and fabric included",
                       with_scale(job, p, scale)});
    if (job.cluster.fabric.oversubscription > 1) {
      scale = {};
      scale.fabric = job.cluster.fabric.oversubscription;
      changes.push_back({"fabric", fmt::format("leaf up-links, {:g}:1 oversubscribed", job.cluster.fabric.oversubscription),
                         "a non-blocking fabric", with_scale(job, p, scale)});
    }
  }
  scale = {};
  scale.latency = 0.5;
  changes.push_back({"latency", "start-up of collectives", "half the latency of each collective", with_scale(job, p, scale)});
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

void find_choke_points(const parallel::Job& job, Prediction& p) {
  std::vector<Change> changes;
  link_changes(job, p, changes);
  device_changes(p, changes);
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.step_time_s < b.step_time_s; });
  p.choke_points.clear();
  for (const Change& change : changes) {
    if (change.step_time_s > 0.998 * p.step_time_s) continue;  // below what anyone could measure
    p.choke_points.push_back({change.kind, change.where, change.text, change.step_time_s});
  }
}

}  // namespace chokepoint::simulate

// SPDX-License-Identifier: Apache-2.0
// The price of a fault: the job's step predicted twice, on the cluster as it is and as it would be without the fault.
#include <chokepoint/findings/findings.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <algorithm>

namespace chokepoint::findings {

using namespace topology;

namespace {

void scale(Bandwidth& bandwidth, double factor) {
  const double now = bandwidth.effective();
  if (now <= 0) return;
  bandwidth.measured_bytes_per_s = std::nullopt;
  bandwidth.negotiated_bytes_per_s = now * factor;
}

/// The cluster with the fault, and without it. What the files already show as degraded is mended; what they do not show
/// in the graph is put in.
struct Pair {
  Cluster with;
  Cluster without;
};

void scale_links(Cluster& cluster, LinkKind kind, const std::string& device, double factor) {
  for (HostGroup& group : cluster.hosts) {
    for (Link& link : group.host.links) {
      if (link.kind != kind && !(kind == LinkKind::kNvLink && link.kind == LinkKind::kXgmi)) continue;
      const Device& from = group.host.devices[static_cast<std::size_t>(link.from)];
      const Device& to = group.host.devices[static_cast<std::size_t>(link.to)];
      const bool gpu = from.kind == DeviceKind::kGpu || to.kind == DeviceKind::kGpu;
      const bool named = device.empty() || from.bus_id == device || to.bus_id == device;
      if (gpu && named) scale(link.bandwidth, factor);
    }
  }
}

/// Slots and links whose negotiated rate already carries the fault.
void mend_links(Cluster& cluster, LinkKind kind) {
  for (HostGroup& group : cluster.hosts) {
    for (Link& link : group.host.links) {
      if (link.kind == kind && link.bandwidth.specified_bytes_per_s) {
        link.bandwidth.negotiated_bytes_per_s = link.bandwidth.specified_bytes_per_s;
        link.bandwidth.measured_bytes_per_s = std::nullopt;
      }
    }
  }
}

bool degraded(const Cluster& cluster, LinkKind kind) {
  for (const HostGroup& group : cluster.hosts) {
    for (const Link& link : group.host.links) {
      if (link.kind == kind && link.bandwidth.negotiated_bytes_per_s && link.bandwidth.specified_bytes_per_s && *link.bandwidth.negotiated_bytes_per_s < 0.99 * *link.bandwidth.specified_bytes_per_s) return true;
    }
  }
  return false;
}

std::optional<Pair> apply(const Cluster& cluster, const Effect& effect) {
  Pair pair{cluster, cluster};
  pair.with.measured = {};
  pair.without.measured = {};
  const double share = std::clamp(effect.share, 0.01, 1.0);
  switch (effect.kind) {
    case EffectKind::kNone: return std::nullopt;
    case EffectKind::kNoGpuDirect:
      for (HostGroup& group : pair.with.hosts) group.host.gpudirect_rdma = false;
      for (HostGroup& group : pair.without.hosts) group.host.gpudirect_rdma = true;
      return pair;
    case EffectKind::kSockets:
      pair.with.fabric.transport = Transport::kTcp;
      if (pair.without.fabric.transport == Transport::kTcp) pair.without.fabric.transport = Transport::kRoce;
      return pair;
    case EffectKind::kNoPeerToPeer:
      for (HostGroup& group : pair.with.hosts) group.host.peer_to_peer = false;
      for (HostGroup& group : pair.without.hosts) group.host.peer_to_peer = true;
      return pair;
    case EffectKind::kNvLinks:
    case EffectKind::kGpuSlot: {
      const LinkKind kind = effect.kind == EffectKind::kNvLinks ? LinkKind::kNvLink : LinkKind::kPcie;
      if (degraded(cluster, kind)) mend_links(pair.without, kind);
      else scale_links(pair.with, kind, {}, share);
      return pair;
    }
    case EffectKind::kUplinks:
      if (pair.with.fabric.kind != FabricKind::kFatTree && pair.with.fabric.kind != FabricKind::kRailOptimized) return std::nullopt;
      pair.with.fabric.oversubscription = std::max(pair.with.fabric.oversubscription, 1 / share);
      pair.without.fabric.oversubscription = 1;
      return pair;
    case EffectKind::kNics:
      for (HostGroup& group : pair.with.hosts) {
        for (Device& device : group.host.devices) {
          if (device.kind == DeviceKind::kNic) device.line_bytes_per_s *= share;
        }
      }
      return pair;
  }
  return std::nullopt;
}

Result<double> step_time(parallel::Job job, const parallel::Strategy& strategy, Cluster cluster) {
  job.cluster = std::move(cluster);
  const simulate::Predictor predictor(job);
  TRY_INTO(const simulate::Prediction prediction, predictor.predict(strategy));
  return prediction.step_time_s;
}

/// The files' cluster when it can carry the job as it stands.
bool carries(const Cluster& cluster, const parallel::Job& job) {
  if (cluster.hosts.empty() || cluster.gpu_count() < job.gpus || cluster.gpus_per_host() == 0) return false;
  if (cluster.host_count() > 1 && cluster.fabric.kind == FabricKind::kNone) return false;
  for (const HostGroup& group : cluster.hosts) {
    if (group.host.accelerator != job.accelerator.name) return false;
    for (const int nic : group.host.nics()) {
      if (group.host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s <= 0 && cluster.host_count() > 1) return false;
    }
    if (cluster.host_count() > 1 && group.host.nics().empty()) return false;
  }
  return true;
}

}  // namespace

Result<bool> price(std::vector<Finding>& found, const assemble::Assembly& assembly, const parallel::Job& job, const parallel::Strategy& strategy) {
  const bool own = carries(assembly.cluster, job);
  const Cluster& cluster = own ? assembly.cluster : job.cluster;
  for (Finding& finding : found) {
    const std::optional<Pair> pair = apply(cluster, finding.effect);
    if (!pair) continue;
    TRY_INTO(const double with, step_time(job, strategy, pair->with));
    TRY_INTO(const double without, step_time(job, strategy, pair->without));
    finding.cost = Cost{with, without};
  }
  return own;
}

}  // namespace chokepoint::findings

// SPDX-License-Identifier: Apache-2.0
// Observed slower than predicted: which bandwidth would explain it? The links between hosts (or, on one host, between its
// GPUs) are scaled until the step takes as long as measured; bisection on a monotone function, 60 halvings.
#include <chokepoint/base/units.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <cmath>
#include <fmt/format.h>

#include "groups.hpp"

namespace chokepoint::simulate {

namespace {

double step_at(const parallel::Job& job, const Prediction& p, const Parameters& parameters, double factor, bool between_hosts) {
  collective::Scale scale;
  if (between_hosts) {
    scale.nic = factor;
    scale.fabric = factor;
  } else {
    scale.nvlink = factor;
    scale.pcie = factor;
  }
  parallel::Job scaled = job;
  auto& measured = scaled.cluster.measured;
  const auto slow = [factor](std::optional<double>& value) {
    if (value) *value *= factor;
  };
  if (between_hosts) {
    slow(measured.all_reduce);
    slow(measured.all_gather);
    slow(measured.reduce_scatter);
  } else {
    slow(measured.host_all_reduce);
    slow(measured.host_all_gather);
    slow(measured.host_reduce_scatter);
  }
  return Predictor(scaled, scale, parameters).evaluate(p.strategy).step_time_s;
}

std::string suspect_of(const Implied& implied, bool between_hosts) {
  if (implied.inside_band) return "nothing: the measurement lies inside the band of the prediction";
  if (implied.ratio < 1) return "the wiring or the software is better than described; check the accelerator's name and the overlap settings";
  if (!implied.explained_by_wires) {
    return "not the wires: no bandwidth explains it; look at host-bound launches, data loading, throttled clocks or a slow rank";
  }
  const double share = implied.bytes_per_s / implied.expected_bytes_per_s;
  const std::string part = fmt::format("{:.0f} % of what this wiring should give", 100 * share);
  if (!between_hosts) {
    return part + ": peer-to-peer off (NCCL_P2P_DISABLE, ACS, IOMMU) or NVLink not in use; check nvidia-smi topo -m and nvlink -s";
  }
  if (share < 0.25) {
    return part + ": transport first (sockets instead of RDMA: NCCL_DEBUG=INFO, line 'Using network'), then one NIC of many (NCCL_IB_HCA)";
  }
  if (share < 0.65) return part + ": GPUDirect RDMA absent (no GDRDMA in the NCCL log), ACS, or half of the NICs unused";
  return part + ": congestion or an oversubscribed fabric; measure all_reduce over these hosts";
}

}  // namespace

Implied implied_bandwidth(const parallel::Job& job, const Prediction& p, double measured_s, const Parameters& parameters) {
  Implied out;
  out.measured_step_time_s = measured_s;
  out.ratio = measured_s / p.step_time_s;
  out.inside_band = measured_s >= p.step_time_low_s && measured_s <= p.step_time_high_s;
  const bool between_hosts = job.gpus > job.cluster.gpus_per_host();
  const collective::Network network(job.cluster, job.accelerator, {}, parameters.collective);
  if (between_hosts) {
    out.link = "one host into the fabric";
    out.expected_bytes_per_s = network.host_egress_bytes_per_s();
  } else {
    out.link = "one GPU to the others of its host";
    const int ranks = std::max(2, std::min(job.gpus, job.cluster.gpus_per_host()));
    out.expected_bytes_per_s = network.cost(collective::Op::kAllGather, 1e9, {ranks, ranks, 1}).peak_bus_bytes_per_s;
  }
  double low = 1e-4;
  double high = 1e3;
  if (step_at(job, p, parameters, high, between_hosts) < measured_s && step_at(job, p, parameters, low, between_hosts) > measured_s) {
    out.explained_by_wires = true;
    for (int i = 0; i < 60; ++i) {
      const double middle = std::sqrt(low * high);
      (step_at(job, p, parameters, middle, between_hosts) > measured_s ? low : high) = middle;
    }
    out.bytes_per_s = out.expected_bytes_per_s * std::sqrt(low * high);
  }
  out.suspect = suspect_of(out, between_hosts);
  return out;
}

}  // namespace chokepoint::simulate

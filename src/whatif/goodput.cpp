// SPDX-License-Identifier: Apache-2.0
// Expected wall time of one interval (Daly, Future Generation Computer Systems 22, 2006): failures are exponential, so
// a segment of t + C that must pass without one takes (e^(r (t + C)) - 1) / r on average, and every failure adds a
// restart that itself may fail, e^(rR).
#include <algorithm>
#include <chokepoint/model/model.hpp>
#include <chokepoint/whatif/goodput.hpp>
#include <cmath>

namespace chokepoint::whatif {

namespace {

constexpr double kDay = 86400;
constexpr int kMostSpares = 100000;

/// Hosts that stand by for those in repair, a Poisson variable of this mean, and how often they are too few: as given, or
/// as many as make useful time cheapest, (hosts + spares) / (1 - lacking). Each further spare costs the same and helps less.
struct Spares {
  int count = 0;
  double lacking = 0;
};
Spares spares_for(double mean, double hosts, std::optional<int> given) {
  if (mean <= 0) return {given.value_or(0), 0};
  double probability = std::exp(-std::min(mean, 700.0));
  double below = probability;
  int count = 0;
  const int last = given ? std::min(*given, kMostSpares) : kMostSpares;
  while (count < last) {
    const double next = probability * mean / (count + 1);
    // Below 1e-300 of the time the ratio of two costs is not a number: more spares help then.
    const bool cheaper = below < 1e-300 || (hosts + count + 1) * below < (hosts + count) * (below + next);
    if (!given && !cheaper) break;
    ++count;
    probability = next;
    below += probability;
  }
  return {count, std::clamp(1 - below, 0.0, 1.0)};
}

}  // namespace

double training_share(double interval_s, double checkpoint_s, double rate_per_s, double restart_s) {
  if (interval_s <= 0) return 0;
  if (rate_per_s <= 0) return interval_s / (interval_s + checkpoint_s);
  const double wall = std::exp(std::min(700.0, rate_per_s * restart_s)) *
                      std::expm1(std::min(700.0, rate_per_s * (interval_s + checkpoint_s))) / rate_per_s;
  return std::min(1.0, interval_s / wall);
}

double best_interval(double checkpoint_s, double rate_per_s) {
  if (rate_per_s <= 0 || checkpoint_s <= 0) return 0;
  // r t lies between 0, where the left side is above 1 for C > 0, and 1, where it is 0.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    const double left = std::exp(middle + std::min(700.0, rate_per_s * checkpoint_s)) * (1 - middle);
    (left > 1 ? low : high) = middle;
  }
  return (low + high) / 2 / rate_per_s;
}

Goodput goodput_of(const parallel::Job& job, const Failures& f) {
  Goodput out;
  const double per_host = std::max(1, job.cluster.gpus_per_host());
  const double hosts = std::max(1.0, std::ceil(job.gpus / per_host));
  const double rate = f.per_accelerator_hour * job.gpus / 3600;
  out.failures_per_day = rate * kDay;
  out.mean_time_between_failures_s = rate > 0 ? 1 / rate : 0;
  out.checkpoint_bytes = model::count_parameters(job.model).total * f.checkpoint_bytes_per_parameter;
  out.checkpoint_s = out.checkpoint_bytes / (f.storage_bytes_per_s_per_host * hosts);
  out.restart_s = f.restart_s + out.checkpoint_s;  // read back at the rate it was written
  out.young_daly_s = rate > 0 ? std::sqrt(2 * out.checkpoint_s / rate) : 0;
  out.best_interval_s = best_interval(out.checkpoint_s, rate);
  out.interval_s = f.interval_s.value_or(out.best_interval_s);
  if (rate <= 0) out.interval_s = f.interval_s.value_or(3600);
  const double share = training_share(out.interval_s, out.checkpoint_s, rate, out.restart_s);
  const Spares spares = spares_for(rate * f.hardware_share * f.repair_s, hosts, f.spare_hosts);
  out.spare_hosts = spares.count;
  out.fraction_waiting = spares.lacking;
  out.goodput = share * (1 - spares.lacking);
  out.fraction_checkpoint = out.goodput * out.checkpoint_s / std::max(out.interval_s, 1e-9);
  out.fraction_lost_work = std::max(0.0, 1 - out.fraction_waiting - out.goodput - out.fraction_checkpoint);
  return out;
}

std::vector<Parameter> goodput_parameters() {
  const Failures f;
  return {{"goodput.failures_per_accelerator_hour", f.per_accelerator_hour, "1/h",
           "Llama 3 (arXiv 2407.21783), table 5: 419 in 54 days on 16,384", ParameterKind::kPublished, 0},
          {"goodput.hardware_share", f.hardware_share, "",
           "Llama 3 (arXiv 2407.21783), section 3.3.4: about 78 % hardware", ParameterKind::kPublished, 0},
          {"goodput.restart_s", f.restart_s, "s", "MegaScale (NSDI 2024): detection and diagnosis under ten minutes",
           ParameterKind::kPublished, 0},
          {"goodput.repair_s", f.repair_s, "s", "a day", ParameterKind::kEstimate, 0},
          {"goodput.storage_bytes_per_s_per_host", f.storage_bytes_per_s_per_host, "B/s",
           "Llama 3 (arXiv 2407.21783), section 3.3.1: 2 TB/s sustained, 2,048 hosts", ParameterKind::kPublished, 0},
          {"goodput.checkpoint_bytes_per_parameter", f.checkpoint_bytes_per_parameter, "B",
           "16-bit weights, fp32 master, two moments", ParameterKind::kCounted, 0}};
}

}  // namespace chokepoint::whatif

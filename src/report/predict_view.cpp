// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/predict_view.hpp>

#include <algorithm>
#include <fmt/format.h>

#include "nearest_view.hpp"
#include "prediction_parts.hpp"

namespace chokepoint::report {

using simulate::Bill;
using simulate::Prediction;

namespace {

std::string bill_text(const Prediction& p, const Style& style) {
  std::string out = "Bill of the step\n";
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const double seconds = p.bill[static_cast<std::size_t>(i)];
    if (seconds <= 0) continue;
    const double share = seconds / p.step_time_s;
    out += fmt::format("  {} {} {:>5.1f} %", pad_right(simulate::name(static_cast<Bill>(i)), 12), pad_left(format_duration(seconds), 9), 100 * share);
    out += style.bars ? "  " + style.cyan(bar(share, 32)) + "\n" : "\n";
  }
  return out + fmt::format("  {} {}\n", pad_right("step", 12), pad_left(format_duration(p.step_time_s), 9));
}

std::string money_line(const parallel::Job& job, const Prediction& p) {
  if (!job.cluster.prices.accelerator_hour_usd) return "";
  const double per_hour = *job.cluster.prices.accelerator_hour_usd * job.gpus;
  const double per_step = per_hour * p.step_time_s / 3600;
  const double tokens = job.global_batch * job.sequence;
  return fmt::format("  {:.4f} USD per step, {:.0f} USD per billion tokens, {:.0f} USD per day\n", per_step, per_step / tokens * 1e9, per_hour * 24);
}

std::string implied_text(const simulate::Implied& implied, const Style& style) {
  std::string out = fmt::format("\nMeasured {}: {:.2f}x the prediction\n", format_duration(implied.measured_step_time_s), implied.ratio);
  if (implied.explained_by_wires) {
    out += fmt::format("  {} implied for {}\n  {} is what this wiring should give\n", style.bold(format_rate(implied.bytes_per_s)),
                       implied.link, format_rate(implied.expected_bytes_per_s));
  }
  std::string_view head = "  suspect: ";
  for (const std::string& line : wrapped(implied.suspect, style.width - 11)) {
    out += fmt::format("{}{}\n", head, line);
    head = "           ";
  }
  return out;
}

}  // namespace

std::string job_heading(const parallel::Job& job) {
  const int per_host = std::max(1, job.cluster.gpus_per_host());
  const int hosts = (job.gpus + per_host - 1) / per_host;
  const collective::Network network(job.cluster, job.accelerator);
  std::string out = fmt::format("{}, {} parameters \u00b7 {} x {} tokens a step \u00b7 {}\n", job.model.name,
                                format_billions(model::count_parameters(job.model).total), format_count(job.global_batch),
                                format_count(job.sequence), hardware::name(job.dtype));
  out += fmt::format("{} x {} on {} host{}", job.gpus, job.accelerator.name, hosts, hosts == 1 ? "" : "s");
  if (hosts > 1) {
    out += fmt::format(" \u00b7 {} a host over {}", format_rate(network.host_egress_bytes_per_s()), topology::name(job.cluster.fabric.transport));
  }
  const int inside = std::min(job.gpus, per_host);
  if (inside > 1) {
    const auto cost = network.cost(collective::Op::kAllReduce, 1e9, {inside, inside, 1});
    out += fmt::format("\nall-reduce inside a host {}, bound by the {}", format_rate(cost.peak_bus_bytes_per_s), cost.where);
  }
  return out + "\n";
}

std::string predict_text(const parallel::Job& job, const Prediction& p, const std::optional<simulate::Implied>& implied,
                         const Style& style, bool quiet, const Nearest& nearest) {
  std::string out;
  if (!quiet) out += job_heading(job) + fmt::format("{} \u00b7 {}\n\n", parallel::title(p.strategy), parallel::to_text(p.strategy));
  out += fmt::format("{}  {} \u00b1 {} % (80 % band {} .. {})\n", style.bold("Step"), style.bold(format_duration(p.step_time_s)), band_percent(p),
                     format_duration(p.step_time_low_s), format_duration(p.step_time_high_s));
  out += fmt::format("  {} tokens/s per GPU, {} in all\n  {} per GPU, MFU {:.3f}, HFU {:.3f} of {}\n", format_count(p.tokens_per_s_per_gpu),
                     format_count(p.tokens_per_s_per_gpu * job.gpus), format_flop_rate(p.model_flops_per_s_per_gpu), p.mfu, p.hfu,
                     format_flop_rate(job.accelerator.peak(job.dtype)));
  out += nearest_line(nearest.runs);
  out += money_line(job, p);
  if (implied) out += implied_text(*implied, style);
  if (quiet) return out;
  out += "\n" + choke_text(p, style);
  out += "\n" + bill_text(p, style);
  out += "\n" + ladder_text(p, job.accelerator.peak(job.dtype) * job.gpus, style);
  out += "\n" + memory_text(p, style);
  if (nearest.listed) out += nearest_list(nearest.runs, style);
  return out + assumptions_text(p.assumptions, style);
}

}  // namespace chokepoint::report

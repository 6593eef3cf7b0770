// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/predict_view.hpp>
#include <chokepoint/report/words.hpp>

#include <algorithm>
#include <fmt/format.h>

#include "nearest_view.hpp"
#include "prediction_parts.hpp"

namespace chokepoint::report {

using simulate::Bill;
using simulate::Prediction;

namespace {

std::string bill_text(const Prediction& p, const Style& style) {
  std::string out = style.say("Bill of the step") + "\n";
  int columns = 12;
  for (int i = 0; i < simulate::kBillCount; ++i) columns = std::max(columns, display_width(style.say(simulate::name(static_cast<Bill>(i)))));
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const double seconds = p.bill[static_cast<std::size_t>(i)];
    if (seconds <= 0) continue;
    const double share = seconds / p.step_time_s;
    out += fmt::format("  {} {} {:>5.1f} %", pad_right(style.say(simulate::name(static_cast<Bill>(i))), columns), pad_left(format_duration(seconds), 9), 100 * share);
    out += style.bars ? "  " + style.cyan(bar(share, 32)) + "\n" : "\n";
  }
  return out + fmt::format("  {} {}\n", pad_right(style.say("step"), columns), pad_left(format_duration(p.step_time_s), 9));
}

std::string money_line(const parallel::Job& job, const Prediction& p, const Style& style) {
  if (!job.cluster.prices.accelerator_hour_usd) return "";
  const double per_hour = *job.cluster.prices.accelerator_hour_usd * job.gpus;
  const double per_step = per_hour * p.step_time_s / 3600;
  const double tokens = job.global_batch * job.sequence;
  return "  " + style.say("{} USD per step, {} USD per billion tokens, {} USD per day",
                          {fmt::format("{:.4f}", per_step), fmt::format("{:.0f}", per_step / tokens * 1e9), fmt::format("{:.0f}", per_hour * 24)}) + "\n";
}

std::string implied_text(const simulate::Implied& implied, const Style& style) {
  std::string out = "\n" + style.say("Measured {}: {}x the prediction", {format_duration(implied.measured_step_time_s), fmt::format("{:.2f}", implied.ratio)}) + "\n";
  if (implied.explained_by_wires) {
    out += "  " + style.say("{} implied for {}", {style.bold(format_rate(implied.bytes_per_s)), style.say(implied.link)}) + "\n  " +
           style.say("{} is what this wiring should give", {format_rate(implied.expected_bytes_per_s)}) + "\n";
  }
  const std::string title = "  " + style.say("suspect") + ": ";
  const int indent = display_width(title);
  bool first = true;
  for (const std::string& line : wrapped(style.say(implied.suspect), style.width - indent)) {
    out += (first ? title : std::string(static_cast<std::size_t>(indent), ' ')) + line + "\n";
    first = false;
  }
  return out;
}

}  // namespace

std::string job_heading(const parallel::Job& job, const Words& words) {
  const int per_host = std::max(1, job.cluster.gpus_per_host());
  const int hosts = (job.gpus + per_host - 1) / per_host;
  const collective::Network network(job.cluster, job.accelerator);
  std::string out = words("{}, {} parameters \u00b7 {} x {} tokens a step \u00b7 {}",
                          {job.model.name, format_billions(model::count_parameters(job.model).total), format_count(job.global_batch), format_count(job.sequence),
                           std::string(hardware::name(job.dtype))}) + "\n";
  out += words(hosts == 1 ? "{} x {} on {} host" : "{} x {} on {} hosts", {std::to_string(job.gpus), job.accelerator.name, std::to_string(hosts)});
  if (hosts > 1) {
    out += words(" \u00b7 {} a host over {}", {format_rate(network.host_egress_bytes_per_s()), std::string(topology::name(job.cluster.fabric.transport))});
  }
  const int inside = std::min(job.gpus, per_host);
  if (inside > 1) {
    const auto cost = network.cost(collective::Op::kAllReduce, 1e9, {inside, inside, 1});
    out += "\n" + words("all-reduce inside a host {}, bound by the {}", {format_rate(cost.peak_bus_bytes_per_s), words(cost.where)});
  }
  return out + "\n";
}

std::string predict_text(const parallel::Job& job, const Prediction& p, const std::optional<simulate::Implied>& implied,
                         const Style& style, bool quiet, const Nearest& nearest) {
  const Words& words = style.words == nullptr ? Words::english() : *style.words;
  std::string out;
  if (!quiet) out += job_heading(job, words) + fmt::format("{} \u00b7 {}\n\n", parallel::title(p.strategy), parallel::to_text(p.strategy));
  if (!quiet && p.strategy.zero == 2 && p.strategy.sharder == parallel::Sharder::kDeepspeed) {
    const std::string note = style.say("ZeRO-2 is DeepSpeed's: gradients reduced in each micro-step, whole in memory until then (PyTorch's: fsdp=grad-op)");
    out.insert(out.size() - 1, titled("", note, style));
  }
  out += fmt::format("{}  {} \u00b1 {} %", style.bold(style.say("Step")), style.bold(format_duration(p.step_time_s)), band_percent(p)) +
         style.say(" (80 % band {} .. {})", {format_duration(p.step_time_low_s), format_duration(p.step_time_high_s)}) + "\n";
  out += "  " + style.say("{} tokens/s per GPU, {} in all", {format_count(p.tokens_per_s_per_gpu), format_count(p.tokens_per_s_per_gpu * job.gpus)}) + "\n  " +
         style.say("{} per GPU, MFU {}, HFU {} of {}", {format_flop_rate(p.model_flops_per_s_per_gpu), fmt::format("{:.3f}", p.mfu), fmt::format("{:.3f}", p.hfu),
                                                        format_flop_rate(job.accelerator.peak(job.dtype))}) + "\n";
  if (const std::string near = nearest_line(nearest.runs); !near.empty()) out += "  " + style.say(trim(near)) + "\n";
  out += money_line(job, p, style);
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

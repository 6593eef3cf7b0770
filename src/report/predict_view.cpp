// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/predict_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::report {

namespace {

using simulate::Bill;
using simulate::Prediction;

int band_percent(const Prediction& p) {
  return static_cast<int>(std::lround(100 * (p.step_time_high_s / p.step_time_s - 1)));
}

std::string memory_column(const Prediction& p, int cells) {
  const double used = p.memory.reserved_bytes;
  const double capacity = p.memory.capacity_bytes;
  const std::string filled = bar(capacity > 0 ? used / capacity : 0, cells);
  return fmt::format("{:>5.1f} / {:.1f} GiB  {}", used / kGiB, capacity / kGiB, filled);
}

std::string indent_lines(const std::string& title, const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += fmt::format("{} {}\n", pad_right(i == 0 ? title : "", 13), lines[i]);
  }
  return out;
}

std::string change_text(const Prediction& p, const simulate::ChokePoint& c) {
  const double gain = 100 * (1 - c.step_time_if_changed_s / p.step_time_s);
  return fmt::format("{}: {} ({:+.0f} %)", c.change, format_duration(c.step_time_if_changed_s), -gain);
}

std::string choke_text(const Prediction& p, const Style& style) {
  if (p.choke_points.empty()) {
    return indent_lines("Choke point", {"none stands out: no single better resource shortens the step by more than 0.2 %"});
  }
  std::vector<std::string> lines;
  lines.push_back(style.bold(p.choke_points[0].where) + " \u00b7 " + change_text(p, p.choke_points[0]));
  for (std::size_t i = 1; i < std::min<std::size_t>(4, p.choke_points.size()); ++i) {
    lines.push_back(fmt::format("{} {} \u00b7 {}", i == 1 ? "then" : "    ", p.choke_points[i].where, change_text(p, p.choke_points[i])));
  }
  return indent_lines("Choke point", lines);
}

std::string ladder_text(const Prediction& p, double peak_total, const Style& style) {
  std::string out;
  double before = 1.0;
  for (std::size_t i = 0; i < p.ladder.size(); ++i) {
    const simulate::Rung& rung = p.ladder[i];
    if (i > 0 && before - rung.fraction < 0.0005) continue;
    const std::string label = i == 0 ? fmt::format("peak {}", format_flop_rate(peak_total)) : rung.name;
    const std::string loss = i == 0 ? "" : fmt::format("{:>6.1f} %", -100 * (before - rung.fraction));
    const std::string filled = bar(rung.fraction, 32);
    out += fmt::format("{:>6.1f} %  {} {} {}\n", 100 * rung.fraction, pad_right(label, 36), pad_right(loss, 9), style.cyan(filled));
    before = rung.fraction;
  }
  return out;
}

std::string bill_text(const Prediction& p, const Style& style) {
  std::string out;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const double seconds = p.bill[static_cast<std::size_t>(i)];
    if (seconds <= 0) continue;
    const double share = seconds / p.step_time_s;
    out += fmt::format("  {} {} {:>5.1f} %  {}\n", pad_right(simulate::name(static_cast<Bill>(i)), 12),
                       pad_left(format_duration(seconds), 9), 100 * share, style.cyan(bar(share, 32)));
  }
  out += fmt::format("  {} {}\n", pad_right("step", 12), pad_left(format_duration(p.step_time_s), 9));
  return out;
}

std::string memory_text(const Prediction& p, const Style& style) {
  std::string out;
  for (const parallel::MemoryPart& part : p.memory.parts) {
    if (part.bytes == 0) continue;
    out += fmt::format("  {} {:>8.2f} GiB\n", pad_right(part.name, 36), part.bytes / kGiB);
  }
  const double margin = p.memory.capacity_bytes - p.memory.reserved_bytes;
  const bool tight = margin >= 0 && margin < 0.07 * p.memory.capacity_bytes;
  const std::string verdict = margin < 0 ? style.red("does not fit") : tight ? style.yellow("tight") : style.green("fits");
  out += fmt::format("  {} {:>8.2f} GiB of {:.1f} usable: {} ({}{:.1f} GiB {}), stage {}\n", pad_right("reserved", 36),
                     p.memory.reserved_bytes / kGiB, p.memory.capacity_bytes / kGiB, verdict, "", std::abs(margin) / kGiB,
                     margin < 0 ? "too much" : "free", p.memory.stage);
  return out;
}

std::string assumptions_text(const std::vector<Note>& notes, const Style& style) {
  std::string out;
  for (const Note& note : notes) {
    const std::string place = note.pos.file.empty() ? "" : fmt::format(" ({}{})", note.pos.file, note.pos.line > 0 ? fmt::format(":{}", note.pos.line) : "");
    out += style.dim(fmt::format("  - {}{}", note.text, place)) + "\n";
  }
  return out;
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
    out += fmt::format("  implied bandwidth of {}: {} (this wiring should give {})\n", implied.link,
                       style.bold(format_rate(implied.bytes_per_s)), format_rate(implied.expected_bytes_per_s));
  }
  return out + fmt::format("  suspect: {}\n", implied.suspect);
}

/// Two candidates whose difference is smaller than what the model can tell apart. Both run on the same machine, so only
/// the classes in which they differ carry error: 15 % of the difference of each class, compute's 4 %.
bool tied(const Prediction& a, const Prediction& b) {
  double variance = 0;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const double larger = std::max(a.bill[index], b.bill[index]);
    const bool arithmetic = i == static_cast<int>(Bill::kCompute) || i == static_cast<int>(Bill::kRecompute);
    const double sigma = arithmetic ? 0.04 * std::abs(a.bill[index] - b.bill[index]) + 0.005 * larger : 0.15 * larger;
    variance += sigma * sigma;
  }
  return std::abs(a.step_time_s - b.step_time_s) < 1.28 * std::sqrt(variance);
}

}  // namespace

std::string job_heading(const parallel::Job& job) {
  const int hosts = (job.gpus + std::max(1, job.cluster.gpus_per_host()) - 1) / std::max(1, job.cluster.gpus_per_host());
  const collective::Network network(job.cluster, job.accelerator);
  std::string wires;
  if (hosts > 1) {
    wires = fmt::format(" \u00b7 {} per host over {}", format_rate(network.host_egress_bytes_per_s()), topology::name(job.cluster.fabric.transport));
  }
  const int inside = std::min(job.gpus, job.cluster.gpus_per_host());
  if (inside > 1) {
    const auto cost = network.cost(collective::Op::kAllReduce, 1e9, {inside, inside, 1});
    wires += fmt::format(" \u00b7 {} all-reduce in the host ({})", format_rate(cost.peak_bus_bytes_per_s), cost.where);
  }
  return fmt::format("{}, {} parameters \u00b7 {} x {} on {} host{}{}\nbatch {} x {} tokens \u00b7 {}\n", job.model.name,
                     format_billions(model::count_parameters(job.model).total), job.gpus, job.accelerator.name, hosts,
                     hosts == 1 ? "" : "s", wires, format_count(job.global_batch), format_count(job.sequence), hardware::name(job.dtype));
}

std::string predict_text(const parallel::Job& job, const Prediction& p, const std::optional<simulate::Implied>& implied,
                         const Style& style, bool quiet) {
  std::string out;
  if (!quiet) out += job_heading(job) + fmt::format("strategy {}\n\n", parallel::to_text(p.strategy));
  out += fmt::format("{}  {} \u00b1 {} % (80 % band {} .. {})\n", style.bold("Step"), style.bold(format_duration(p.step_time_s)), band_percent(p),
                     format_duration(p.step_time_low_s), format_duration(p.step_time_high_s));
  out += fmt::format("  {} tokens/s per GPU, {} tokens/s in all, {} per GPU, MFU {:.3f}, HFU {:.3f} of {}\n",
                     format_count(p.tokens_per_s_per_gpu), format_count(p.tokens_per_s_per_gpu * job.gpus),
                     format_flop_rate(p.model_flops_per_s_per_gpu), p.mfu, p.hfu, format_flop_rate(job.accelerator.peak(job.dtype)));
  out += money_line(job, p);
  if (implied) out += implied_text(*implied, style);
  if (quiet) return out;
  out += "\n" + choke_text(p, style);
  out += "\nBill of the step\n" + bill_text(p, style);
  out += "\nFrom peak to useful work\n" + ladder_text(p, job.accelerator.peak(job.dtype) * job.gpus, style);
  out += "\nMemory of the fullest rank\n" + memory_text(p, style);
  if (!p.assumptions.empty()) out += fmt::format("\nAssumed ({})\n", p.assumptions.size()) + assumptions_text(p.assumptions, style);
  return out;
}

namespace {

std::string candidate_table(const plan::Plan& plan, const Style& style) {
  std::size_t width = 8;
  for (const Prediction& p : plan.candidates) width = std::max(width, parallel::to_text(p.strategy).size());
  std::string out = fmt::format(" #  {} {} {} {}  {}\n", pad_right("strategy", static_cast<int>(width)), pad_left("step", 16),
                                pad_left("tok/s/GPU", 10), pad_left("MFU", 6), "memory");
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const Prediction& p = plan.candidates[i];
    const std::string step = fmt::format("{} \u00b1 {:>2} %", format_duration(p.step_time_s), band_percent(p));
    const std::string tie = i > 0 && tied(plan.candidates[0], p) ? style.dim("  tie") : "";
    const std::string line = fmt::format("{:>2}  {} {} {} {:>6.3f}  {}", i + 1, pad_right(parallel::to_text(p.strategy), static_cast<int>(width)),
                                         pad_left(step, 16), pad_left(format_count(p.tokens_per_s_per_gpu), 10), p.mfu, pad_right(memory_column(p, 8), 27));
    out += (i == 0 ? style.bold(line) : line) + tie + "\n";
  }
  return out;
}

std::string nothing_fits(const plan::Plan& plan, const Style& style) {
  std::string out = style.red("Nothing fits.") + "\n";
  if (plan.closest) {
    out += fmt::format("Closest: {} needs {} of {} usable\n", parallel::to_text(plan.closest->strategy),
                       format_bytes(plan.closest->memory.reserved_bytes), format_bytes(plan.closest->memory.capacity_bytes));
    out += memory_text(*plan.closest, style);
  }
  return out + "\n" + indent_lines("It would fit", plan.would_fit);
}

}  // namespace

std::string plan_text(const parallel::Job& job, const plan::Plan& plan, const Style& style, bool quiet) {
  std::string out = quiet ? "" : job_heading(job) + "\n";
  if (plan.candidates.empty()) return out + nothing_fits(plan, style);
  out += candidate_table(plan, style);
  out += style.dim(fmt::format("    {} legal layouts: {} fit in memory and were evaluated, best proved by exhaustion", format_count(static_cast<double>(plan.enumerated)),
                               format_count(static_cast<double>(plan.evaluated)))) + "\n";
  if (quiet) return out;
  const Prediction& best = plan.candidates.front();
  out += "\n" + choke_text(best, style);
  out += "\nFrom peak to useful work\n" + ladder_text(best, job.accelerator.peak(job.dtype) * job.gpus, style);
  if (!plan.why_not.empty()) out += "\n" + indent_lines("Why not", plan.why_not);
  if (!best.assumptions.empty()) out += fmt::format("\nAssumed ({})\n", best.assumptions.size()) + assumptions_text(best.assumptions, style);
  out += fmt::format("\nExplain it: chokepoint predict ... --strategy \"{}\"\n", parallel::to_text(best.strategy));
  return out;
}

}  // namespace chokepoint::report

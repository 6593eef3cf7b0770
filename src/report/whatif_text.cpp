// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/predict_view.hpp>
#include <chokepoint/report/whatif_view.hpp>
#include <chokepoint/report/words.hpp>
#include <cmath>
#include <fmt/format.h>

#include "prediction_parts.hpp"
#include "table.hpp"
#include "whatif_parts.hpp"

namespace chokepoint::report {

using simulate::Prediction;
using namespace whatif;

namespace {

/// A price older than this is called stale.
constexpr long kStaleDays = 365;

std::string memory_words(const Prediction& p, const Style& style) {
  const parallel::Verdict verdict = p.memory.verdict();
  const std::string text = fmt::format("{:.0f}/{:.0f} GiB, {}", p.memory.needed_bytes / kGiB,
                                       p.memory.capacity_bytes / kGiB, style.say(parallel::name(verdict)));
  return verdict == parallel::Verdict::kDoesNotFit ? style.red(text)
         : verdict == parallel::Verdict::kTight    ? style.yellow(text)
                                                   : text;
}

std::string choke_words(const Prediction& p) {
  if (p.choke_points.empty()) return "none stands out";
  const simulate::ChokePoint& c = p.choke_points.front();
  return fmt::format("{} ({:+.0f} % with {})", c.where, 100 * (c.step_time_if_changed_s / p.step_time_s - 1), c.change);
}

std::string rate_words(const Prediction& p, const parallel::Job& job) {
  return fmt::format("{} tokens/s, MFU {:.3f}", format_count(std::round(p.tokens_per_s_per_gpu * job.gpus)), p.mfu);
}

std::string now_section(const Study& study, const Style& style) {
  const Baseline& base = study.baseline;
  const Prediction& p = *base.own.prediction;
  const bool measured = base.scenario.real.measured.has_value();
  std::string out = style.bold(fmt::format(
                        "{} {} {}, {}", pad_right(style.say("Now"), 13), format_duration(p.step_time_s),
                        measured ? style.say("as the traces show it") : fmt::format("\u00b1{} %", band_percent(p)),
                        style.say(rate_words(p, base.scenario.job)))) +
                    "\n";
  out += said_line("  strategy", parallel::title(p.strategy) + "; " + memory_words(p, style), style);
  out += said_line("  choke point", choke_words(p), style);
  for (const Note& note : base.scenario.notes) out += said_line("  note", note.text, style);
  if (study.money) {
    out += said_line("  money",
                  fmt::format("{} USD a step, {} per billion tokens, {} a day", usd(study.money->usd_per_step),
                              usd(study.money->usd_per_billion_tokens), usd(study.money->usd_per_day)),
                  style);
  }
  if (!base.strategy_given || !base.best) return out;
  const Prediction& best = *base.best.prediction;
  const Ratio ratio = paired(base.scenario, p, base.scenario, best);
  if (ratio.value < 0.995) {
    std::string words = fmt::format("alone give {}: {} with {}", ratio_words(ratio), format_duration(best.step_time_s),
                                    parallel::title(best.strategy));
    if (study.best_money)
      words += fmt::format(", {} USD per billion tokens", usd(study.best_money->usd_per_billion_tokens));
    out += said_line("  settings", words, style);
  }
  return out;
}

std::string state_line(const char* title, const State& state, const std::optional<Ratio>& ratio,
                       const parallel::Job& job, const Style& style) {
  if (!state) return titled(style.say(title), style.red(style.say("no answer")) + ": " + style.say(state.why_not), style);
  const Prediction& p = *state.prediction;
  std::string words =
      fmt::format("{}, step {}; {}", format_duration(p.step_time_s), ratio_words(*ratio), rate_words(p, job));
  const bool nothing = std::abs(ratio->value - 1) < 5e-4;
  if (!nothing && !ratio->told_apart()) words += " (cannot be told from no change)";
  return said_line(title, words, style) + said_line("", parallel::title(p.strategy) + "; " + memory_words(p, style), style);
}

std::string bought_words(const BillOfMaterials& bought, const Style& style) {
  std::string out;
  for (const Item& item : bought.items) {
    out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", format_count(item.count), style.say(item.what));
  }
  return out;
}

std::string money_lines(const Study& study, const PricedAnswer& a, const Style& style) {
  if (!a.best_money || !study.money) {
    return a.price_missing.empty() ? "" : said_line("  money", a.price_missing + "; --price or --prices gives one", style);
  }
  std::string words = fmt::format("{} USD per billion tokens now", usd(study.money->usd_per_billion_tokens));
  if (a.kept_money) words += fmt::format(", {} with the same plan", usd(a.kept_money->usd_per_billion_tokens));
  words += fmt::format(", {} re-planned; {} -> {} USD a day", usd(a.best_money->usd_per_billion_tokens),
                       usd(study.money->usd_per_day), usd(a.best_money->usd_per_day));
  std::string out = said_line("  money", words, style);
  if (!a.bought.items.empty()) {
    std::string words = bought_words(a.bought, style);
    if (a.bought.usd() > 0) words += fmt::format(": {} USD", usd(a.bought.usd()));
    if (!a.bought.missing.empty())
      words += fmt::format(" without {}, which the list does not price", fmt::join(a.bought.missing, ", "));
    out += said_line("  bought", words, style);
    if (!a.spared.items.empty() && a.spared.usd() > 0)
      out += said_line("", fmt::format("instead of {}: {} USD", bought_words(a.spared, style), usd(a.spared.usd())), style);
    if (a.payback && a.spared.usd() > a.bought.usd()) {
      const double saved = a.payback->saved_usd_per_day;
      out += said_line("  cheaper parts",
                    fmt::format("{} USD less to buy; the same work costs {} USD a day {}", usd(a.spared.usd() - a.bought.usd()),
                                usd(std::abs(saved)), saved < 0 ? "more" : "less"),
                    style);
    } else if (a.payback && a.bought.usd() > 0) {
      out += said_line("  payback",
                    a.payback->days ? fmt::format("{} days at {} USD a day saved on the same work",
                                                  usd(*a.payback->days), usd(a.payback->saved_usd_per_day))
                                    : "never: the same work gets no cheaper",
                    style);
    }
  }
  if (a.break_even) {
    out +=
        said_line("  break-even",
               fmt::format("an accelerator-hour up to {} USD, or parts up to {} USD over {:g} years, equal staying",
                           usd(a.break_even->usd_per_hour_after), usd(a.break_even->purchase_usd), a.break_even->years),
               style);
  }
  return out;
}

std::string answer_section(const Study& study, const PricedAnswer& a, const Style& style) {
  std::string title;
  for (const Change& change : a.answer.changes) title += (title.empty() ? "" : " + ") + change.text;
  std::string out = "\n" + style.bold(title) + "\n";
  const parallel::Job& job = a.answer.scenario.job;
  out += state_line("  same plan", a.answer.kept, a.answer.kept_ratio, job, style);
  if (!a.answer.why_same.empty()) out += said_line("", "nothing changes: " + a.answer.why_same, style);
  const bool same =
      a.answer.kept && a.answer.best && a.answer.kept.prediction->strategy == a.answer.best.prediction->strategy;
  out += same ? said_line("  re-planned", "the same strategy stays best", style)
              : state_line("  re-planned", a.answer.best, a.answer.best_ratio, job, style);
  if (!same && !a.answer.given_up.empty())
    out += said_line("", fmt::format("instead of {}", fmt::join(a.answer.given_up, " ")), style);
  if (a.answer.best) out += said_line("  choke point", choke_words(*a.answer.best.prediction), style);
  out += money_lines(study, a, style);
  for (const Note& note : a.answer.scenario.notes) out += said_line("  note", note.text, style);
  return out;
}

std::string ladder_section(const Study& study, const Style& style) {
  std::string out =
      "\n" + style.say(study.money ? "From peak to useful work, USD a day lost on each rung" : "From peak to useful work") +
      "\n";
  double before = 1;
  for (std::size_t i = 0; i < study.ladder.size(); ++i) {
    const PricedRung& rung = study.ladder[i];
    if (i > 0 && before - rung.fraction < 0.0005) continue;
    out += fmt::format("{:>6.1f} %  {} {}", 100 * rung.fraction, pad_right(style.say(rung.name), 38),
                       i == 0 ? "" : pad_left(fmt::format("{:.1f}", -100 * (before - rung.fraction)), 6));
    if (rung.usd_per_day && i > 0) out += pad_left(usd(*rung.usd_per_day), 12);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
    before = rung.fraction;
  }
  return out;
}

std::string prices_section(const Study& study, std::string_view today, const Style& style) {
  std::string out = "\n";
  if (!study.money) {
    if (study.price_missing.empty()) return "";
    return out + said_line("Prices", study.price_missing + "; --price 2.50 or --prices FILE gives one", style);
  }
  const HourlyPrice& price = study.money->price;
  std::string words = price_words(price);
  if (!price.tag.source.empty()) words += ". Source: " + price.tag.source;
  out += said_line("Prices", words, style);
  const auto age = today.empty() ? std::nullopt : days_between(price.tag.date, today);
  if (age && *age > kStaleDays)
    out += titled(
        "", style.yellow(style.say(fmt::format("this price is {} days old: --prices FILE or --price replaces it", *age))),
        style);
  return out + said_line("", money_meaning(study), style);
}

}  // namespace

std::string said_line(std::string_view title, std::string_view text, const Style& style) {
  return titled(title.empty() ? std::string() : style.say(title), style.say(text), style);
}

std::string money_meaning(const Study& study) {
  const Goodput& g = study.goodput;
  return fmt::format(
      "Money counts useful work: failures and checkpoints (goodput {:.1f} %) and {} spare host{} are in the price of a step, of tokens, of "
      "a run, in savings and break-even. A day costs what is paid for, useful or not. Step times and tokens/s are those while it trains.",
      100 * g.goodput, g.spare_hosts, g.spare_hosts == 1 ? "" : "s");
}

std::string usd(double amount) {
  const double size = std::abs(amount);
  if (size >= 1e9) return fmt::format("{:.3g} B", amount / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g} M", amount / 1e6);
  if (size >= 1000) return format_count(std::round(amount));
  return size >= 100 ? fmt::format("{:.0f}", amount) : fmt::format("{:.3g}", amount);
}

std::string price_words(const HourlyPrice& price) {
  std::string words = fmt::format("{} USD an accelerator-hour, {}", usd(price.usd), price.what);
  if (!price.tag.date.empty()) words += ", " + price.tag.date;
  if (price.tag.estimate) words += ", an estimate";
  return words;
}

std::string ratio_words(const Ratio& ratio) {
  // What rounds to nothing has no sign.
  const auto percent = [](double value) { return std::abs(value - 1) < 5e-4 ? 0.0 : 100 * (value - 1); };
  if (std::abs(percent(ratio.value)) >= 200)
    return fmt::format("x{:.2f} ({:.2f} .. {:.2f})", ratio.value, ratio.low, ratio.high);
  return fmt::format("{:+.1f} % ({:+.1f} .. {:+.1f})", percent(ratio.value), percent(ratio.low), percent(ratio.high));
}

std::string change_words_text(const Style& style) {
  std::string out = "Changes for --change; x2, x0.5 and +10 % are factors of what there is\n";
  for (const ChangeWord& word : change_words()) {
    out += fmt::format("  {} {}\n", pad_right(word.example, 36), style.dim(word.meaning));
  }
  out += fmt::format("  {} {}\n", pad_right("GPU5.pcie=x0.5, NIC0.rate=200 Gb/s", 36),
                     style.dim("one device of the wiring: its nvlink, pcie, nic-slot ... or rate"));
  return out + fmt::format("  {} {}\n", pad_right("zero=1, fsdp, recompute=full ...", 36),
                           style.dim("every word of a strategy (docs/formats/job.md)"));
}

std::string whatif_text(const Study& study, const Style& style, bool quiet, std::string_view today) {
  std::string out =
      quiet ? "" : job_heading(study.baseline.scenario.job, style.words ? *style.words : Words::english()) + "\n";
  if (!study.left_out.empty()) {
    out += style.yellow(style.say("Stopped: what follows was done so far.")) + "\n";
    for (const std::string& part : study.left_out) out += said_line("  left out", part, style);
    out += "\n";
  }
  out += now_section(study, style);
  out += comparison_section(study, style);
  for (const PricedAnswer& answer : study.answers) out += answer_section(study, answer, style);
  if (study.sensitivities) out += sensitivity_section(study, style);
  if (!study.scale.empty()) out += scale_section(study, style);
  if (study.break_even) out += break_even_section(study, style);
  if (study.deadline || study.options.scaling.tokens > 0) out += money_section(study, style);
  if (quiet) return out;
  out += ladder_section(study, style);
  out += prices_section(study, today, style);
  return out + assumptions_text(study.baseline.own.prediction->assumptions, style);
}

}  // namespace chokepoint::report

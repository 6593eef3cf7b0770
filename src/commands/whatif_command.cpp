// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/progress.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/report/whatif_pages.hpp>
#include <chokepoint/report/whatif_view.hpp>
#include <chokepoint/trace/trace.hpp>
#include <chokepoint/whatif/study.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>

#include "commands.hpp"
#include "interrupt.hpp"
#include "job_options.hpp"
#include "profile_option.hpp"
#include "report_files.hpp"

namespace chokepoint::commands {

namespace {

struct WhatIfOptions {
  ReportFiles files;
  JobOptions job;
  std::string profile;
  std::vector<std::string> changes, imperfections, traces;
  bool list_changes = false, each = false, alternatives = false, sensitivities = false, grow_batch = false,
       break_even = false, owned = false;
  std::string scale, prices, provider_class, tokens, by, checkpoint_interval, as_of;
  std::optional<double> price, failure_hours;
  std::optional<int> spares;
  double efficiency = 90;
};

/// "15T", "300B", "1.5e12".
Result<double> parse_tokens(const std::string& text) {
  std::string number(trim(text));
  double unit = 1;
  if (!number.empty()) {
    const char last = number.back();
    const double units[] = {1e3, 1e6, 1e9, 1e12};
    const std::size_t at = std::string_view("kMBT").find(last);
    if (at != std::string_view::npos) {
      unit = units[at];
      number.pop_back();
    }
  }
  const auto value = to_number(trim(number));
  if (!value || !(*value * unit >= 1 && *value * unit <= 1e18)) {
    return fail("--tokens is '" + text + "', expected a count such as 15T, 300B or 1.5e12");
  }
  return *value * unit;
}

/// "30d", or any duration with a unit.
Result<double> parse_days(const std::string& text) {
  const std::string_view trimmed = trim(text);
  if (trimmed.ends_with('d')) {
    const auto days = to_number(trim(trimmed.substr(0, trimmed.size() - 1)));
    if (days && *days > 0 && *days < 1e6) return *days * 86400;
  }
  Result<double> value = parse_duration(trimmed);
  if (value && *value > 0) return value;
  return fail("'" + text + "' is no duration, expected days or hours such as 30d or 720 h");
}

Result<bool> read_scale(const std::string& text, whatif::ScaleOptions& out) {
  const std::size_t dots = text.find("..");
  const auto first = to_int(trim(text.substr(0, dots)));
  const auto last = dots == std::string::npos ? first : to_int(trim(text.substr(dots + 2)));
  if (!first || !last) return fail("--scale is '" + text + "', expected two counts of accelerators such as 8..16384");
  out.first = *first;
  out.last = *last;
  return true;
}

Result<bool> read_basis(const WhatIfOptions& o, whatif::Basis& basis) {
  const int given = (o.owned ? 1 : 0) + (o.price ? 1 : 0) + (o.provider_class.empty() ? 0 : 1);
  if (given > 1) return fail("--owned, --price and --rent are three ways to pay; expected one of them");
  if (o.owned) basis.kind = whatif::Basis::Kind::kOwned;
  if (!o.provider_class.empty()) basis.provider_class = o.provider_class;
  if (!o.price) return true;
  if (!(*o.price >= 0 && *o.price <= 1e5))
    return fail("--price is out of range, expected US dollars per accelerator-hour from 0 to 100,000");
  basis.kind = whatif::Basis::Kind::kGiven;
  basis.usd_per_hour = *o.price;
  return true;
}

Result<whatif::StudyOptions> study_options(const WhatIfOptions& o) {
  whatif::StudyOptions out;
  out.each = o.each;
  out.alternatives = o.alternatives;
  out.break_even = o.break_even;
  out.scale = !o.scale.empty();
  out.scaling.grow_batch = o.grow_batch;
  if (out.scale) {
    TRY_INTO([[maybe_unused]] const bool scale, read_scale(o.scale, out.scaling));
  }
  if (!o.tokens.empty()) {
    TRY_INTO(out.scaling.tokens, parse_tokens(o.tokens));
  }
  if (!o.by.empty()) {
    if (o.tokens.empty()) return fail("--by sets a deadline for --tokens", {}, {"for example --tokens 15T --by 30d"});
    TRY_INTO(out.by_s, parse_days(o.by));
  }
  TRY_INTO([[maybe_unused]] const bool basis, read_basis(o, out.scaling.basis));
  if (o.failure_hours) {
    if (!(*o.failure_hours > 0))
      return fail("--mtbf is the mean hours between failures of one accelerator, expected above zero");
    out.scaling.failures.per_accelerator_hour = 1 / *o.failure_hours;
  }
  if (!o.checkpoint_interval.empty()) {
    TRY_INTO(out.scaling.failures.interval_s, parse_days(o.checkpoint_interval));
  }
  out.scaling.failures.spare_hosts = o.spares;
  out.efficiency = o.efficiency / 100;
  // Without a question of its own, the answer is what the step hangs on.
  const bool asked = !o.changes.empty() || out.scale || out.break_even || !o.tokens.empty();
  out.sensitivities = o.sensitivities || !asked;
  return out;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

Result<bool> known_class(const whatif::Prices& prices, const std::string& name) {
  std::vector<std::string> classes;
  for (const whatif::Rent& rent : prices.rent) {
    if (rent.provider_class == name) return true;
    if (std::find(classes.begin(), classes.end(), rent.provider_class) == classes.end()) classes.push_back(rent.provider_class);
  }
  std::string listed;
  for (const std::string& one : classes) listed += (listed.empty() ? "" : ", ") + one;
  return fail("--rent is '" + name + "', expected a class of the price list: " + listed);
}

std::vector<std::string> inputs_of(const WhatIfOptions& o) {
  std::vector<std::string> inputs = input_files(o.job);
  inputs.push_back(o.prices);
  inputs.insert(inputs.end(), o.traces.begin(), o.traces.end());
  return inputs;
}

/// What the job really is like: as its traces show, or as the options say.
Result<whatif::RealJob> real_job(const WhatIfOptions& o) {
  whatif::RealJob out;
  for (const std::string& text : o.imperfections) {
    TRY_INTO([[maybe_unused]] const bool parsed, engine::parse_imperfection(text, out.imperfections));
  }
  if (o.traces.empty()) return out;
  if (out.imperfections.any())
    return fail("--imperfection and --from-trace contradict each other: traces show what ails the job");
  std::vector<trace::RankTrace> traces;
  for (const std::string& path : o.traces) {
    TRY_INTO(std::vector<trace::RankTrace> one, trace::read_traces(path));
    for (trace::RankTrace& rank : one) traces.push_back(std::move(rank));
  }
  TRY_INTO(const diagnose::Diagnosis diagnosis, diagnose::diagnose(std::move(traces)));
  TRY_INTO(out.measured, whatif::measured_step(diagnosis));
  return out;
}

/// A negative verdict: what was asked for does not fit, or, when nothing was, the job as it is.
bool fits(const whatif::Study& study) {
  for (const whatif::PricedAnswer& a : study.answers) {
    if (!a.answer.best) return false;
  }
  return !study.answers.empty() || study.baseline.own.prediction->memory.fits();
}

/// Long studies show on a terminal how far they are; Ctrl-C ends them with what is done.
class StudyWatch {
 public:
  explicit StudyWatch(bool quiet)
      : listener_([this, shows = interrupt_.watching() && progress_shows(quiet)](double share) { if (shows && !Interrupt::asked()) show(share); },
                  [watching = interrupt_.watching()] { return watching && Interrupt::asked(); }) {}
  ~StudyWatch() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  StudyWatch(const StudyWatch&) = delete;
  StudyWatch& operator=(const StudyWatch&) = delete;

 private:
  void show(double share) {
    constexpr double kSilent_s = 1;
    constexpr double kBetween_s = 0.1;
    const double now_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (now_s < kSilent_s || now_s < last_s_ + kBetween_s) return;
    last_s_ = now_s;
    shown_ = true;
    std::fprintf(stderr, "\r%.0f s, %.0f %% (Ctrl-C: what is done so far)\033[K", now_s, 100 * share);
  }

  Interrupt interrupt_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double last_s_ = 0;
  bool shown_ = false;
  ProgressListener listener_;
};

/// The study, watched. A request to the service has a listener of its own already.
Result<whatif::Study> watched_study(const whatif::Scenario& scenario, const std::vector<whatif::Change>& changes,
                                    const whatif::Prices& prices, const whatif::StudyOptions& options, bool quiet) {
  if (memory_files() != nullptr) return whatif::make_study(scenario, changes, prices, options);
  const StudyWatch watch(quiet);
  return whatif::make_study(scenario, changes, prices, options);
}

Result<std::string> run(const WhatIfOptions& o, const CommonOptions& common, int& code) {
  TRY_INTO([[maybe_unused]] const bool safe, check_reports(o.files, common, inputs_of(o)));
  std::vector<whatif::Change> changes;
  for (const std::string& text : o.changes) {
    TRY_INTO(whatif::Change change, whatif::parse_change(text));
    changes.push_back(std::move(change));
  }
  TRY_INTO(const whatif::StudyOptions options, study_options(o));
  if (!o.as_of.empty() && !whatif::days_between(o.as_of, o.as_of))
    return fail("--as-of is '" + o.as_of + "', expected a day such as 2026-05-22");
  std::optional<whatif::Prices> own;
  if (!o.prices.empty()) {
    TRY_INTO(const std::string text, read_text_file(o.prices));
    TRY_INTO(own, whatif::read_prices(text, o.prices));
  }
  if (!o.provider_class.empty()) {
    TRY_INTO([[maybe_unused]] const bool known, known_class(own ? *own : whatif::shipped_prices(), o.provider_class));
  }
  TRY_INTO(job::JobFile file, load_job(o.job));
  TRY_INTO(const LoadedProfile profile, load_profile(o.profile));
  file.job.assumptions.insert(file.job.assumptions.end(), profile.assumptions.begin(), profile.assumptions.end());
  whatif::Scenario scenario;
  scenario.job = std::move(file.job);
  scenario.strategy = file.strategy;
  scenario.parameters = profile.parameters;
  TRY_INTO(scenario.real, real_job(o));
  TRY_INTO(const whatif::Study study,
           watched_study(scenario, changes, own ? *own : whatif::shipped_prices(), options, common.quiet));
  constexpr double kNoProgress = 1e-3;
  if (study.goodput.goodput < kNoProgress) {
    return fail("no progress at this failure rate: " + format_count(study.goodput.failures_per_day) + " failures a day, a checkpoint takes " +
                    format_duration(study.goodput.checkpoint_s) + " and a restart " + format_duration(study.goodput.restart_s),
                {}, {"--mtbf and --checkpoint-interval say otherwise"});
  }
  if (!fits(study)) code = 1;
  if (!study.left_out.empty()) code = 4;
  const report::Words& words = report::Words::of(common.lang);
  return write_reports(o.files,
                       {[&](report::PageForm form) { return report::whatif_html(study, form, words); }, [&] { return report::whatif_markdown(study, words); },
                        [&] { return report::whatif_csv(study); }},
                       [&] {
                         return with_settings(common.json
                                                  ? report::whatif_json(study)
                                                  : report::whatif_text(study, report::terminal_style(common.lang), common.quiet,
                                                                        o.as_of.empty() ? today() : o.as_of),
                                              file, common.json, common.quiet);
                       });
}

void add_options(CLI::App& command, WhatIfOptions& o) {
  add_job_options(command, o.job);
  command.add_option("--strategy", o.job.values.strategy, "the strategy of the job as it is; the best one by default");
  add_profile_option(command, o.profile);
  command
      .add_option("--change", o.changes, "what to change, for example \"nic=400 Gb/s\"; several are one combination")
      ->allow_extra_args(false);
  command.add_option("--from-trace", o.traces,
                     "traces of the job's ranks: its measured costs are what changes are held against");
  command
      .add_option("--imperfection", o.imperfections,
                  "what ails the job as it is: slow-rank=17:1.08, slow-host=3:0.5, jitter=2%, experts=1.3 ...")
      ->allow_extra_args(false);
  command.add_flag("--list-changes", o.list_changes, "every word of --change with an example");
  command.add_flag("--each", o.each, "also every change on its own");
  command.add_flag("--alternatives", o.alternatives,
                   "every change on its own and no combination: \"nic=25 Gb/s\" beside \"nic=100 Gb/s\"");
  command.add_flag("--sensitivities", o.sensitivities,
                   "what the step hangs on, resource by resource, and the order to mend them in");
  command.add_option("--scale", o.scale, "sizes, doubling, for example 8..16384");
  command.add_flag("--grow-batch", o.grow_batch, "the batch grows with the accelerators");
  command.add_flag("--break-even", o.break_even,
                   "price at which a change equals staying, slowest network, largest model that fits");
  command.add_option("--efficiency", o.efficiency, "per cent of an unlimited network's speed to keep for --break-even")
      ->check(CLI::Range(1.0, 99.9));
  command.add_option("--prices", o.prices, "price list in place of the shipped one (docs/formats/prices.md)");
  command.add_option("--rent", o.provider_class,
                     "class of provider in the price list: specialist, hyperscaler, marketplace ...");
  command.add_flag("--owned", o.owned, "hardware that is bought: amortisation, power and cooling");
  command.add_option("--price", o.price, "US dollars per accelerator-hour");
  command.add_option("--tokens", o.tokens, "tokens of the whole run, for example 15T");
  command.add_option("--by", o.by, "deadline of the run, for example 30d: how many accelerators it takes");
  command.add_option("--mtbf", o.failure_hours, "mean hours between failures of one accelerator");
  command.add_option("--checkpoint-interval", o.checkpoint_interval,
                     "work between checkpoints, for example \"30 min\"; the best by default");
  command.add_option("--spares", o.spares, "spare hosts; enough by default")->check(CLI::Range(0, 100000));
  add_report_options(command, o.files);
  command.add_option("--as-of", o.as_of, "day that prices are held against, for example 2026-05-22; today by default");
}

}  // namespace

void add_whatif(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<WhatIfOptions>();
  CLI::App* command = app.add_subcommand(
      "whatif", "What a change or a purchase is worth: step time, tokens, money, and what to mend first");
  add_common(*command, common, Speaks::kEnglishAndRussian);
  add_options(*command, *options);
  command->callback([options, &common, &action] {
    action = [options, &common] {
      if (options->list_changes) return deliver(common, report::change_words_text(report::terminal_style()));
      int code = 0;
      const Result<std::string> text = run(*options, common, code);
      return text ? deliver(common, *text, code, inputs_of(*options)) : report_error(text.error());
    };
  });
}

}  // namespace chokepoint::commands

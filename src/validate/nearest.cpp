// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/validate/nearest.hpp>

#include <algorithm>
#include <chokepoint/base/catalogue_text.hpp>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::embedded {
extern const CatalogueText published_runs;
}

namespace chokepoint::validate {
namespace {

/// A layer is recomputed once: forward, forward again, and a backward of twice the forward.
constexpr double kModelShareOfRecomputed = 3.0 / 4.0;

/// FLOPs of one token, forward and backward, of a decoder of the usual proportions (12 l h^2 parameters, h = 128 l:
/// arXiv 2005.14165, table 2.1): 6 for each active parameter, and 6 s h for the causal half of each attention square.
double flops_per_token(double active_parameters, int sequence) {
  const double layers = std::cbrt(active_parameters / (12 * 128.0 * 128.0));
  return 6 * active_parameters + 6.0 * sequence * (128 * layers) * layers;
}

/// What the run reached: the one figure its entry gives, as share of the peak and as printed.
Result<bool> read_reached(const YamlMap& entry, double peak_flops_per_s, PublishedRun& run) {
  struct Figure {
    const char* key;
    double high;
    double to_mfu;
    const char* text;
  };
  const double per_token = flops_per_token(run.active_parameters, run.sequence);
  const Figure figures[] = {{"mfu", 1, 1, "{:.1f} % MFU"},
                            {"hfu_recomputed", 1, kModelShareOfRecomputed, "{:.1f} % HFU"},
                            {"tflops", 1e5, 1e12 / peak_flops_per_s, "{:g} TFLOP/s per GPU"},
                            {"tflops_recomputed", 1e5, kModelShareOfRecomputed * 1e12 / peak_flops_per_s,
                             "{:g} TFLOP/s per GPU, recomputation counted"},
                            {"tokens_per_s", 1e9, per_token / peak_flops_per_s, "{:g} tokens/s per GPU"}};
  for (const Figure& figure : figures) {
    TRY_INTO(const std::optional<double> value, entry.number(figure.key, 0, figure.high));
    if (!value) continue;
    if (!run.reached.empty()) return fail("two figures for one run, expected one", entry.position(figure.key));
    run.mfu = *value * figure.to_mfu;
    run.reached = fmt::format(fmt::runtime(figure.text), figure.high == 1 ? 100 * *value : *value);
  }
  if (run.reached.empty()) return fail("no figure for this run", entry.position());
  return true;
}

Result<PublishedRun> read_run(const YamlMap& entry, PublishedRun run) {
  constexpr double kBillion = 1e9;
  TRY_INTO(run.model, entry.required_text("model"));
  TRY_INTO(const double billions, entry.required_number("billions", 1e-3, 1e6));
  TRY_INTO(const std::optional<double> active, entry.number("active", 1e-3, billions));
  run.parameters = billions * kBillion;
  run.active_parameters = active.value_or(billions) * kBillion;
  TRY_INTO(run.gpus, entry.required_int("gpus", 1, 1 << 24));
  TRY_INTO(const std::optional<int> sequence, entry.integer("sequence", 1, 1 << 28));
  run.sequence = sequence.value_or(0);
  TRY_INTO(const std::optional<double> batch, entry.number("batch", 1, 1e9));
  run.global_batch = batch.value_or(0);
  TRY_INTO(run.strategy_text, entry.required_text("strategy"));
  TRY_INTO(run.strategy, parallel::parse_strategy(run.strategy_text));
  TRY_INTO(const hardware::Accelerator accelerator, hardware::find_accelerator(run.accelerator));
  TRY_INTO([[maybe_unused]] const bool reached, read_reached(entry, accelerator.peak(run.dtype), run));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return run;
}

Result<bool> read_table(std::size_t index, std::vector<PublishedRun>& runs) {
  TRY_INTO(const YamlMap entry, embedded::published_runs.parse(index));
  PublishedRun common;
  TRY_INTO([[maybe_unused]] const std::string name, entry.required_text("name"));
  TRY_INTO(common.source, entry.required_text("source"));
  TRY_INTO(common.date, entry.required_text("date"));
  TRY_INTO(const std::optional<std::string> note, entry.text("note"));
  common.note = note.value_or("");
  TRY_INTO(common.accelerator, entry.required_text("accelerator"));
  TRY_INTO(const std::string framework, entry.required_text("framework"));
  TRY_INTO(common.framework, parallel::parse_framework(framework));
  TRY_INTO(const std::string precision, entry.required_text("precision"));
  TRY_INTO(common.dtype, hardware::parse_dtype(precision));
  TRY_INTO(const std::vector<YamlMap> entries, entry.maps("runs"));
  for (const YamlMap& one : entries) {
    TRY_INTO(PublishedRun run, read_run(one, common));
    runs.push_back(std::move(run));
  }
  return entry.finish();
}

/// Which kinds of parallelism a strategy has; the data degree alone says nothing.
int kinds_apart(const parallel::Strategy& a, const parallel::Strategy& b) {
  const auto differ = [](bool x, bool y) { return x != y ? 1 : 0; };
  return differ(a.tensor > 1, b.tensor > 1) + differ(a.pipeline > 1, b.pipeline > 1) + differ(a.context > 1, b.context > 1) +
         differ(a.expert > 1, b.expert > 1) + differ(a.zero >= 3, b.zero >= 3);
}

std::string times(double factor, std::string_view what) {
  return factor >= 1 ? fmt::format("{:.2g} times the {}", factor, what) : fmt::format("1/{:.2g} of the {}", 1 / factor, what);
}

/// Distance and differences, summed up term by term.
class Comparison {
 public:
  void add(double distance, std::string words) {
    sum_of_squares_ += distance * distance;
    if (distance >= kWorthSaying) terms_.emplace_back(distance, std::move(words));
  }
  /// `unit`: the factor that counts as a distance of one.
  void add_ratio(double factor, double unit, std::string_view what) {
    add(std::abs(std::log(factor)) / std::log(unit), times(factor, what));
  }
  NearestRun result(const PublishedRun& run) {
    std::stable_sort(terms_.begin(), terms_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    NearestRun near{&run, std::sqrt(sum_of_squares_), {}};
    for (auto& [distance, words] : terms_) near.differences.push_back(std::move(words));
    return near;
  }

 private:
  static constexpr double kWorthSaying = 0.3;
  double sum_of_squares_ = 0;
  std::vector<std::pair<double, std::string>> terms_;
};

NearestRun compare(const parallel::Job& job, const model::ParameterCount& count, const parallel::Strategy& strategy, const PublishedRun& run) {
  constexpr double kParameters = 4, kGpus = 8, kSequence = 4, kPeak = 2.5;
  Comparison comparison;
  comparison.add_ratio(run.parameters / count.total, kParameters, "parameters");
  const bool mixture = run.active_parameters < 0.9 * run.parameters;
  if (mixture != job.model.moe.has_value()) comparison.add(2, mixture ? "a mixture of experts" : "a dense model");
  comparison.add_ratio(static_cast<double>(run.gpus) / job.gpus, kGpus, "GPUs");
  if (run.sequence > 0) comparison.add_ratio(static_cast<double>(run.sequence) / job.sequence, kSequence, "sequence length");
  if (run.accelerator != job.accelerator.name) {
    const auto part = hardware::find_accelerator(run.accelerator);
    const bool same = part && part->architecture == job.accelerator.architecture && part->form == job.accelerator.form;
    const double mine = job.accelerator.peak(hardware::Dtype::kFp16), theirs = part ? part->peak(hardware::Dtype::kFp16) : 0;
    const double apart = mine > 0 && theirs > 0 ? std::abs(std::log(theirs / mine)) / std::log(kPeak) : 1;
    comparison.add((same ? 0.1 : 0.5) + apart, run.accelerator);
  }
  if (run.framework != job.framework) comparison.add(0.5, std::string(parallel::name(run.framework)));
  if (run.dtype != job.dtype) {
    const bool both16 = hardware::bytes_per_element(run.dtype) == 2 && hardware::bytes_per_element(job.dtype) == 2;
    // A share of another peak is another number: never called similar.
    comparison.add(both16 ? 0.1 : 1.25 * kSimilar, std::string(hardware::name(run.dtype)));
  }
  comparison.add(0.5 * kinds_apart(run.strategy, strategy), "other kinds of parallelism");
  return comparison.result(run);
}

}  // namespace

const std::vector<PublishedRun>& published_runs() {
  static const std::vector<PublishedRun> kAll = [] {
    std::vector<PublishedRun> runs;
    for (std::size_t i = 0; i < embedded::published_runs.size(); ++i) {
      if (auto read = read_table(i, runs); !read) broken_catalogue(read.error());
    }
    return runs;
  }();
  return kAll;
}

std::vector<NearestRun> nearest_runs(const parallel::Job& job, const parallel::Strategy& strategy, std::size_t count) {
  std::vector<NearestRun> all;
  const auto parameters = model::count_parameters(job.model);
  for (const PublishedRun& run : published_runs()) all.push_back(compare(job, parameters, strategy, run));
  std::stable_sort(all.begin(), all.end(), [](const NearestRun& a, const NearestRun& b) { return a.distance < b.distance; });
  if (all.size() > count) all.resize(count);
  return all;
}

}  // namespace chokepoint::validate

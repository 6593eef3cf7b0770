// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/trainer_log.hpp>

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "source.hpp"

namespace chokepoint::trace {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

/// The number after `label` (blanks, quotes, ':' and '=' between are passed, ',' groups digits); none when there is no such
/// label.
std::optional<double> number_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t i = at + label.size();
  while (i < line.size() && (line[i] == ' ' || line[i] == ':' || line[i] == '=' || line[i] == '\'' || line[i] == '"')) ++i;
  std::string digits;
  for (; i < line.size(); ++i) {
    const char c = line[i];
    if (c == ',' && i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9') continue;
    if ((c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E') break;
    digits += c;
  }
  while (!digits.empty() && (digits.back() == 'e' || digits.back() == 'E' || digits.back() == '.')) digits.pop_back();
  return to_number(digits);
}

constexpr std::string_view kBar = "progress bar";

struct Parsed {
  LoggedStep step;
  std::string_view trainer;
  std::int64_t bar_length = 0;  ///< of a progress bar
};

std::optional<LoggedStep> checked(std::optional<double> number, LoggedStep step) {
  constexpr double kMost = 1e15;
  if (!number || *number < 0 || *number > kMost) return std::nullopt;
  step.step = static_cast<std::int64_t>(*number);
  const auto usable = [](double v) { return std::isfinite(v) && v >= 0 && v < kMost; };
  if (!usable(step.seconds) || !usable(step.rate) || !usable(step.flops_per_s) || (step.seconds == 0 && step.rate == 0)) return std::nullopt;
  return step;
}

/// " iteration  20/ 500 | ... | elapsed time per iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 401.2 |"
std::optional<Parsed> megatron(std::string_view line) {
  const auto ms = number_after(line, "elapsed time per iteration (ms)");
  if (!ms) return std::nullopt;
  LoggedStep step;
  step.seconds = *ms * 1e-3;
  step.flops_per_s = number_after(line, "throughput per GPU (TFLOP/s/GPU)").value_or(0) * 1e12;
  const auto read = checked(number_after(line, "iteration"), step);
  return read ? std::optional<Parsed>({*read, "Megatron-LM"}) : std::nullopt;
}

/// "steps: 10 loss: 1.2345 iter time (s): 2.345 samples/sec: 109.1"
std::optional<Parsed> deepspeed(std::string_view line) {
  const auto s = number_after(line, "iter time (s)");
  if (!s) return std::nullopt;
  LoggedStep step;
  step.seconds = *s;
  step.rate = number_after(line, "samples/sec").value_or(0);
  const auto read = checked(number_after(line, "steps"), step);
  return read ? std::optional<Parsed>({*read, "DeepSpeed"}) : std::nullopt;
}

/// "epoch=0/micro_step=100/global_step=50, RunningAvgSamplesPerSec=109.1, CurrSamplesPerSec=110.5, MemAllocated=..."
std::optional<Parsed> deepspeed_timer(std::string_view line) {
  const auto rate = number_after(line, "CurrSamplesPerSec");
  if (!rate) return std::nullopt;
  LoggedStep step;
  step.rate = *rate;
  const auto read = checked(number_after(line, "global_step"), step);
  return read ? std::optional<Parsed>({*read, "DeepSpeed"}) : std::nullopt;
}

/// "Training epoch 0, iteration 9/99 | lr: ... | global_step: 9 | train_step_timing in s: 2.31 | ...", also with '='.
std::optional<Parsed> nemo(std::string_view line) {
  const auto s = number_after(line, "train_step_timing in s");
  if (!s) return std::nullopt;
  LoggedStep step;
  step.seconds = *s;
  const auto read = checked(number_after(line, "global_step"), step);
  return read ? std::optional<Parsed>({*read, "NeMo"}) : std::nullopt;
}

/// "step: 10  loss: 8.1  memory: 40.1GiB(42%)  tps: 5,432  tflops: 250.31  mfu: 25.3%"
std::optional<Parsed> torchtitan(std::string_view line) {
  auto tps = number_after(line, "tps:");
  if (!tps) tps = number_after(line, "wps:");
  if (!tps) return std::nullopt;
  LoggedStep step;
  step.rate = *tps;
  step.flops_per_s = number_after(line, "tflops:").value_or(0) * 1e12;
  const auto read = checked(number_after(line, "step:"), step);
  return read ? std::optional<Parsed>({*read, "torchtitan"}) : std::nullopt;
}

/// tqdm: " 12/500 [00:24<16:16,  2.00s/it]" or "5.00it/s".
std::optional<Parsed> progress_bar(std::string_view line) {
  const std::size_t open = line.rfind('[');
  const std::size_t slash = open == std::string_view::npos ? open : line.rfind('/', open);
  if (slash == std::string_view::npos) return std::nullopt;
  std::size_t begin = slash;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  const std::string_view rest = line.substr(open);
  const std::size_t comma = rest.find(',');
  if (comma == std::string_view::npos || rest.find('<') == std::string_view::npos) return std::nullopt;
  const auto value = number_after(rest.substr(comma), ",");
  LoggedStep step;
  if (value && *value > 0 && rest.find("s/it") != std::string_view::npos) step.seconds = *value;
  if (value && *value > 0 && rest.find("it/s") != std::string_view::npos) step.seconds = 1 / *value;
  const auto read = checked(to_number(line.substr(begin, slash - begin)), step);
  constexpr double kLongest = 1e15;
  const double length = number_after(line.substr(slash), "/").value_or(0);
  return read ? std::optional<Parsed>({*read, kBar, length >= 1 && length <= kLongest ? static_cast<std::int64_t>(length) : 0}) : std::nullopt;
}

/// The Hugging Face Trainer's last line: "{'train_runtime': 312.5, 'train_steps_per_second': 1.6, 'train_loss': 1.9, ...}".
void read_summary(std::string_view line, TrainerLog& log) {
  const auto rate = number_after(line, "train_steps_per_second");
  const auto runtime = number_after(line, "train_runtime");
  constexpr double kMost = 1e12;
  if (!rate || !runtime || !(*rate > 0) || !(*runtime > 0) || *runtime > kMost || *rate > kMost || *runtime * *rate > kMost) return;
  log.mean_step_s = 1 / *rate;
  log.step_count = std::llround(*runtime * *rate);
}

std::optional<Parsed> parse_line(std::string_view line) {
  for (const auto reader : {megatron, deepspeed, deepspeed_timer, nemo, torchtitan, progress_bar}) {
    if (const auto parsed = reader(line)) return parsed;
  }
  return std::nullopt;
}

void add_timer(std::string_view name, double least_ms, double most_ms, std::vector<TimerSpread>& timers) {
  if (name.empty() || least_ms < 0 || most_ms < least_ms) return;
  auto at = std::find_if(timers.begin(), timers.end(), [name](const TimerSpread& t) { return t.name == name; });
  if (at == timers.end()) at = timers.insert(timers.end(), TimerSpread{std::string(name), 0, 0, 0});
  ++at->count;
  at->least_s += (least_ms * 1e-3 - at->least_s) / at->count;
  at->most_s += (most_ms * 1e-3 - at->most_s) / at->count;
}

/// "time (ms) | forward-compute: 29189.57 | backward-compute: 76786.07" (Megatron-LM until 2022, DeepSpeed): one rank's.
void read_timer_line(std::string_view line, std::vector<TimerSpread>& timers) {
  constexpr std::string_view kHead = "time (ms) |";
  const std::size_t head = line.find(kHead);
  if (head == std::string_view::npos) return;
  for (const std::string_view part : split(line.substr(head + kHead.size()), '|')) {
    const std::size_t colon = part.rfind(':');
    if (colon == std::string_view::npos) continue;
    const auto ms = to_number(trim(part.substr(colon + 1)));
    if (ms) add_timer(trim(part.substr(0, colon)), *ms, *ms, timers);
  }
}

/// Megatron-LM's "    forward-compute ....: (1071.05, 1103.58)": milliseconds of the fastest and slowest rank.
void read_timer(std::string_view line, std::vector<TimerSpread>& timers) {
  const std::size_t dots = line.find("..");
  const std::size_t open = line.rfind('(');
  const std::size_t close = line.rfind(')');
  if (dots == std::string_view::npos || open == std::string_view::npos || close == std::string_view::npos || close < open || open < dots) return;
  const std::vector<std::string_view> both = split(line.substr(open + 1, close - open - 1), ',');
  if (both.size() != 2) return;
  const auto least = to_number(trim(both[0]));
  const auto most = to_number(trim(both[1]));
  if (least && most) add_timer(trim(line.substr(0, dots)), *least, *most, timers);
}

}  // namespace

bool looks_like_trainer_log(std::string_view text) {
  for (const std::string_view line : split_lines(text)) {
    const std::string plain = strip_ansi(line);
    TrainerLog log;
    read_summary(plain, log);
    if (log.mean_step_s > 0 || parse_line(plain)) return true;
  }
  return false;
}

void read_trainer_lines(std::string_view text, TrainerLog& log, int& line_number) {
  for (const std::string_view raw : split_lines(text)) {
    ++line_number;
    // A progress bar overwrites its line: each carriage return begins a new state.
    for (const std::string_view part : split(raw, '\r')) {
      const std::string line = strip_ansi(part);
      read_timer(line, log.timers);
      read_timer_line(line, log.timers);
      read_summary(line, log);
      auto parsed = parse_line(line);
      if (!parsed) continue;
      // Of progress bars the longest trains; where the trainer prints steps itself, none does.
      const std::int64_t weight = parsed->trainer == kBar ? parsed->bar_length : std::numeric_limits<std::int64_t>::max();
      if (weight < log.bar_length) continue;
      if (weight > log.bar_length) log.trainer = std::string(parsed->trainer);
      parsed->step.bar_length = log.bar_length = weight;
      parsed->step.line = line_number;
      if (log.trainer.empty()) log.trainer = std::string(parsed->trainer);
      if (!log.steps.empty() && log.steps.back().step == parsed->step.step) {
        log.steps.back() = parsed->step;
      } else {
        log.steps.push_back(parsed->step);
      }
    }
  }
}

Result<TrainerLog> read_trainer_text(std::string_view text, const std::string& file) {
  TrainerLog log;
  log.file = file;
  int lines = 0;
  read_trainer_lines(text, log, lines);
  // Bars that ran before the longest one began are no steps of training either.
  std::erase_if(log.steps, [&log](const LoggedStep& s) { return s.bar_length < log.bar_length; });
  if (log.trainer.empty()) log.trainer = "Hugging Face Trainer";
  if (log.steps.empty() && log.mean_step_s <= 0) {
    return fail("no line with a step's time or rate", {file, 0, 0}, {"known: Megatron-LM, DeepSpeed, NeMo, torchtitan, progress bars and the summary of the Hugging Face Trainer"});
  }
  return log;
}

Result<TrainerLog> read_trainer_log(const std::string& path) {
  TRY_INTO(const std::string text, read_whole(path, kMostBytes));
  return read_trainer_text(text, path);
}

}  // namespace chokepoint::trace

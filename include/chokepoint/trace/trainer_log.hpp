// SPDX-License-Identifier: Apache-2.0
#pragma once
// What trainers print while they run: step numbers with times or rates (Megatron-LM, DeepSpeed, torchtitan, the Hugging Face
// Trainer's progress bar and its summary), and Megatron-LM's timers with the fastest and slowest rank.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::trace {

struct LoggedStep {
  std::int64_t step = 0;
  double seconds = 0;          ///< 0: the line gives only a rate
  double rate = 0;             ///< tokens or samples per second; 0: not given
  double flops_per_s = 0;      ///< per accelerator; 0: not given
  int line = 0;
  std::int64_t bar_length = 0; ///< of the log when the line was read
};

/// A timer's fastest and slowest rank.
struct TimerSpread {
  std::string name;
  double least_s = 0;
  double most_s = 0;
  int count = 0;               ///< lines that the means above are over
};

struct TrainerLog {
  std::string file;
  std::string trainer;         ///< "Megatron-LM", "DeepSpeed", "torchtitan", "progress bar"
  std::vector<LoggedStep> steps;
  std::vector<TimerSpread> timers;
  double mean_step_s = 0;      ///< as the trainer sums up at its end; 0: it does not
  std::int64_t step_count = 0; ///< that the mean is over
  std::int64_t bar_length = 0; ///< of the longest progress bar so far: shorter ones load or evaluate; the most where steps are printed otherwise
};

/// Reads more lines into `log`; `line` counts them over all calls. For logs that grow.
void read_trainer_lines(std::string_view text, TrainerLog& log, int& line);

/// Whether a line of the text reads as one of the known trainers'.
bool looks_like_trainer_log(std::string_view text);
/// An error when no line can be read.
Result<TrainerLog> read_trainer_log(const std::string& path);
Result<TrainerLog> read_trainer_text(std::string_view text, const std::string& file);

}  // namespace chokepoint::trace

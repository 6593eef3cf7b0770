// SPDX-License-Identifier: Apache-2.0
#pragma once
// Published runs that resemble a job, to stand beside a prediction: "4 similar runs: 41-47 % MFU". They come from
// catalogue/published_runs.yaml; no prediction reads them.
//
//   for (const NearestRun& near : nearest_runs(job, strategy, 4)) std::cout << near.run->model << near.run->mfu;
#include <chokepoint/parallel/job.hpp>
#include <string>
#include <vector>

namespace chokepoint::validate {

/// One run as its source prints it.
struct PublishedRun {
  std::string source;             ///< title and table
  std::string date;               ///< "2021-04"
  std::string note;               ///< what the source leaves open; empty for nothing
  std::string model;
  double parameters = 0;
  double active_parameters = 0;   ///< that one token passes; less than all for a mixture of experts
  int gpus = 0;
  int sequence = 0;               ///< 0: not stated
  double global_batch = 0;        ///< 0: not stated
  std::string accelerator;        ///< catalogue name
  parallel::Framework framework = parallel::Framework::kMegatron;
  hardware::Dtype dtype = hardware::Dtype::kBf16;
  parallel::Strategy strategy;    ///< as far as stated
  std::string strategy_text;
  double mfu = 0;                 ///< model FLOPs as a share of the peak of the precision
  std::string reached;            ///< the figure as printed: "140 TFLOP/s per GPU, recomputation counted"
};

/// Every run of the catalogue, read on first use.
const std::vector<PublishedRun>& published_runs();

struct NearestRun {
  const PublishedRun* run = nullptr;
  double distance = 0;            ///< 0: the same; 1: one thing is clearly different, e.g. four times the parameters
  std::vector<std::string> differences;  ///< in words, largest first: "8 times the GPUs", "other strategy"
};

/// Runs nearer than this are called similar.
inline constexpr double kSimilar = 2.0;

/// The `count` runs nearest to the job, nearest first. Distance: parameters and sequence by factors of four, GPUs by
/// factors of eight, generation of the accelerator, framework, kind of strategy, precision; the root of the sum of squares.
std::vector<NearestRun> nearest_runs(const parallel::Job& job, const parallel::Strategy& strategy, std::size_t count);

}  // namespace chokepoint::validate

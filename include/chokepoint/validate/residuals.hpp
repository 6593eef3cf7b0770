// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a report of published runs says besides the error: is the order of strategies right, how far do repeats of the
// same run differ, and by what are rows sorted when one looks for structure in the residuals.
#include <string>
#include <vector>

namespace chokepoint::validate {

/// Labels of a run for the residual tables; empty where the row could not be read as a job.
struct RunClasses {
  std::string accelerator;  ///< catalogue name
  std::string framework;
  std::string strategy;     ///< kind: "data", "fsdp", "tensor+pipeline+zero1", ...
  std::string size;         ///< of the model: "4 to 15 B"
  std::string gpus;         ///< "one host", "65 to 256", ...
  std::string year;         ///< of the software
  std::string links;        ///< between the GPUs of a host: "NVSwitch", "NVLink in pairs", "PCIe", ...
  std::string network;      ///< rate of the host's NICs, per GPU: "30 to 60 Gb/s a GPU"; "one host" without
  std::string sequence;     ///< "2,049 to 4,096 tokens"
};

/// Two runs of one group that the prediction orders the other way round, rows counted from 1.
struct WrongPair {
  int faster_row = 0;             ///< as measured
  int slower_row = 0;
  double measured_ratio = 1;      ///< slower / faster, above 1
  double predicted_ratio = 1;     ///< the same two, at most 1
};

/// Runs of one source on one machine with one model, sequence and batch that differ in strategy.
struct OrderGroup {
  std::string source_id;
  std::string trust;
  std::string what;               ///< "64 x h100-sxm5-80gb, Llama 8B, 4096 tokens, batch 256"
  int strategies = 0;             ///< at least three; repeats of one strategy count once
  int pairs = 0;                  ///< whose measured times differ by more than the noise of the source
  int wrong = 0;                  ///< of them ordered the other way round
  double tau = 0;                 ///< Kendall's tau-b over these pairs
  WrongPair worst;                ///< the wrong pair with the largest measured gap; rows 0 when none is wrong
  std::string faster_strategy, slower_strategy;  ///< of the worst pair
};

struct SourceOrder {
  std::string source_id;
  int groups = 0;
  double mean_tau = 0;
};

/// Order of strategies within the rows of one trust class.
struct StrategyOrder {
  std::string trust;
  std::vector<OrderGroup> groups;     ///< in the order of the file
  std::vector<SourceOrder> sources;
  double mean_tau = 0;                ///< every group once
  double mean_of_sources = 0;         ///< every source once
};

/// How far runs of one source that the model cannot tell apart differ from their median: no model can be nearer.
struct Repeats {
  std::string source_id;
  int configurations = 0;             ///< measured more than once
  int rows = 0;
  double median_deviation = 0;        ///< of |time / median of its configuration - 1|
  double p90_deviation = 0;
};

}  // namespace chokepoint::validate

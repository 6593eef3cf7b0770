// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a user measured, as observations: tables of nccl-tests, rccl-tests and OSU, bandwidths between pairs (nvbandwidth,
// p2pBandwidthLatencyTest) and of one NIC (perftest), kernel timings of `chokepoint measure --compute`, training steps.
#include <chokepoint/base/result.hpp>
#include <chokepoint/calibrate/fit.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::calibrate {

/// Where it was measured; a table of collectives needs the wiring, kernel timings the accelerator.
struct Machine {
  std::optional<topology::Cluster> cluster;
  std::optional<hardware::Accelerator> accelerator;
};

/// One file or option of the user.
struct Input {
  std::string name;            ///< the file, or what the option says
  std::string kind;            ///< "nccl-tests", "perftest", "kernels", "steps", ...
  std::vector<Observation> observations;
  std::vector<std::string> labels;  ///< of each observation, for messages: "all_reduce of 16 MiB on 8 ranks"
  std::vector<Note> notes;     ///< rows refused and why, what was assumed
};

/// Neighbouring rows of one table tell much the same: together they weigh no more than this many.
inline constexpr double kTableRows = 8;
void share_weight(Input& input);

/// Reads one file of any kind that `wiring` knows and that holds measured times, or kernel timings as JSON. An error when
/// the file holds none, or the machine is not described well enough.
Result<std::vector<Input>> read_measurements(std::string_view text, const std::string& file, const Machine& machine);

/// Kernel timings: {"accelerator": ..., "gemm": [{"dtype","m","n","k","time_s"}], "attention": [...]}.
Result<Input> read_kernel_timings(std::string_view json, const std::string& file, const Machine& machine);

}  // namespace chokepoint::calibrate

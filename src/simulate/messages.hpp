// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks that compute, start collectives on worker threads and wait, their messages sharing links: gloo as it runs in
// PyTorch (ProcessGroupGloo: a queue of collectives and two workers for each rank; send and receive outside the queue).
#include <chokepoint/collective/gloo.hpp>
#include <chokepoint/flow/fluid.hpp>
#include <chokepoint/topology/measured_network.hpp>
#include <string>
#include <vector>

namespace chokepoint::simulate {

/// Links of a measured network: each host's way out and in, each group's where it is a limit.
class MeasuredLinks {
 public:
  explicit MeasuredLinks(const topology::MeasuredNetwork& network);
  std::vector<flow::Use> way(int from, int to) const;
  const std::vector<double>& capacities() const { return capacities_; }
  std::string name(std::size_t link) const;
  std::uint32_t narrowest(int from, int to) const;

 private:
  const topology::MeasuredNetwork& network_;
  std::vector<double> capacities_;  ///< host out, host in, ...; group out, group in, ...
};

enum class Do { kCompute, kStart, kFinish, kPost, kWait };
struct Instruction {
  Do what = Do::kCompute;
  int index = 0;       ///< collective (kStart, kFinish) or message (kPost, kWait)
  double seconds = 0;  ///< kCompute
};
using Program = std::vector<Instruction>;

/// A collective as each of its ranks runs it on a worker.
struct Job {
  std::vector<Program> of_rank;  ///< by rank; empty: not a member
};

struct Machine {
  std::vector<Program> main;     ///< by rank
  std::vector<Job> jobs;
  std::vector<collective::GlooMessage> messages;

  /// Adds the messages of a schedule over `ranks` and a job that runs it; its index.
  int add_job(const collective::GlooSchedule& schedule, const std::vector<int>& ranks);
  int add_message(int from, int to, double bytes);
};

struct RunResult {
  double end_s = 0;
  bool stuck = false;            ///< ranks wait for what never comes
  std::vector<double> carried_bytes;  ///< by link
};
RunResult run(const Machine& machine, const MeasuredLinks& links, const topology::MeasuredNetwork& network);

}  // namespace chokepoint::simulate

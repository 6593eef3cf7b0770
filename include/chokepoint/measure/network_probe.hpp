// SPDX-License-Identifier: Apache-2.0
#pragma once
// Probing a network in bounded time. The probe decides on one rank what to run next and draws the conclusions; what runs
// an experiment (MPI, or a made-up network in tests) stands behind Runner.
//
//   TRY_INTO(topology::MeasuredNetwork found, probe_network(runner, options));
//
// Pairs of hosts meet in rounds of perfect matchings, never all at once with all: a host has one partner at a time, so
// that what slows a pair in a round is either its own ends or a way that several pairs share. Pairs that were slow are
// run again alone, which tells the two apart; exchanging partners of slow pairs tells who stands on which side.
#include <chokepoint/topology/measured_network.hpp>
#include <string>
#include <utility>
#include <vector>

namespace chokepoint::measure {

/// One stream of messages between two ranks.
struct Flow {
  int from = 0;
  int to = 0;
  bool operator==(const Flow&) const = default;
};

enum class ExperimentKind { kBandwidth, kMessage, kCollective };

/// What all ranks do at once, repeated.
struct Experiment {
  ExperimentKind kind = ExperimentKind::kBandwidth;
  std::vector<Flow> flows = {};     ///< kBandwidth: all at once; kMessage: ping-pong, all at once
  std::string op = {};              ///< kCollective, over `ranks`
  std::vector<int> ranks = {};
  double bytes = 0;                 ///< kMessage, kCollective
  double window_s = 0.2;            ///< kBandwidth: how long each repeat sends
  int repeats = 3;
};

/// By flow: payload bytes per second (kBandwidth) or seconds one way (kMessage) of each repeat. kCollective: one list,
/// the slowest rank's seconds.
using Outcome = std::vector<std::vector<double>>;

class Runner {
 public:
  virtual ~Runner() = default;
  /// Host of each rank, in rank order.
  virtual std::vector<std::string> host_of_rank() const = 0;
  virtual std::string transport() const = 0;
  virtual int mtu() const = 0;
  /// What the reader of the result has to know about how it was measured.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Seconds since probing began.
  virtual double elapsed_s() const = 0;
  virtual Result<Outcome> run(const Experiment& experiment) = 0;
};

struct ProbeOptions {
  double seconds = 60;              ///< what is not done by then is left out, and said
  double window_s = 0.2;
  int repeats = 3;
  int flows_per_pair = 1;           ///< ranks of a host that send at once, where it has as many
  std::vector<std::vector<std::string>> groups;  ///< hosts that share a leaf, where known
  bool collectives = true;
};

/// A message that came: when, and all bytes of its flow so far.
struct Arrival {
  double time_s = 0;
  double bytes = 0;
};
/// Bytes per second between two times; messages in order, the first after `to_s` included where there is one. Flows that
/// share a way add up to its rate when they are given the same times (src/measure/arrival_rate.cpp).
double arrival_rate(const std::vector<Arrival>& arrivals, double from_s, double to_s);

Result<topology::MeasuredNetwork> probe_network(Runner& runner, const ProbeOptions& options);

/// Rounds in which each of `count` takes part at most once and, all rounds together, every pair meets once (the circle
/// method of tournaments): count - 1 rounds, or count when it is odd.
std::vector<std::vector<std::pair<int, int>>> tournament(int count);

/// A pair counts as slowed, a host as slow, below this share of what the others reach.
inline constexpr double kSlowShare = 0.85;
/// Repeats that differ by more than this share of their median (as median deviation) leave small differences open.
inline constexpr double kUnsteadyShare = 0.05;

/// Hosts whose out or in rate lies below kSlowShare of the median host's, ways that are slow although both ends are not;
/// what cannot be told apart. Fills `slow` and `unknown`.
void judge(topology::MeasuredNetwork& network);

/// One figure that changed against an earlier measurement.
struct Drift {
  std::string what;                 ///< "h3 out", "h0-3 to the others"
  double before = 0;                ///< bytes/s, or seconds for latency
  double now = 0;
  bool latency = false;
  bool worse = false;               ///< by more than both spreads and kDriftShare allow
};
inline constexpr double kDriftShare = 0.05;

struct Comparison {
  std::vector<Drift> changed;       ///< beyond spread, worst first
  std::vector<std::string> missing; ///< hosts that only one of the two has
  int compared = 0;
  bool worse() const;
};
Comparison compare(const topology::MeasuredNetwork& before, const topology::MeasuredNetwork& now);

}  // namespace chokepoint::measure

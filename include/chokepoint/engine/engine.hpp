// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a step: every class of ranks executes its lanes, collectives start when the last member has come, transfers that
// leave a host share its network interfaces max-min fairly with all others alive at the time.
//
//   TRY_INTO(const Simulated s, simulate_step(predictor, strategy, {}));
//   s.step_s; s.closed_form_s; s.bill[...]; s.wait_s[...]
//
// Semantics and limits: docs/models/engine.md.
#include <chokepoint/engine/fold.hpp>
#include <chokepoint/engine/graph.hpp>
#include <chokepoint/engine/imperfections.hpp>
#include <string>

namespace chokepoint::engine {

struct OpTime {
  double ready_s = 0;   ///< what it depends on is done; its lane may still be busy
  double arrive_s = 0;  ///< the rank is ready for it
  double start_s = 0;   ///< everyone is: work or transfer begins
  double end_s = 0;
};

/// Times of all operations, by class and by operation of its stage.
struct Run {
  double end_s = 0;
  std::vector<std::vector<OpTime>> times;
  std::vector<double> out_busy_s;  ///< by host class: seconds at full rate that left its network interfaces
  std::vector<double> in_busy_s;
  std::size_t events = 0;
  std::size_t flows = 0;  ///< transfers that shared links
};

/// What transfers share.
struct Wires {
  bool contention = true;       ///< false: each transfer as if alone
  double host_bytes_per_s = 0;  ///< of one host into the fabric, per direction; 0: one host
};

Result<Run> run(const StepGraph& graph, const Fold& fold, const Layout& layout, const Imperfections& imperfections,
                const Wires& wires);

struct SimulateOptions {
  bool folded = true;
  bool contention = true;
  GraphOptions graph;
  Imperfections imperfections;
};

/// One simulated step. `bill` and `wait_s` are those of the busiest rank; the bill sums to step_s.
struct Simulated {
  double step_s = 0;
  double closed_form_s = 0;
  std::array<double, simulate::kBillCount> bill{};
  std::array<double, simulate::kBillCount> wait_s{};  ///< part of each item spent waiting for peers
  int busiest_rank = 0;
  Layout layout;
  parallel::Strategy strategy;
  simulate::Pieces pieces;
  StepGraph graph;
  Fold fold;
  Run run;
};

/// `strategy` may leave data degree and accumulation to be derived.
Result<Simulated> simulate_step(const simulate::Predictor& predictor, const parallel::Strategy& strategy,
                                const SimulateOptions& options);

/// Times between [0, end) that a class spent per class of the bill, and of it waiting; sums to the run's end.
void bill_class(const StepGraph& graph, const Fold& fold, const Run& run, std::size_t rank_class,
                std::array<double, simulate::kBillCount>& bill, std::array<double, simulate::kBillCount>& wait_s);

/// Step times over many draws, and what each kind of imperfection costs.
struct Spread {
  double even_s = 0;           ///< without imperfections
  std::vector<double> step_s;  ///< by step, as drawn
  double mean_s = 0, p10_s = 0, p50_s = 0, p90_s = 0;
  struct Loss {
    std::string cause;
    double cost_s = 0;  ///< mean step time less the mean without this cause
  };
  std::vector<Loss> losses;
  int meetings = 0;  ///< collectives in which a rank waits for others, per step
};
Result<Spread> simulate_spread(const simulate::Predictor& predictor, const parallel::Strategy& strategy,
                               const SimulateOptions& options, int steps);

}  // namespace chokepoint::engine

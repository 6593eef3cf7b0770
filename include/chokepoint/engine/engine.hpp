// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a step: every class of ranks executes its lanes, collectives start when the last member has come, transfers share
// the links they pass (inside hosts, interfaces, leaves and spines) max-min fairly with all others alive at the time.
//
//   TRY_INTO(const Simulated s, simulate_step(predictor, strategy, {}));
//   s.step_s; s.closed_form_s; s.bill[...]; s.wait_s[...]
//
// Semantics and limits: docs/models/engine.md.
#include <chokepoint/engine/fold.hpp>
#include <chokepoint/engine/graph.hpp>
#include <chokepoint/engine/imperfections.hpp>
#include <memory>
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
  std::vector<double> link_busy_s;  ///< by Fold::links: seconds at full rate that passed a link of the class
  /// Where asked for: what each flow put on each class of links while it lasted.
  struct Passage {
    int link = 0;
    double start_s = 0, end_s = 0;
    double busy_s = 0;  ///< seconds at full rate
  };
  std::vector<Passage> passages;
  std::size_t events = 0;
  std::size_t flows = 0;  ///< transfers that shared links
};

/// How transfers share the fold's links.
struct Wires {
  bool record = false;  ///< keep Run::passages
  /// Share of its bandwidth that a collective inside a pass uses, by meeting: its messages are too short for all of it.
  std::array<double, kMeetCount> use{1, 1, 1, 1, 1, 1, 1, 1, 1};
};

Result<Run> run(const StepGraph& graph, const Fold& fold, const Layout& layout, const Imperfections& imperfections,
                const Wires& wires);

struct SimulateOptions {
  bool folded = true;
  bool contention = true;  ///< false: each transfer as if alone
  flow::Spread spread = flow::Spread::kSpray;
  bool record = false;  ///< what passed each link when
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
  std::shared_ptr<const Ways> ways;  ///< null: without contention
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
    double p10_s = 0, p90_s = 0;  ///< of single steps, with the same draws
  };
  std::vector<Loss> losses;
  int meetings = 0;   ///< collectives in which a rank waits for others, per step
  double wait_s = 0;  ///< that a rank waits for others in a step, mean over ranks; messages between stages included
  double even_wait_s = 0;  ///< the same without imperfections
};
Result<Spread> simulate_spread(const simulate::Predictor& predictor, const parallel::Strategy& strategy,
                               const SimulateOptions& options, int steps);

}  // namespace chokepoint::engine

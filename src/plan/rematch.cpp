// SPDX-License-Identifier: Apache-2.0
// The leading candidates once more, in the event engine: there transfers share links and ranks wait for each other, so
// strategies that the formula holds equal may part, and one that the list leaves out may win. Idea: the engine's time of a
// kind of strategy (family, schedule, chunks) was never less than r times the formula's, r measured on
// those that ran; so a strategy whose formula times r reaches the engine's best cannot win, and the others run in the order
// of that product until none is left.
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/plan/rematch.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "search.hpp"

namespace chokepoint::plan {

namespace {

using parallel::Strategy;

/// A graph of more operations per step takes seconds to run: such a candidate keeps its closed form alone.
constexpr std::size_t kMostOps = 2'000'000;
/// Events of all runs together, some seconds on one core: a limit of work, so that it falls at the same place anywhere.
constexpr std::size_t kMostEvents = 10'000'000;
/// Strategies beside each of the leading candidates asked for.
constexpr std::size_t kChallengersOfALeader = 2;

using Kind = std::tuple<std::string, parallel::Schedule, int>;
Kind kind_of(const parallel::Job& job, const Strategy& s) { return {family_of(job, s), s.schedule, s.virtual_stages}; }

class Runs {
 public:
  Runs(const parallel::Job& job, const simulate::Predictor& predictor, double seconds_left)
      : job_(job), predictor_(predictor), seconds_left_(seconds_left) {
    options_.graph.most_ops = kMostOps;
  }

  /// False: the engine refuses it, or there is no time left.
  bool run(const Strategy& strategy, double closed_form_s) {
    if (spent()) return false;
    const auto simulated = engine::simulate_step(predictor_, strategy, options_);
    if (!simulated) return false;
    events_ += simulated->run.events;
    done_.push_back({strategy, closed_form_s, simulated->step_s});
    const double ratio = simulated->step_s / closed_form_s;
    const auto [at, fresh] = ratio_.try_emplace(kind_of(job_, strategy), ratio);
    if (!fresh) at->second = std::min(at->second, ratio);
    least_ratio_ = std::min(least_ratio_, ratio);
    best_s_ = best_s_ == 0 ? simulated->step_s : std::min(best_s_, simulated->step_s);
    return true;
  }

  bool spent() const {
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return events_ > kMostEvents || (seconds_left_ > 0 && elapsed > seconds_left_);
  }

  /// What the gap measured so far leaves a strategy in the engine.
  double least_s(const Candidate& c) const {
    const auto known = ratio_.find(kind_of(job_, c.strategy));
    return c.step_time_s * (known == ratio_.end() ? least_ratio_ : known->second);
  }
  double best_s() const { return best_s_; }
  /// Formula times from which on nothing can win.
  double window_s() const { return best_s_ / least_ratio_; }
  struct Done {
    Strategy strategy;
    double closed_form_s = 0;
    double engine_s = 0;
  };
  const std::vector<Done>& done() const { return done_; }

 private:
  const parallel::Job& job_;
  const simulate::Predictor& predictor_;
  engine::SimulateOptions options_;
  std::vector<Done> done_;
  double seconds_left_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t events_ = 0;
  std::map<Kind, double> ratio_;
  double least_ratio_ = 1;
  double best_s_ = 0;
};

/// The best of every kind below the window, less what ran; whether the walk came to its end.
struct Challengers {
  std::vector<Candidate> strategies;
  bool all = true;
};

Result<Challengers> challengers(const parallel::Job& job, const Options& options, const simulate::Predictor& predictor,
                                double seconds_left, const Runs& runs) {
  Options walk = options;
  walk.explain = false;
  walk.report = nullptr;
  walk.time_limit_s = seconds_left;
  TRY_INTO(const Space space, Space::of(job, walk));
  Floors floors(predictor);
  Search search(job, walk, predictor, space, floors);
  Challengers out{search.kinds_within(runs.window_s()), !search.stopped()};
  std::erase_if(out.strategies, [&](const Candidate& c) {
    return std::any_of(runs.done().begin(), runs.done().end(), [&](const Runs::Done& d) { return d.strategy == c.strategy; });
  });
  return out;
}

/// Those that still may overtake.
long run_challengers(std::vector<Candidate> left, std::size_t most, Runs& runs) {
  const auto sooner = [&](const Candidate& a, const Candidate& b) { return runs.least_s(a) < runs.least_s(b); };
  for (std::size_t n = 0; n < most && !left.empty() && !runs.spent(); ++n) {
    const auto next = std::min_element(left.begin(), left.end(), sooner);
    if (runs.least_s(*next) >= runs.best_s()) break;
    runs.run(next->strategy, next->step_time_s);
    left.erase(next);
  }
  return std::count_if(left.begin(), left.end(), [&](const Candidate& c) { return runs.least_s(c) < runs.best_s(); });
}

/// The engine's winner among the candidates, at its place by the formula, if it is not there yet.
void admit(const simulate::Predictor& predictor, const Runs::Done& winner, Plan& plan) {
  const auto same = [&](const simulate::Prediction& p) { return p.strategy == winner.strategy; };
  if (std::any_of(plan.candidates.begin(), plan.candidates.end(), same)) return;
  auto full = predictor.predict(winner.strategy);
  if (!full) return;
  const auto at = std::upper_bound(plan.candidates.begin(), plan.candidates.end(), *full,
                                   [](const simulate::Prediction& a, const simulate::Prediction& b) { return a.step_time_s < b.step_time_s; });
  plan.candidates.insert(at, std::move(*full));
}

}  // namespace

void rematch(const parallel::Job& job, const Options& options, std::size_t count, double seconds_left, Plan& plan) {
  const simulate::Predictor predictor(job, {}, options.parameters);
  Runs runs(job, predictor, seconds_left);
  const std::size_t leaders = std::min(count, plan.candidates.size());
  long left = 0;
  for (std::size_t i = 0; i < leaders; ++i) {
    if (!runs.run(plan.candidates[i].strategy, plan.candidates[i].step_time_s) && runs.spent()) ++left;  // else its graph is too large
  }
  if (runs.best_s() > 0 && !runs.spent()) {
    if (auto others = challengers(job, options, predictor, seconds_left, runs)) {
      left = run_challengers(std::move(others->strategies), kChallengersOfALeader * count, runs);
      if (!others->all) left = std::max(left, 1L);
    }
  }
  const auto& done = runs.done();
  const auto first = std::min_element(done.begin(), done.end(), [](const Runs::Done& a, const Runs::Done& b) { return a.engine_s < b.engine_s; });
  if (first != done.end()) admit(predictor, *first, plan);
  for (const Runs::Done& d : done) {
    const auto at = std::find_if(plan.candidates.begin(), plan.candidates.end(), [&](const auto& p) { return p.strategy == d.strategy; });
    if (at != plan.candidates.end()) plan.engine.push_back({static_cast<std::size_t>(at - plan.candidates.begin()), d.closed_form_s, d.engine_s});
  }
  std::stable_sort(plan.engine.begin(), plan.engine.end(), [](const Rematch& a, const Rematch& b) { return a.engine_s < b.engine_s; });
  if (left > 0) plan.rejected.push_back({std::string(kNotRun), left});
}

}  // namespace chokepoint::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Best first over layouts, bounded. A layout is what a reader calls a strategy: degrees and what is shared over how many
// ranks; within it micro-batch, schedule, chunks and recomputation are tuned. Layouts come in the order of their bounds,
// so the first whose bound reaches the best found proves that best; what follows only fills the list and the families.
#include <chokepoint/plan/plan.hpp>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "families.hpp"
#include "floor.hpp"
#include "space.hpp"

namespace chokepoint::plan {

class Search {
 public:
  Search(const parallel::Job& job, const Options& options, const simulate::Predictor& predictor, const Space& space, Floors& floors);

  /// Walks the space; counts, proof and timing go into `plan`.
  void run(Plan& plan);
  /// Best first, at most as many as asked for.
  const std::vector<Candidate>& found() const { return found_; }
  const std::map<std::string, Family>& families() const { return families_; }
  /// The best of each kind of strategy that takes at most `window_s`, by the closed form: kinds differ in family, schedule
  /// or chunks, which the event engine may rate otherwise.
  std::vector<Candidate> kinds_within(double window_s);
  /// By the time limit or the caller, before the end.
  bool stopped() const { return stopped_; }
  /// Of all layouts the smallest need of memory, with the smallest micro-batch and most recomputation.
  std::optional<parallel::Strategy> smallest() const { return smallest_; }

 private:
  struct Layout {
    parallel::Strategy strategy;
    StageCounts stages;
    double bound_s = 0;
    Family* family = nullptr;
    std::vector<parallel::Strategy> kernels;  ///< those that fit with some recomputation; none: not even the states do
  };
  void list_layouts();
  void add_layout(const parallel::Strategy& sharded);
  long count_leaves(const parallel::Strategy& kernel) const;
  bool fits_somehow(const parallel::Strategy& kernel) const;
  std::vector<parallel::Strategy> fitting_kernels(const parallel::Strategy& sharded);
  void visit(const Layout& layout);
  void visit_kernel(const Layout& layout, const parallel::Strategy& kernel);
  std::vector<Candidate>* kind_of(const Layout& layout, const parallel::Strategy& leaf);
  void try_leaf(const Layout& layout, parallel::Strategy leaf, const Floor& floor);
  double limit_s(const Layout& layout) const;
  double threshold_s() const;
  void keep(const Candidate& candidate);
  void explain_misfits();
  bool go_on(double bound_s, std::size_t at);
  double elapsed_s() const;

  const parallel::Job& job_;
  const Options& options_;
  const simulate::Predictor& predictor_;
  const Space& space_;
  Floors& floors_;
  std::vector<parallel::Recompute> recomputes_;
  std::vector<Layout> layouts_;   ///< by bound
  std::vector<Layout> misfits_;   ///< no kernel fits
  std::vector<Candidate> found_;  ///< sorted; the best `top` of layouts, or of all with `variants`
  std::optional<Candidate> layout_best_;
  std::map<std::string, Family> families_;
  using Kind = std::tuple<std::size_t, parallel::Schedule, int>;
  std::map<Kind, std::vector<Candidate>> kinds_;  ///< each by time; where asked for
  double window_s_ = 0;                           ///< 0: not asked for
  std::map<std::string, long> rejected_;
  std::optional<parallel::Strategy> smallest_;
  double best_s_ = 0;             ///< 0: none
  double fastest_too_slow_s_ = 0; ///< fits but exceeds the budget
  long enumerated_ = 0, evaluated_ = 0, bounds_ = 0, misfit_leaves_ = 0;
  long until_report_ = 0;
  bool stopped_ = false;
  bool listed_ = false;  ///< all layouts have their bounds
  double current_bound_s_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double reported_s_ = 0;
};

}  // namespace chokepoint::plan

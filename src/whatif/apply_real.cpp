// SPDX-License-Identifier: Apache-2.0
// Changes of what makes ranks of a real job differ: slow ranks and hosts, stalls, jitter, uneven load.
#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apply.hpp"
#include "rewire.hpp"

namespace chokepoint::whatif {

namespace {

bool mend_ranks(RealJob& real) {
  bool found = !real.imperfections.slow_ranks.empty() || !real.imperfections.stalls.empty();
  real.imperfections.slow_ranks.clear();
  real.imperfections.stalls.clear();
  if (real.measured && real.measured->slow_rank.alone_s > 0) {
    found = true;
    real.measured->slow_rank_left = 0;
  }
  return found;
}

bool mend_load(RealJob& real) {
  engine::Imperfections& i = real.imperfections;
  bool found = i.sequence_imbalance > 0 || i.expert_imbalance > 1 || i.stage_load != 1;
  i.sequence_imbalance = 0;
  i.expert_imbalance = 1;
  i.stage_load = 1;
  if (real.measured && real.measured->uneven_load.alone_s > 0) {
    found = true;
    real.measured->uneven_load_left = 0;
  }
  return found;
}

bool mend_network(Scenario& s) {
  const bool slow = !s.real.imperfections.slow_hosts.empty();
  s.real.imperfections.slow_hosts.clear();
  return mend_links(s.job.cluster) > 0 || slow;
}

/// Sets one kind of imperfection back to none.
void clear(RealJob& real, std::string_view key) {
  engine::Imperfections& i = real.imperfections;
  if (key == "slow-rank") mend_ranks(real);
  if (key == "slow-host") i.slow_hosts.clear();
  if (key == "stall") i.stalls.clear();
  if (key == "jitter") i.jitter = 0;
  if (key == "sequences") i.sequence_imbalance = 0;
  if (key == "experts") i.expert_imbalance = 1;
  if (key == "last-stage") i.stage_load = 1;
}

Result<bool> mend(Scenario& s, const Change& c) {
  constexpr std::array<std::string_view, 4> kWhat = {"links", "ranks", "load", "all"};
  const std::string what = lower(c.value);
  if (std::find(kWhat.begin(), kWhat.end(), what) == kWhat.end())
    return fail(fmt::format("mend={}: expected one of: {}", c.value, fmt::join(kWhat, ", ")));
  const bool all = what == "all";
  const bool links = (all || what == "links") && mend_network(s);
  const bool ranks = (all || what == "ranks") && mend_ranks(s.real);
  const bool load = (all || what == "load") && mend_load(s.real);
  if (links || ranks || load) return true;
  const std::string where = s.real.any() ? "" : "; --imperfection or --from-trace says what ails it";
  if (what == "links") s.notes.push_back({"no link of this wiring runs below its specification", {}});
  if (what == "ranks") s.notes.push_back({"no rank of this job is slow" + where, {}});
  if (what == "load") s.notes.push_back({"the load of this job is even" + where, {}});
  if (all) s.notes.push_back({"nothing of this job needs mending" + where, {}});
  return true;
}

}  // namespace

bool is_real_word(std::string_view key) {
  constexpr std::array<std::string_view, 9> kWords = {"mend",   "slow-rank", "slow-host",  "stall",  "jitter",
                                                      "balance", "sequences", "last-stage", "experts"};
  return std::find(kWords.begin(), kWords.end(), key) != kWords.end();
}

Result<bool> apply_real(Scenario& s, const Change& c) {
  if (c.key == "mend") return mend(s, c);
  const std::string value = lower(c.value);
  if (c.key == "balance") {
    if (value != "even") return fail(fmt::format("balance={}: expected even", c.value));
    return mend(s, {c.text, "mend", "load"});
  }
  if (value == "none") {
    const RealJob before = s.real;
    clear(s.real, c.key);
    if (!before.any())
      s.notes.push_back({fmt::format("'{}': this job has no such thing; --imperfection or --from-trace says what ails it",
                                     c.text), {}});
    return true;
  }
  if (s.real.measured)
    return fail(fmt::format("'{}': the traces show what ails this job; a change can take it away, not add to it", c.text),
                {}, {fmt::format("{}=none", c.key)});
  TRY_INTO([[maybe_unused]] const bool parsed, engine::parse_imperfection(c.key + "=" + c.value, s.real.imperfections));
  return true;
}

}  // namespace chokepoint::whatif

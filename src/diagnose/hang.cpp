// SPDX-License-Identifier: Apache-2.0
// Three kinds of evidence, strongest first.
// - Device stuck: a rank still waits for a collective that its peers have finished (they are past it). Only its own device
//   can be the reason, since a collective ends for all or none.
// - Host stopped: a rank has nothing pending while its peers wait for it in operations it never issued.
// - Behind: a rank has issued less than all its peers, though something is pending; named only where nothing else is, for it
//   may itself wait for another.
#include <chokepoint/diagnose/hang.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace chokepoint::diagnose {

using trace::FlightDump;
using trace::FlightEntry;
using trace::FlightState;

namespace {

struct GroupView {
  std::string description;
  std::set<int> ranks;
  std::map<int, std::int64_t> first_pending;  ///< by rank
  std::map<int, std::int64_t> last_issued;
};

class HangFinder {
 public:
  explicit HangFinder(std::vector<FlightDump> dumps) : dumps_(std::move(dumps)) {}

  Result<HangReport> run() {
    if (const auto settled = settle(); !settled) return tl::make_unexpected(settled.error());
    collect();
    stuck_devices();
    stopped_hosts();
    if (faulty_.empty()) behind();
    for (auto& [rank, faulty] : faulty_) report_.faulty.push_back(std::move(faulty));
    list_pending();
    report_.verdict = verdict();
    return std::move(report_);
  }

 private:
  Result<bool> settle() {
    if (dumps_.empty()) return fail("nothing to diagnose: no dumps");
    std::map<int, FlightDump> by_rank;
    for (FlightDump& dump : dumps_) {
      if (dump.rank < 0) return fail("which rank is this? A dump's name ends in its rank (prefix12 or prefix12.json)", {dump.file, 0, 0});
      by_rank.try_emplace(dump.rank, std::move(dump));
    }
    dumps_.clear();
    for (auto& [rank, dump] : by_rank) dumps_.push_back(std::move(dump));
    report_.dumps = static_cast<int>(dumps_.size());
    return true;
  }

  static bool is_pending(const FlightEntry& e) { return e.state != FlightState::kCompleted; }

  void collect() {
    std::set<int> known;
    std::set<int> members;
    for (const FlightDump& dump : dumps_) {
      known.insert(dump.rank);
      for (const auto& [name, group] : dump.groups) {
        groups_[name].description = group.description;
        groups_[name].ranks.insert(group.ranks.begin(), group.ranks.end());
        members.insert(group.ranks.begin(), group.ranks.end());
      }
      for (const FlightEntry& e : dump.entries) {
        if (e.point_to_point) continue;
        GroupView& view = groups_[e.group];
        view.ranks.insert(dump.rank);
        if (view.description.empty()) view.description = e.description;
        std::int64_t& last = view.last_issued.try_emplace(dump.rank, e.sequence).first->second;
        last = std::max(last, e.sequence);
        if (!is_pending(e)) continue;
        std::int64_t& first = view.first_pending.try_emplace(dump.rank, e.sequence).first->second;
        first = std::min(first, e.sequence);
      }
    }
    for (const int rank : members) {
      if (known.count(rank) == 0) missing_dumps_.push_back(rank);
    }
    if (!missing_dumps_.empty()) {
      report_.notes.push_back({"no dump of " + list(missing_dumps_) + ": a rank that could not write one is itself suspect", {}});
    }
  }

  static std::string list(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    return text;
  }

  void blame(int rank, const char* kind, std::string evidence) { faulty_.try_emplace(rank, FaultyRank{rank, kind, std::move(evidence)}); }

  static std::string title(const std::string& name, const GroupView& view) {
    return view.description.empty() ? "group " + name : "group " + name + " (" + view.description + ")";
  }

  void stuck_devices() {
    for (const auto& [name, view] : groups_) {
      std::int64_t furthest = -1;
      int ahead = -1;
      for (const auto& [rank, first] : view.first_pending) {
        if (first > furthest) {
          furthest = first;
          ahead = rank;
        }
      }
      for (const auto& [rank, first] : view.first_pending) {
        if (first >= furthest) continue;
        blame(rank, "device-stuck",
              "still waits for collective " + std::to_string(first) + " of " + title(name, view) + ", which rank " + std::to_string(ahead) +
                  " has finished (it waits for " + std::to_string(furthest) + ")");
      }
    }
  }

  void stopped_hosts() {
    for (const FlightDump& dump : dumps_) {
      if (std::any_of(dump.entries.begin(), dump.entries.end(), is_pending)) continue;
      int waiting = 0;
      std::string example;
      for (const auto& [name, view] : groups_) {
        if (view.ranks.count(dump.rank) == 0 || view.first_pending.empty()) continue;
        waiting += static_cast<int>(view.first_pending.size());
        if (example.empty()) example = title(name, view);
      }
      if (waiting > 0) blame(dump.rank, "host-stopped", "has nothing pending, while its peers wait for it, among others in " + example);
    }
  }

  void behind() {
    for (const auto& [name, view] : groups_) {
      std::int64_t furthest = -1;
      for (const auto& [rank, last] : view.last_issued) furthest = std::max(furthest, last);
      for (const int rank : view.ranks) {
        const bool dumped = std::any_of(dumps_.begin(), dumps_.end(), [r = rank](const FlightDump& d) { return d.rank == r; });
        const auto last = view.last_issued.find(rank);
        if (!dumped || view.first_pending.empty() || (last != view.last_issued.end() && last->second >= furthest)) continue;
        blame(rank, "behind", "has not issued collective " + std::to_string(furthest) + " of " + title(name, view) + ", which its peers wait for");
      }
    }
  }

  void list_pending() {
    std::map<std::pair<std::string, std::int64_t>, PendingCollective> found;
    for (const FlightDump& dump : dumps_) {
      for (const FlightEntry& e : dump.entries) {
        if (e.point_to_point || !is_pending(e)) continue;
        PendingCollective& p = found[{e.group, e.sequence}];
        if (p.present.empty()) {
          p = {e.group, e.description, e.op, e.sizes, e.dtype, e.sequence, {}, {}, e.created_ns};
        }
        p.present.push_back(dump.rank);
        p.created_ns = std::min(p.created_ns, e.created_ns);
      }
    }
    for (auto& [key, p] : found) {
      for (const int rank : groups_[key.first].ranks) {
        if (std::find(p.present.begin(), p.present.end(), rank) == p.present.end()) p.missing.push_back(rank);
      }
      if (!p.missing.empty()) report_.pending.push_back(std::move(p));
    }
    std::stable_sort(report_.pending.begin(), report_.pending.end(), [](const PendingCollective& a, const PendingCollective& b) { return a.created_ns < b.created_ns; });
  }

  std::string verdict() const {
    if (report_.faulty.empty()) {
      return missing_dumps_.empty() ? "No rank stands out: every pending collective was issued by all its members" : "Look at " + list(missing_dumps_) + ", which wrote no dump";
    }
    std::vector<int> ranks;
    for (const FaultyRank& f : report_.faulty) ranks.push_back(f.rank);
    const std::string& kind = report_.faulty.front().kind;
    std::string text = "The job waits for " + list(ranks);
    if (kind == "device-stuck") text += ": the device no longer finishes what was issued";
    if (kind == "host-stopped") text += ": the host no longer issues anything";
    if (kind == "behind") text += ": issued less than all peers";
    return text;
  }

  std::vector<FlightDump> dumps_;
  std::map<std::string, GroupView> groups_;
  std::vector<int> missing_dumps_;
  std::map<int, FaultyRank> faulty_;
  HangReport report_;
};

}  // namespace

Result<HangReport> find_hang(std::vector<FlightDump> dumps) { return HangFinder(std::move(dumps)).run(); }

}  // namespace chokepoint::diagnose

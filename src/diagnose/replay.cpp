// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace chokepoint::diagnose {

using simulate::Bill;
using trace::RankTrace;

namespace {

bool is_communication(Bill item) {
  switch (item) {
    case Bill::kTensor:
    case Bill::kContext:
    case Bill::kExpert:
    case Bill::kPipeline:
    case Bill::kDataGather:
    case Bill::kDataReduce: return true;
    default: return false;
  }
}

Removable removable_of(const Segment& s) {
  if (is_communication(s.item)) return Removable::kWire;
  if (s.item == Bill::kHost) return s.host == HostPart::kDataLoader ? Removable::kDataLoader : Removable::kHost;
  if (s.item == Bill::kOffload) return Removable::kCopies;
  if (s.item == Bill::kOther) return Removable::kIdle;
  return Removable::kCount;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Replay::Replay(const std::vector<RankTrace>& traces, const std::vector<std::vector<Segment>>& segments,
               const std::vector<MatchedCollective>& collectives, const Interval& window)
    : window_(window), lines_(traces.size()) {
  std::vector<std::set<std::int32_t>> matched(traces.size());
  for (const MatchedCollective& c : collectives) {
    if (c.members.size() < 2) continue;
    for (std::size_t i = 0; i < c.members.size(); ++i) matched[static_cast<std::size_t>(c.members[i])].insert(static_cast<std::int32_t>(c.events[i]));
  }
  for (std::size_t m = 0; m < traces.size(); ++m) {
    Line& line = lines_[m];
    for (const Segment& s : segments[m]) {
      if (is_communication(s.item) && matched[m].count(s.event) != 0) {
        const bool joins = !line.blocks.empty() && line.block_event.back() == s.event && line.blocks.back().end_ns == s.span.begin_ns;
        if (joins) {
          line.blocks.back().end_ns = s.span.end_ns;
        } else {
          line.blocks.push_back(s.span);
          line.block_event.push_back(s.event);
        }
        continue;
      }
      line.pieces.push_back({s.span.end_ns - s.span.begin_ns, removable_of(s)});
      line.begin_ns.push_back(s.span.begin_ns);
    }
    line.rank_excess_ns.assign(line.pieces.size(), 0);
    line.spread_ns.assign(line.pieces.size(), 0);
  }
  build_meetings(traces, collectives);
  even_out();
}

Replay::Visit Replay::visit_of(int member, std::int64_t start_ns, std::int64_t end_ns) const {
  const Line& line = lines_[static_cast<std::size_t>(member)];
  const auto begun_before = [&line](std::int64_t at) {
    return static_cast<std::size_t>(std::lower_bound(line.begin_ns.begin(), line.begin_ns.end(), at) - line.begin_ns.begin());
  };
  Visit v;
  v.member = member;
  v.start_ns = start_ns;
  v.end_ns = end_ns;
  v.arrive = begun_before(start_ns);
  v.resume = begun_before(end_ns);
  const bool moving = v.arrive < line.begin_ns.size() && line.begin_ns[v.arrive] == start_ns;
  if (!moving && v.arrive > 0) v.offset_ns = start_ns - (line.begin_ns[v.arrive - 1] + line.pieces[v.arrive - 1].ns);
  const auto block = std::lower_bound(line.blocks.begin(), line.blocks.end(), end_ns, [](const Interval& b, std::int64_t t) { return b.end_ns < t; });
  v.blocks = block != line.blocks.end() && block->end_ns == end_ns;
  return v;
}

void Replay::build_meetings(const std::vector<RankTrace>& traces, const std::vector<MatchedCollective>& collectives) {
  for (const MatchedCollective& c : collectives) {
    if (c.members.size() < 2 || c.last_start_ns < window_.begin_ns || c.last_start_ns >= window_.end_ns) continue;
    Meeting meeting;
    meeting.wire_ns = c.wire_ns();
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      const trace::DeviceEvents& d = traces[static_cast<std::size_t>(c.members[i])].device;
      meeting.visits.push_back(visit_of(c.members[i], d.start_ns[c.events[i]], d.end_ns[c.events[i]]));
    }
    meetings_.push_back(std::move(meeting));
  }
}

/// Splits the differences in compute: what a rank always takes longer than the median, and what differs between two
/// meetings of all ranks beyond that.
void Replay::even_out() {
  if (lines_.size() < 2) return;
  std::vector<double> total(lines_.size(), 0);
  for (std::size_t m = 0; m < lines_.size(); ++m) {
    for (const Piece& p : lines_[m].pieces) total[m] += p.kind == Removable::kCount ? static_cast<double>(p.ns) : 0;
  }
  const double typical = median(total);
  if (typical <= 0) return;
  for (std::size_t m = 0; m < lines_.size(); ++m) {
    if (slowest_ < 0 || total[m] > total[static_cast<std::size_t>(slowest_)]) slowest_ = static_cast<int>(m);
    const double share = total[m] > typical ? 1 - typical / total[m] : 0;
    for (std::size_t k = 0; k < lines_[m].pieces.size(); ++k) {
      if (lines_[m].pieces[k].kind == Removable::kCount) lines_[m].rank_excess_ns[k] = share * static_cast<double>(lines_[m].pieces[k].ns);
    }
  }
  slowest_factor_ = total[static_cast<std::size_t>(slowest_)] / typical;
  std::vector<std::size_t> from(lines_.size(), 0);
  for (const Meeting& meeting : meetings_) {
    if (meeting.visits.size() < lines_.size()) continue;
    std::vector<double> work(lines_.size(), 0);
    double mean = 0;
    for (const Visit& v : meeting.visits) {
      const auto m = static_cast<std::size_t>(v.member);
      const Line& line = lines_[m];
      for (std::size_t k = from[m]; k < v.arrive; ++k) {
        if (line.pieces[k].kind == Removable::kCount) work[m] += static_cast<double>(line.pieces[k].ns) - line.rank_excess_ns[k];
      }
      mean += work[m] / static_cast<double>(lines_.size());
    }
    for (const Visit& v : meeting.visits) {
      const auto m = static_cast<std::size_t>(v.member);
      Line& line = lines_[m];
      const double share = work[m] > 0 ? 1 - mean / work[m] : 0;
      for (std::size_t k = from[m]; k < v.arrive; ++k) {
        if (line.pieces[k].kind == Removable::kCount) line.spread_ns[k] = share * (static_cast<double>(line.pieces[k].ns) - line.rank_excess_ns[k]);
      }
      from[m] = std::max(from[m], v.arrive);
    }
  }
}

std::vector<double> Replay::progress(std::size_t member, unsigned mask) const {
  const auto removed = [mask](Removable kind) { return (mask & (1u << static_cast<unsigned>(kind))) != 0; };
  const Line& line = lines_[member];
  std::vector<double> done(line.pieces.size() + 1, 0);
  for (std::size_t k = 0; k < line.pieces.size(); ++k) {
    const Piece& p = line.pieces[k];
    double ns = static_cast<double>(p.ns);
    if (p.kind == Removable::kCount) {
      if (removed(Removable::kSlowRank)) ns -= line.rank_excess_ns[k];
      if (removed(Removable::kImbalance)) ns -= line.spread_ns[k];
    } else if (removed(p.kind)) {
      ns = 0;
    }
    done[k + 1] = done[k] + ns;
  }
  return done;
}

namespace {

/// Where a rank's line stands in a replay, in nanoseconds.
struct Progress {
  std::vector<double> done;        ///< work up to each piece
  std::size_t at = 0;              ///< pieces before the point from which time counts
  double time = 0;                 ///< there, after waiting
  double before = 0;               ///< there, before waiting
  std::int64_t last_end_ns = std::numeric_limits<std::int64_t>::min();  ///< measured end of what it waited for there

  double time_at(std::size_t piece) const { return time + done[piece] - done[at]; }
};

}  // namespace

double Replay::seconds_without(unsigned mask) const {
  const bool no_wire = (mask & (1u << static_cast<unsigned>(Removable::kWire))) != 0;
  std::vector<Progress> lines(lines_.size());
  for (std::size_t m = 0; m < lines_.size(); ++m) lines[m].done = progress(m, mask);
  const auto arrival = [&](const Visit& v) {
    const Progress& line = lines[static_cast<std::size_t>(v.member)];
    double offset = static_cast<double>(v.offset_ns);
    if (v.offset_ns > 0 && line.at == v.arrive) {
      // The line stood still. After the end of another collective: issued behind it; else while it ran.
      return line.last_end_ns <= v.start_ns ? line.time + static_cast<double>(v.start_ns - line.last_end_ns) : line.before + offset;
    }
    if (v.offset_ns < 0) {  // inside a piece: what was still to come of it shrinks with it
      const double measured = static_cast<double>(lines_[static_cast<std::size_t>(v.member)].pieces[v.arrive - 1].ns);
      offset *= measured > 0 ? (line.done[v.arrive] - line.done[v.arrive - 1]) / measured : 0;
    }
    return line.time_at(v.arrive) + offset;
  };
  for (const Meeting& meeting : meetings_) {
    double last = 0;
    for (const Visit& v : meeting.visits) last = std::max(last, arrival(v));
    const double end = last + (no_wire ? 0 : static_cast<double>(meeting.wire_ns));
    for (const Visit& v : meeting.visits) {
      Progress& line = lines[static_cast<std::size_t>(v.member)];
      if (!v.blocks || v.resume < line.at) continue;
      const double reached = line.time_at(v.resume);
      if (v.resume != line.at) line.before = reached;
      line.time = std::max(reached, end);
      line.at = v.resume;
      line.last_end_ns = v.end_ns;
    }
  }
  double longest = 0;
  for (std::size_t m = 0; m < lines.size(); ++m) longest = std::max(longest, lines[m].time_at(lines_[m].pieces.size()));
  return longest * 1e-9;
}

}  // namespace chokepoint::diagnose

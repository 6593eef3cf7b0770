// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "match.hpp"

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

Replay::Replay(const std::vector<RankTrace>& traces, const std::function<std::vector<Segment>(std::size_t)>& segments_of,
               const std::vector<MatchedCollective>& collectives, const Interval& window)
    : window_(window), lines_(traces.size()) {
  std::vector<std::set<std::int32_t>> matched(traces.size());
  for (const MatchedCollective& c : collectives) {
    if (c.members.size() < 2) continue;
    for (std::size_t i = 0; i < c.members.size(); ++i) matched[static_cast<std::size_t>(c.members[i])].insert(static_cast<std::int32_t>(c.events[i]));
  }
  for (std::size_t m = 0; m < traces.size(); ++m) {
    Line& line = lines_[m];
    const std::vector<Segment> segments = segments_of(m);
    std::size_t pieces = 0;
    for (const Segment& s : segments) pieces += is_communication(s.item) ? 0 : 1;
    line.pieces.reserve(pieces);
    line.begin_ns.reserve(pieces);
    for (const Segment& s : segments) {
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
      line.pieces.push_back({s.span.end_ns - s.span.begin_ns, s.event, removable_of(s), false});
      line.begin_ns.push_back(s.span.begin_ns);
    }
    line.rank_excess_ns.assign(line.pieces.size(), 0);
    line.spread_ns.assign(line.pieces.size(), 0);
  }
  build_meetings(traces, collectives);
  for (Line& line : lines_) line.begin_ns = {};
  find_stages(collectives);
  mark_own_work(traces);
  even_out();
}

namespace {

/// Groups that reach across stages although they are no sends: tied embeddings, Megatron-LM's norm over a model's ranks.
bool joins_stages(const MatchedCollective& c) {
  if (c.dimension == Bill::kPipeline) return true;
  const std::size_t blank = c.group.find(' ');
  const std::string_view words = blank == std::string::npos ? std::string_view(c.group) : std::string_view(c.group).substr(blank + 1);
  return words.find("EMBEDDING") != std::string_view::npos || words.substr(0, 14) == "MODEL_PARALLEL";
}

}  // namespace

void Replay::find_stages(const std::vector<MatchedCollective>& collectives) {
  stage_of_.resize(lines_.size());
  for (std::size_t m = 0; m < lines_.size(); ++m) stage_of_[m] = static_cast<int>(m);
  const auto root = [this](int m) {
    while (stage_of_[static_cast<std::size_t>(m)] != m) m = stage_of_[static_cast<std::size_t>(m)];
    return m;
  };
  bool pipelined = false;
  for (const MatchedCollective& c : collectives) {
    pipelined = pipelined || c.dimension == Bill::kPipeline;
    if (joins_stages(c) || c.members.size() >= lines_.size()) continue;
    for (const int m : c.members) {
      const int a = root(c.members.front());
      const int b = root(m);
      stage_of_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  for (std::size_t m = 0; m < lines_.size(); ++m) stage_of_[m] = pipelined ? root(static_cast<int>(m)) : 0;
}

namespace {

/// A kernel's name without its numbers: tile sizes and layers differ where the work does not.
std::string kind_of(std::string_view kernel) {
  std::string kind;
  for (const char c : kernel) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

}  // namespace

void Replay::mark_own_work(const std::vector<RankTrace>& traces) {
  constexpr int kSeveral = -1;
  std::map<std::string, int, std::less<>> stage_of_kind;
  std::vector<std::vector<int*>> by_name(traces.size());  // of each rank's kernel names: the entry above
  for (std::size_t m = 0; m < lines_.size(); ++m) {
    by_name[m].resize(traces[m].names.size(), nullptr);
    for (const Piece& p : lines_[m].pieces) {
      if (p.kind != Removable::kCount || p.event < 0) continue;
      const trace::NameId name = traces[m].device.name[static_cast<std::size_t>(p.event)];
      if (by_name[m][name] != nullptr) continue;
      const auto [at, fresh] = stage_of_kind.try_emplace(kind_of(traces[m].names[name]), stage_of_[m]);
      if (!fresh && at->second != stage_of_[m]) at->second = kSeveral;
      by_name[m][name] = &at->second;
    }
  }
  std::vector<double> own(lines_.size(), 0);
  std::vector<double> all(lines_.size(), 0);
  for (std::size_t m = 0; m < lines_.size(); ++m) {
    for (Piece& p : lines_[m].pieces) {
      if (p.kind != Removable::kCount) continue;
      all[m] += static_cast<double>(p.ns);
      p.own = p.event >= 0 && *by_name[m][traces[m].device.name[static_cast<std::size_t>(p.event)]] != kSeveral;
      own[m] += p.own ? static_cast<double>(p.ns) : 0;
    }
  }
  // Stages that have next to nothing in common say nothing of each other; and one stage alone is not compared.
  constexpr double kMostOwn = 0.5;
  bool alike = std::any_of(stage_of_.begin(), stage_of_.end(), [this](int stage) { return stage != stage_of_.front(); });
  for (std::size_t m = 0; m < lines_.size(); ++m) alike = alike && own[m] <= kMostOwn * all[m];
  if (alike) return find_own_work(traces, own, all);
  for (Line& line : lines_) {
    for (Piece& p : line.pieces) p.own = false;
  }
}

void Replay::find_own_work(const std::vector<RankTrace>& traces, const std::vector<double>& own, const std::vector<double>& all) {
  const std::size_t most = static_cast<std::size_t>(std::max_element(own.begin(), own.end()) - own.begin());
  std::vector<double> others;
  for (std::size_t m = 0; m < all.size(); ++m) {
    if (stage_of_[m] == stage_of_[most]) {
      own_work_.ranks.push_back(static_cast<int>(m));
    } else {
      others.push_back(all[m]);
    }
  }
  own_work_.seconds = std::max(0.0, std::min(own[most], all[most] - median(others))) * 1e-9;
  std::map<std::string_view, std::int64_t> kernels;
  for (const Piece& p : lines_[most].pieces) {
    if (p.own) kernels[traces[most].names[traces[most].device.name[static_cast<std::size_t>(p.event)]]] += p.ns;
  }
  const auto longest = std::max_element(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (longest != kernels.end()) own_work_.kernel = longest->first;
}

void Replay::find_heavy_stage(const std::vector<double>& total, double& typical) {
  std::map<int, std::vector<int>> stages;
  for (std::size_t m = 0; m < total.size(); ++m) stages[stage_of_[m]].push_back(static_cast<int>(m));
  if (stages.size() < 2) return;
  const auto least = [&total](const std::vector<int>& ranks) {
    double least = total[static_cast<std::size_t>(ranks.front())];
    for (const int m : ranks) least = std::min(least, total[static_cast<std::size_t>(m)]);
    return least;
  };
  const std::vector<int>* heaviest = nullptr;
  for (const auto& [name, ranks] : stages) {
    if (ranks.size() > 1 && (heaviest == nullptr || least(ranks) > least(*heaviest))) heaviest = &ranks;
  }
  if (heaviest == nullptr) return;
  std::vector<double> others;
  for (std::size_t m = 0; m < total.size(); ++m) {
    if (stage_of_[m] != stage_of_[static_cast<std::size_t>(heaviest->front())]) others.push_back(total[m]);
  }
  const double usual = median(others);
  const double slowest = *std::max_element(total.begin(), total.end());
  constexpr double kClearly = 1.02;
  // Each of its ranks is as slow as the slowest, or nearly: the stage has more to do.
  const bool all_slow = least(*heaviest) - usual > 0.5 * (slowest - usual);
  if (usual <= 0 || least(*heaviest) < kClearly * usual || !all_slow) return;
  heavy_stage_ = *heaviest;
  typical = usual;
}

namespace {

/// When a communication could have begun on its own rank: once the compute that was launched before it is over (a
/// communication stream waits for the event recorded there), and its stream's operation before it.
class Readiness {
 public:
  explicit Readiness(const RankTrace& trace) : trace_(trace) {
    const trace::DeviceEvents& d = trace.device;
    for (std::size_t i = 0; i < d.size(); ++i) {
      if (d.work[i] == trace::Work::kCompute && d.launch[i] >= 0) launches_.push_back({launch_of(i), d.end_ns[i]});
    }
    std::sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) { return a.at_ns < b.at_ns; });
    for (std::size_t k = 1; k < launches_.size(); ++k) launches_[k].latest_end_ns = std::max(launches_[k].latest_end_ns, launches_[k - 1].latest_end_ns);
  }

  std::int64_t ready_ns(std::size_t event) const {
    const std::int64_t start = trace_.device.start_ns[event];
    if (trace_.device.launch[event] < 0) return start;
    const auto after = std::lower_bound(launches_.begin(), launches_.end(), launch_of(event), [](const Launch& l, std::int64_t at) { return l.at_ns < at; });
    return after == launches_.begin() ? start : std::min(start, (after - 1)->latest_end_ns);
  }

 private:
  struct Launch {
    std::int64_t at_ns = 0;
    std::int64_t latest_end_ns = 0;  ///< of all work launched up to here
  };
  std::int64_t launch_of(std::size_t event) const {
    return trace_.host_events.start_ns[static_cast<std::size_t>(trace_.device.launch[event])];
  }
  const RankTrace& trace_;
  std::vector<Launch> launches_;
};

}  // namespace

Replay::Visit Replay::visit_of(int member, std::int64_t ready_ns, std::int64_t end_ns) const {
  const Line& line = lines_[static_cast<std::size_t>(member)];
  const auto begun_before = [&line](std::int64_t at) {
    return static_cast<std::size_t>(std::lower_bound(line.begin_ns.begin(), line.begin_ns.end(), at) - line.begin_ns.begin());
  };
  Visit v;
  v.member = member;
  v.ready_ns = ready_ns;
  v.end_ns = end_ns;
  v.arrive = begun_before(ready_ns);
  v.resume = begun_before(end_ns);
  const bool moving = v.arrive < line.begin_ns.size() && line.begin_ns[v.arrive] == ready_ns;
  if (!moving && v.arrive > 0) v.offset_ns = ready_ns - (line.begin_ns[v.arrive - 1] + line.pieces[v.arrive - 1].ns);
  const auto block = std::lower_bound(line.blocks.begin(), line.blocks.end(), end_ns, [](const Interval& b, std::int64_t t) { return b.end_ns < t; });
  v.blocks = block != line.blocks.end() && block->end_ns == end_ns;
  return v;
}

namespace {
constexpr std::int64_t kRounding_ns = 1000;  // a stream's next operation may seem to start before the last one's end
}

namespace {

/// What a transfer takes beyond what the wiring gives it.
std::int64_t slow_part_ns(const MatchedCollective& c) {
  if (c.expected_bus_bytes_per_s <= 0 || c.bytes <= 0 || static_cast<int>(c.members.size()) < c.group_size) return 0;
  const double expected_ns = 1e9 * static_cast<double>(c.bytes) * collective::bus_factor(c.op, c.group_size) / c.expected_bus_bytes_per_s;
  constexpr double kClearly = 1.3;  // expectations are good to some 10 %, and transfers share links
  const auto wire = static_cast<double>(c.wire_ns());
  return wire > kClearly * expected_ns ? static_cast<std::int64_t>(wire - expected_ns) : 0;
}

}  // namespace

void Replay::build_meetings(const std::vector<RankTrace>& traces, const std::vector<MatchedCollective>& collectives) {
  const std::vector<Readiness> readiness(traces.begin(), traces.end());
  std::vector<std::map<std::int32_t, std::int64_t>> stream_end(traces.size());
  for (const MatchedCollective& c : collectives) {
    if (c.members.size() < 2 || c.last_start_ns < window_.begin_ns || c.last_start_ns >= window_.end_ns) continue;
    Meeting meeting;
    meeting.wire_ns = c.wire_ns();
    meeting.slow_ns = slow_part_ns(c);
    meeting.early = c.early;
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      const auto m = static_cast<std::size_t>(c.members[i]);
      const trace::DeviceEvents& d = traces[m].device;
      const std::int64_t start = d.start_ns[c.events[i]];
      const auto before = stream_end[m].find(d.stream[c.events[i]]);
      const bool queued = before != stream_end[m].end() && before->second <= start + kRounding_ns;
      // Behind nothing on its stream: what it waited for besides its own rank's work is unknown, so its start stands.
      const std::int64_t ready = queued && before->second > readiness[m].ready_ns(c.events[i]) ? readiness[m].ready_ns(c.events[i]) : start;
      Visit visit = visit_of(c.members[i], ready, d.end_ns[c.events[i]]);
      visit.stream = d.stream[c.events[i]];
      visit.blocks = visit.blocks || receives(traces[m], c.events[i]);
      if (c.op != collective::Op::kSendRecv) visit.later_ns = d.end_ns[c.events[i]] - c.first_end_ns;
      visit.queued = queued && ready < start;
      if (visit.queued) visit.lag_ns = std::max<std::int64_t>(0, start - std::max(ready, before->second));
      stream_end[m][visit.stream] = visit.end_ns;
      meeting.visits.push_back(visit);
    }
    meeting.last_start_ns = c.last_start_ns;
    meeting.first_visit = visits_;
    visits_ += meeting.visits.size();
    meetings_.push_back(std::move(meeting));
  }
  order_points();
}

void Replay::order_points() {
  for (std::size_t k = 0; k < meetings_.size(); ++k) {
    const Meeting& meeting = meetings_[k];
    points_.push_back({meeting.last_start_ns, k, Point::What::kMeet, 0});
    for (std::size_t i = 0; i < meeting.visits.size(); ++i) {
      const Visit& v = meeting.visits[i];
      points_.push_back({std::min(v.ready_ns, meeting.last_start_ns), k, Point::What::kReady, i});
      if (v.blocks) points_.push_back({std::max(v.end_ns, meeting.last_start_ns), k, Point::What::kLeave, i});
    }
  }
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
    return std::tie(a.at_ns, a.meeting, a.what, a.visit) < std::tie(b.at_ns, b.meeting, b.what, b.visit);
  });
}

/// Splits the differences in compute: what a rank always takes longer than the median, and what differs between two
/// meetings of all ranks beyond that.
void Replay::even_out() {
  if (lines_.size() < 2) return;
  std::vector<double> total(lines_.size(), 0);
  for (std::size_t m = 0; m < lines_.size(); ++m) {
    for (const Piece& p : lines_[m].pieces) total[m] += p.kind == Removable::kCount && !p.own ? static_cast<double>(p.ns) : 0;
  }
  double typical = median(total);
  find_heavy_stage(total, typical);
  if (typical <= 0) return;
  for (std::size_t m = 0; m < lines_.size(); ++m) {
    if (slowest_ < 0 || total[m] > total[static_cast<std::size_t>(slowest_)]) slowest_ = static_cast<int>(m);
    const double share = total[m] > typical ? 1 - typical / total[m] : 0;
    for (std::size_t k = 0; k < lines_[m].pieces.size(); ++k) {
      const Piece& p = lines_[m].pieces[k];
      // A slow rank is slow in all it does; a stage with more to do is not slower in what it alone does.
      if (p.kind == Removable::kCount && (!p.own || heavy_stage_.empty())) lines_[m].rank_excess_ns[k] = share * static_cast<double>(p.ns);
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
        if (line.pieces[k].kind == Removable::kCount && !line.pieces[k].own) work[m] += static_cast<double>(line.pieces[k].ns) - line.rank_excess_ns[k];
      }
      mean += work[m] / static_cast<double>(lines_.size());
    }
    for (const Visit& v : meeting.visits) {
      const auto m = static_cast<std::size_t>(v.member);
      Line& line = lines_[m];
      const double share = work[m] > 0 ? 1 - mean / work[m] : 0;
      for (std::size_t k = from[m]; k < v.arrive; ++k) {
        if (line.pieces[k].kind == Removable::kCount && !line.pieces[k].own) line.spread_ns[k] = share * (static_cast<double>(line.pieces[k].ns) - line.rank_excess_ns[k]);
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
  std::map<std::int32_t, double> stream_end;  ///< of the last meeting on each stream

  double time_at(std::size_t piece) const { return time + done[piece] - done[at]; }
};

}  // namespace

bool Replay::has(Removable kind) const {
  switch (kind) {
    case Removable::kSlowRank: return slowest_factor_ > 1;
    case Removable::kImbalance: return lines_.size() > 1;
    case Removable::kWire:
      if (std::any_of(meetings_.begin(), meetings_.end(), [](const Meeting& m) { return m.wire_ns > 0 && !m.early; })) return true;
      break;  // or transfers whose peers are unknown
    case Removable::kSlowWire: return std::any_of(meetings_.begin(), meetings_.end(), [](const Meeting& m) { return m.slow_ns > 0; });
    case Removable::kEarly: return std::any_of(meetings_.begin(), meetings_.end(), [](const Meeting& m) { return m.early; });
    default: break;
  }
  return std::any_of(lines_.begin(), lines_.end(), [kind](const Line& line) {
    return std::any_of(line.pieces.begin(), line.pieces.end(), [kind](const Piece& p) { return p.kind == kind; });
  });
}

double Replay::seconds_without(unsigned mask) const {
  const bool no_wire = (mask & (1u << static_cast<unsigned>(Removable::kWire))) != 0;
  std::vector<Progress> lines(lines_.size());
  for (std::size_t m = 0; m < lines_.size(); ++m) lines[m].done = progress(m, mask);
  const auto ready = [&](const Visit& v) {
    const Progress& line = lines[static_cast<std::size_t>(v.member)];
    double offset = static_cast<double>(v.offset_ns);
    if (v.offset_ns > 0 && line.at == v.arrive) {
      // The line stood still. After the end of another collective: issued behind it; else while it ran.
      return line.last_end_ns <= v.ready_ns ? line.time + static_cast<double>(v.ready_ns - line.last_end_ns) : line.before + offset;
    }
    if (v.offset_ns < 0) {  // inside a piece: what was still to come of it shrinks with it
      const double measured = static_cast<double>(lines_[static_cast<std::size_t>(v.member)].pieces[v.arrive - 1].ns);
      offset *= measured > 0 ? (line.done[v.arrive] - line.done[v.arrive - 1]) / measured : 0;
    }
    return line.time_at(v.arrive) + offset;
  };
  const bool no_slow_wire = (mask & (1u << static_cast<unsigned>(Removable::kSlowWire))) != 0;
  const auto wire_of = [&](const Meeting& m) {
    const std::int64_t usual = m.wire_ns - m.slow_ns;
    return static_cast<double>((no_wire && !m.early ? 0 : usual) + (no_slow_wire ? 0 : m.slow_ns));
  };
  const bool no_early = (mask & (1u << static_cast<unsigned>(Removable::kEarly))) != 0;
  std::vector<double> when(visits_, 0);  // ready, then over, of each visit
  for (const Point& point : points_) {
    const Meeting& meeting = meetings_[point.meeting];
    if (meeting.early && no_early) continue;
    if (point.what == Point::What::kMeet) {
      const auto member = [&](const Visit& v) -> Progress& { return lines[static_cast<std::size_t>(v.member)]; };
      double last = 0;
      for (std::size_t i = 0; i < meeting.visits.size(); ++i) {
        const Visit& v = meeting.visits[i];
        const double own = when[meeting.first_visit + i];
        last = std::max(last, v.queued ? std::max(own, member(v).stream_end[v.stream]) + static_cast<double>(v.lag_ns) : own);
      }
      const double first_end = last + wire_of(meeting);
      for (std::size_t i = 0; i < meeting.visits.size(); ++i) {
        const Visit& v = meeting.visits[i];
        const double end = first_end + (no_wire && !meeting.early ? 0 : static_cast<double>(v.later_ns));
        member(v).stream_end[v.stream] = end;
        when[meeting.first_visit + i] = end;
      }
      continue;
    }
    const Visit& v = meeting.visits[point.visit];
    double& at = when[meeting.first_visit + point.visit];
    if (point.what == Point::What::kReady) {
      at = ready(v);
      continue;
    }
    Progress& line = lines[static_cast<std::size_t>(v.member)];
    if (v.resume < line.at) continue;
    const double reached = line.time_at(v.resume);
    if (v.resume != line.at) line.before = reached;
    line.time = std::max(reached, at);
    line.at = v.resume;
    line.last_end_ns = v.end_ns;
  }
  double longest = 0;
  for (std::size_t m = 0; m < lines.size(); ++m) longest = std::max(longest, lines[m].time_at(lines_[m].pieces.size()));
  return longest * 1e-9;
}

}  // namespace chokepoint::diagnose

// SPDX-License-Identifier: Apache-2.0
#include "bill.hpp"

#include <algorithm>

#include "host_labels.hpp"

namespace chokepoint::diagnose {

using simulate::Bill;
using trace::RankTrace;
using trace::Work;

std::vector<CommunicationView> communication_views(const std::vector<RankTrace>& traces, const std::vector<MatchedCollective>& collectives) {
  std::vector<CommunicationView> views(traces.size());
  for (std::size_t m = 0; m < traces.size(); ++m) {
    views[m].dimension.assign(traces[m].device.size(), Bill::kDataReduce);
    views[m].last_start_ns = traces[m].device.start_ns;
  }
  for (const MatchedCollective& c : collectives) {
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      CommunicationView& view = views[static_cast<std::size_t>(c.members[i])];
      view.dimension[c.events[i]] = c.dimension;
      if (c.late >= 0) view.last_start_ns[c.events[i]] = c.last_start_ns;
    }
  }
  return views;
}

namespace {

/// Device work that counts as one class, as disjoint intervals with the event that owns each.
struct Owned {
  Interval span;
  std::int32_t event = -1;
};

/// Of overlapping events the one that started first owns the time; those that are over before it ends own nothing.
void add_owned(std::vector<Owned>& line, Interval span, std::int32_t event) {
  if (!line.empty()) span.begin_ns = std::max(span.begin_ns, line.back().span.end_ns);
  if (span.begin_ns < span.end_ns) line.push_back({span, event});
}

bool is_send(std::string_view name) { return name.size() >= 5 && name.substr(name.size() - 5) == ":send"; }

class Tiler {
 public:
  Tiler(const RankTrace& trace, const CommunicationView& view, const Interval& window)
      : trace_(trace), view_(view), window_(window), labels_(launch_labels(trace)), host_(host_ranges(trace)) {}

  std::vector<Segment> tile() {
    collect();
    std::int64_t now = window_.begin_ns;
    std::size_t work = 0;
    std::size_t comm = 0;
    std::size_t copy = 0;
    while (now < window_.end_ns) {
      const auto pass = [now](const std::vector<Owned>& line, std::size_t& at) {
        while (at < line.size() && line[at].span.end_ns <= now) ++at;
      };
      pass(work_, work);
      pass(comm_, comm);
      pass(copy_, copy);
      // The highest line that is busy now, until it ends or a higher one begins.
      std::int64_t until = window_.end_ns;
      const auto covers = [now](const std::vector<Owned>& line, std::size_t at) { return at < line.size() && line[at].span.begin_ns <= now; };
      const auto bound = [&until](const std::vector<Owned>& line, std::size_t at) {
        if (at < line.size()) until = std::min(until, line[at].span.begin_ns);
      };
      if (covers(work_, work)) {
        add_work(now, std::min(until, work_[work].span.end_ns), work_[work].event);
      } else if (bound(work_, work); covers(comm_, comm)) {
        add_communication(now, std::min(until, comm_[comm].span.end_ns), comm_[comm].event);
      } else if (bound(comm_, comm); covers(copy_, copy)) {
        add({{now, std::min(until, copy_[copy].span.end_ns)}, Bill::kOffload, false, HostPart::kCount, -1});
      } else {
        bound(copy_, copy);
        add_gap(now, until, next_event(work, comm, copy));
      }
      now = segments_.back().span.end_ns;
    }
    return std::move(segments_);
  }

 private:
  /// Where the host's operators stand for a device, a thread that loads data does not wait for transfers beside it, and a
  /// message that was sent and not yet asked for holds nobody up while something else is waited for.
  void settle_host_communication(const std::vector<Owned>& sends) {
    Intervals waited;
    for (const Owned& c : comm_) waited.push_back(c.span);
    for (const Owned& s : sends) {
      for (const Interval& free : without({s.span}, waited)) comm_.push_back({free, s.event});
    }
    std::stable_sort(comm_.begin(), comm_.end(), [](const Owned& a, const Owned& b) { return a.span.begin_ns < b.span.begin_ns; });
    std::vector<Owned> all;
    for (const Owned& c : comm_) {
      for (const Interval& part : without({c.span}, host_.data_loader)) add_owned(all, part, c.event);
    }
    comm_ = std::move(all);
  }

  void collect() {
    const trace::DeviceEvents& d = trace_.device;
    std::vector<Owned> sends;
    for (std::size_t i = 0; i < d.size(); ++i) {
      const Interval span{std::max(d.start_ns[i], window_.begin_ns), std::min(d.end_ns[i], window_.end_ns)};
      if (span.begin_ns >= span.end_ns) continue;
      const auto event = static_cast<std::int32_t>(i);
      switch (d.work[i]) {
        case Work::kCompute: add_owned(work_, span, event); break;
        case Work::kCommunication:
          if (d.device[i] < 0 && is_send(trace_.names[d.name[i]])) {
            sends.push_back({span, event});
          } else {
            add_owned(comm_, span, event);
          }
          break;
        case Work::kCopy:
        case Work::kSet: add_owned(copy_, span, event); break;
      }
    }
    if (d.size() > 0 && d.device.front() < 0) settle_host_communication(sends);
  }

  void add(const Segment& segment) { segments_.push_back(segment); }

  void add_work(std::int64_t from, std::int64_t to, std::int32_t event) {
    const std::int32_t launch = trace_.device.launch[static_cast<std::size_t>(event)];
    Bill item = Bill::kCompute;
    if (launch >= 0) {
      const LaunchedFrom label = labels_[static_cast<std::size_t>(launch)];
      if (label == LaunchedFrom::kRecompute) item = Bill::kRecompute;
      if (label == LaunchedFrom::kOptimizer) item = Bill::kOptimizer;
    }
    add({{from, to}, item, false, HostPart::kCount, event});
  }

  void add_communication(std::int64_t from, std::int64_t to, std::int32_t event) {
    const auto i = static_cast<std::size_t>(event);
    const std::int64_t last = view_.last_start_ns[i];
    if (from < last) {
      to = std::min(to, last);
      add({{from, to}, view_.dimension[i], true, HostPart::kCount, event});
    } else {
      add({{from, to}, view_.dimension[i], false, HostPart::kCount, event});
    }
  }

  /// The device event that ends the gap, -1 at the window's end.
  std::int32_t next_event(std::size_t work, std::size_t comm, std::size_t copy) const {
    const Owned* next = nullptr;
    const auto consider = [&next](const std::vector<Owned>& line, std::size_t at) {
      if (at < line.size() && (next == nullptr || line[at].span.begin_ns < next->span.begin_ns)) next = &line[at];
    };
    consider(work_, work);
    consider(comm_, comm);
    consider(copy_, copy);
    return next == nullptr ? -1 : next->event;
  }

  /// A gap belongs to the host as long as the launch of what ends it was not over; after that the work was queued and
  /// waited for something on the device.
  void add_gap(std::int64_t from, std::int64_t to, std::int32_t next) {
    const std::int32_t launch = next >= 0 ? trace_.device.launch[static_cast<std::size_t>(next)] : -1;
    if (launch < 0) return add({{from, to}, Bill::kOther, false, HostPart::kCount, -1});
    const auto l = static_cast<std::size_t>(launch);
    const trace::HostEvents& h = trace_.host_events;
    const std::int64_t launched = h.end_ns[l];
    if (launched <= from) return add({{from, to}, Bill::kOther, false, HostPart::kCount, -1});
    // Launched inside the gap: what remains is the launch's own latency, unless it is so long that it was queued.
    constexpr std::int64_t kLaunchLatency_ns = 20'000;  // a launch reaches an idle device within some microseconds
    const std::int64_t host_until = launched + kLaunchLatency_ns >= to ? to : std::max(from + 1, launched);
    add_host(from, host_until);
    if (host_until < to) add({{host_until, to}, Bill::kOther, false, HostPart::kCount, -1});
  }

  void add_host(std::int64_t from, std::int64_t to) {
    const std::pair<const Intervals*, HostPart> parts[] = {
        {&host_.data_loader, HostPart::kDataLoader}, {&host_.checkpoint, HostPart::kCheckpoint}, {&host_.synchronise, HostPart::kSynchronise}};
    while (from < to) {
      HostPart part = HostPart::kLaunch;
      std::int64_t until = to;
      for (const auto& [ranges, candidate] : parts) {
        auto at = std::partition_point(ranges->begin(), ranges->end(), [from](const Interval& r) { return r.end_ns <= from; });
        if (at == ranges->end()) continue;
        if (at->begin_ns <= from) {
          part = candidate;
          until = std::min(until, at->end_ns);
        } else {
          until = std::min(until, at->begin_ns);
        }
      }
      add({{from, until}, Bill::kHost, false, part, -1});
      from = until;
    }
  }

  const RankTrace& trace_;
  const CommunicationView& view_;
  Interval window_;
  std::vector<LaunchedFrom> labels_;
  HostRanges host_;
  std::vector<Owned> work_;
  std::vector<Owned> comm_;
  std::vector<Owned> copy_;
  std::vector<Segment> segments_;
};

}  // namespace

std::vector<Segment> segments_of(const RankTrace& trace, const CommunicationView& view, const Interval& window) {
  return Tiler(trace, view, window).tile();
}

MeasuredBill bill_of(const std::vector<Segment>& segments, const Interval& window) {
  MeasuredBill bill;
  for (const Segment& s : segments) {
    const std::int64_t ns = std::min(s.span.end_ns, window.end_ns) - std::max(s.span.begin_ns, window.begin_ns);
    if (ns <= 0) continue;
    bill.ns[static_cast<std::size_t>(s.item)] += ns;
    if (s.wait) bill.wait_ns[static_cast<std::size_t>(s.item)] += ns;
    if (s.host != HostPart::kCount) bill.host_ns[static_cast<std::size_t>(s.host)] += ns;
  }
  return bill;
}

std::int64_t MeasuredBill::total_ns() const {
  std::int64_t sum = 0;
  for (const std::int64_t part : ns) sum += part;
  return sum;
}

MeasuredBill& MeasuredBill::operator+=(const MeasuredBill& other) {
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] += other.ns[i];
  for (std::size_t i = 0; i < wait_ns.size(); ++i) wait_ns[i] += other.wait_ns[i];
  for (std::size_t i = 0; i < host_ns.size(); ++i) host_ns[i] += other.host_ns[i];
  return *this;
}

std::string_view name(HostPart part) {
  switch (part) {
    case HostPart::kLaunch: return "launch";
    case HostPart::kDataLoader: return "data-loader";
    case HostPart::kSynchronise: return "synchronise";
    case HostPart::kCheckpoint: return "checkpoint";
    case HostPart::kCount: break;
  }
  return "?";
}

}  // namespace chokepoint::diagnose

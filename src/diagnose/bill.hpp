// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rank's time, each nanosecond in one class.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/columns.hpp>
#include <vector>

namespace chokepoint::diagnose {

/// What the matched collectives say about one rank's communication events.
struct CommunicationView {
  std::vector<simulate::Bill> dimension;   ///< per device event
  std::vector<std::int64_t> last_start_ns; ///< when the last peer came; the event's own start without peers
};
/// Per trace.
std::vector<CommunicationView> communication_views(const std::vector<trace::RankTrace>& traces, const std::vector<MatchedCollective>& collectives);

/// A stretch of a rank's time that is all of one class.
struct Segment {
  Interval span;
  simulate::Bill item = simulate::Bill::kOther;
  bool wait = false;                         ///< communication before the last peer came
  HostPart host = HostPart::kCount;          ///< of the class host
  std::int32_t event = -1;                   ///< device event of exposed communication
};

/// Segments that tile the window without gaps, in order. Precedence where several kinds of work run at once: compute,
/// then communication, then copies; what is left belongs to the host or to nobody.
std::vector<Segment> segments_of(const trace::RankTrace& trace, const CommunicationView& view, const Interval& window);

MeasuredBill bill_of(const std::vector<Segment>& segments, const Interval& window);

}  // namespace chokepoint::diagnose

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replays measured traces with classes of time taken out. Each rank has a line of its own work (everything but exposed
// communication); a collective is over when its last member's line has reached it and the wire time has passed, and a line
// that was blocked by it goes on only then, from the place where it waited. With nothing taken out this gives the measured
// times back.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/columns.hpp>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "bill.hpp"

namespace chokepoint::diagnose {

/// Classes that can be taken out. Few of them occur in one job: Shapley values take 2^n replays.
enum class Removable : std::uint8_t { kSlowRank, kImbalance, kHost, kDataLoader, kWire, kSlowWire, kEarly, kCopies, kIdle, kCount };
inline constexpr int kRemovableCount = static_cast<int>(Removable::kCount);

class Replay {
 public:
  /// `segments_of` a rank, tiling `window`, the same for all ranks, is asked once for each and not kept; collectives sorted by
  /// their last start.
  Replay(const std::vector<trace::RankTrace>& traces, const std::function<std::vector<Segment>(std::size_t)>& segments_of,
         const std::vector<MatchedCollective>& collectives, const Interval& window);

  /// Seconds of the window without the classes of the mask.
  double seconds_without(unsigned mask) const;
  /// Whether there is anything of this class.
  bool has(Removable kind) const;
  /// Position of the rank that computes longest, and how long relative to the median of all.
  int slowest_rank() const { return slowest_; }
  double slowest_factor() const { return slowest_factor_; }
  /// Ranks of the pipeline stage that computes longest, where it is the stage and not a rank of it that is slow; else empty.
  const std::vector<int>& heavy_stage() const { return heavy_stage_; }
  /// A stage that computes longer than the others because of work that only it has (head and loss, embedding).
  struct OwnWork {
    std::vector<int> ranks;
    std::string_view kernel;  ///< the longest of it
    double seconds = 0;       ///< of the window
  };
  const OwnWork& own_work() const { return own_work_; }

 private:
  struct Piece {
    std::int64_t ns = 0;
    std::int32_t event = -1;             ///< of compute
    Removable kind = Removable::kCount;  ///< kCount: compute, never taken out
    bool own = false;                    ///< compute of a kind that no other stage runs
  };
  /// A member's view of one collective.
  struct Visit {
    int member = 0;
    std::int32_t stream = 0;
    std::int64_t ready_ns = 0;      ///< measured: what was launched before it is over
    std::int64_t end_ns = 0;
    std::int64_t lag_ns = 0;        ///< of the start behind that and behind the stream's operation before it
    bool queued = false;            ///< the operation before it on its stream is a meeting too
    std::size_t arrive = 0;         ///< pieces of the line that began before it was ready
    std::int64_t offset_ns = 0;     ///< of being ready from the end of the last of them: above 0, the line stood still
    std::size_t resume = 0;         ///< pieces that began before the end
    bool blocks = false;            ///< the line stood until the end, or what comes after uses what was received
    std::int64_t later_ns = 0;      ///< its own end after the first member's
  };
  struct Meeting {
    std::int64_t wire_ns = 0;
    std::int64_t slow_ns = 0;  ///< part of it beyond what the wiring gives; 0 where that is not known
    bool early = false;  ///< would not take place without Removable::kEarly
    std::vector<Visit> visits;
    std::int64_t last_start_ns = 0;  ///< measured
    std::size_t first_visit = 0;  ///< visits of the meetings before it
  };
  /// What happens to a line, or to a meeting, in the order of the measurement: a line comes to a meeting long before the
  /// last one does, and goes through others before it waits for this one's end, as with messages sent ahead.
  struct Point {
    enum class What { kReady, kMeet, kLeave };
    std::int64_t at_ns = 0;
    std::size_t meeting = 0;
    What what = What::kReady;
    std::size_t visit = 0;  ///< of the meeting; unused by kMeet
  };

  void build_meetings(const std::vector<trace::RankTrace>& traces, const std::vector<MatchedCollective>& collectives);
  void order_points();
  /// Marks compute that only one stage runs: it comes with the layout, and makes no stage heavier than it should be.
  void mark_own_work(const std::vector<trace::RankTrace>& traces);
  void find_own_work(const std::vector<trace::RankTrace>& traces, const std::vector<double>& own, const std::vector<double>& all);
  void even_out();
  /// Ranks joined by groups other than those between stages.
  void find_stages(const std::vector<MatchedCollective>& collectives);
  /// The stage all of whose ranks compute clearly longer than the other stages', and the others' median.
  void find_heavy_stage(const std::vector<double>& total, double& typical);
  /// Work of a line up to each of its pieces, classes of the mask left out.
  std::vector<double> progress(std::size_t member, unsigned mask) const;

  Visit visit_of(int member, std::int64_t ready_ns, std::int64_t end_ns) const;

  struct Line {
    std::vector<Piece> pieces;
    std::vector<std::int64_t> begin_ns;     ///< of each piece, measured
    std::vector<double> rank_excess_ns;     ///< of each piece: part that a rank's constant slowness adds
    std::vector<double> spread_ns;          ///< of each piece: deviation between two meetings of all ranks
    std::vector<Interval> blocks;           ///< exposed communication of matched collectives
    std::vector<std::int32_t> block_event;
  };
  Interval window_;
  std::vector<Line> lines_;
  std::vector<Meeting> meetings_;
  std::vector<Point> points_;
  std::size_t visits_ = 0;
  std::vector<int> stage_of_;  ///< by rank
  std::vector<int> heavy_stage_;
  OwnWork own_work_;
  int slowest_ = -1;
  double slowest_factor_ = 1;
};

}  // namespace chokepoint::diagnose

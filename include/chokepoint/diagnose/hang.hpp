// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who made a job hang, from the flight recorders of its ranks.
#include <chokepoint/base/result.hpp>
#include <chokepoint/trace/flight_recorder.hpp>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

/// A rank that the others wait for.
struct FaultyRank {
  int rank = 0;
  std::string kind;      ///< "device-stuck", "host-stopped", "behind"
  std::string evidence;  ///< one sentence
};

/// An operation that some ranks issued and that never ended.
struct PendingCollective {
  std::string group;
  std::string description;
  std::string op;
  std::string sizes;
  std::string dtype;
  std::int64_t sequence = -1;
  std::vector<int> present;
  std::vector<int> missing;
  std::int64_t created_ns = 0;  ///< first issue
};

struct HangReport {
  int dumps = 0;
  std::vector<FaultyRank> faulty;            ///< by rank
  std::vector<PendingCollective> pending;    ///< collectives that some member lacks, oldest first
  std::string verdict;                       ///< one sentence
  std::vector<Note> notes;
};

/// Dumps of one job's ranks, in any order; a rank that stands twice (pickle and JSON) counts once.
Result<HangReport> find_hang(std::vector<trace::FlightDump> dumps);

}  // namespace chokepoint::diagnose

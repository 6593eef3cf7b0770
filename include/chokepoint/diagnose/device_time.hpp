// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a device spent a window: exact unions of its work, the quantities that other analysers print too.
#include <chokepoint/diagnose/intervals.hpp>
#include <chokepoint/trace/columns.hpp>
#include <optional>

namespace chokepoint::diagnose {

/// Which device work counts.
enum class Selection {
  kAll,
  kLaunched,  ///< its launching call is in the file
  kFlow,      ///< a host-to-device arrow leads to it
};

/// Unions, per kind of work, of the part inside the window.
struct DeviceUnions {
  Interval window;
  Intervals compute, communication, copy, set;
};
/// Without a window: from the first start to the last end of the selected work.
DeviceUnions device_unions(const trace::RankTrace& trace, Selection selection = Selection::kAll,
                           std::optional<Interval> window = std::nullopt);

struct DeviceTime {
  std::int64_t start_ns = 0;
  std::int64_t span_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t communication_ns = 0;
  std::int64_t memory_ns = 0;                 ///< copies and sets
  std::int64_t busy_ns = 0;                   ///< any of them
  std::int64_t overlap_ns = 0;                ///< communication while computing
  std::int64_t exposed_communication_ns = 0;  ///< communication while not computing
  std::int64_t exposed_strict_ns = 0;         ///< communication while neither computing nor copying nor setting
  std::int64_t exposed_memory_ns = 0;         ///< copies and sets while neither computing nor communicating
  std::int64_t exposed_copy_ns = 0;           ///< copies while neither computing, setting nor communicating
  std::int64_t compute_and_set_ns = 0;
  std::int64_t idle_ns() const { return span_ns - busy_ns; }
  /// Communication hidden behind compute, as a share; 0 without communication.
  double overlap_fraction() const {
    return communication_ns > 0 ? static_cast<double>(overlap_ns) / static_cast<double>(communication_ns) : 0.0;
  }
};
DeviceTime device_time(const DeviceUnions& unions);

}  // namespace chokepoint::diagnose

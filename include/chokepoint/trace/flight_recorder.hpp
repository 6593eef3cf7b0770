// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dumps of PyTorch's NCCL flight recorder: which collectives a rank had issued and not finished when the job hung.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::trace {

enum class FlightState : std::uint8_t { kScheduled, kStarted, kCompleted, kUnknown };

struct FlightEntry {
  std::string group;             ///< process group name
  std::string description;
  std::string op;                ///< "all_to_all", "send 0->3"
  std::string sizes;             ///< "[[2048, 1, 5120]]", of the inputs
  std::string dtype;
  std::int64_t sequence = -1;    ///< counts the group's collectives, or its sends and receives
  std::int64_t created_ns = 0;
  FlightState state = FlightState::kUnknown;
  bool point_to_point = false;
};

struct FlightGroup {
  std::string description;
  std::vector<int> ranks;        ///< global; empty where the dump cuts the list
};

struct FlightDump {
  std::string file;
  int rank = -1;                 ///< from the end of the file's name, as NCCL writes it; -1: unknown
  std::string version;
  std::map<std::string, FlightGroup> groups;  ///< by name
  std::vector<FlightEntry> entries;           ///< in the order of issue
};

/// Pickle (the opcodes the recorder uses, nothing is ever called) or JSON.
Result<FlightDump> read_flight_dump(const std::string& path);
Result<FlightDump> read_flight_text(std::string_view content, const std::string& file);

}  // namespace chokepoint::trace

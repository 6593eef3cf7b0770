// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one rank did, in columns: one vector per field, names interned, times in nanoseconds since the epoch or since the
// file's own zero. Times are integers so that sums and unions are exact.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::trace {

using NameId = std::uint32_t;
inline constexpr NameId kNoName = 0;  ///< the empty text

/// Texts stored once. Id 0 is the empty text; ids count up in the order of first sight.
class Names {
 public:
  Names();
  NameId intern(std::string_view text);
  std::string_view operator[](NameId id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    NameId id = 0;  ///< 0: free
  };
  std::string_view keep(std::string_view text);
  void grow();

  std::vector<std::string_view> texts_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
  char* block_next_ = nullptr;
  std::vector<Slot> slots_;
};

/// What a device was busy with.
enum class Work : std::uint8_t { kCompute, kCommunication, kCopy, kSet };

/// Device work. Annotations projected on the device and synchronisation records are not work and never stand here.
struct DeviceEvents {
  std::vector<std::int64_t> start_ns;
  std::vector<std::int64_t> end_ns;
  std::vector<NameId> name;
  std::vector<std::uint64_t> correlation;  ///< joins the launching host call; 0: none
  std::vector<std::int32_t> stream;
  std::vector<std::int32_t> device;        ///< ordinal in the process, not the rank
  std::vector<std::int32_t> launch;        ///< index of the launching call in RankTrace::host_events, -1: unknown
  std::vector<std::int32_t> collective;    ///< index into RankTrace::collectives, -1: none
  std::vector<Work> work;
  std::size_t size() const { return start_ns.size(); }
};

/// What a host thread did.
enum class HostKind : std::uint8_t {
  kCall,        ///< runtime or driver call (launch, copy, synchronise)
  kOperator,    ///< framework operator
  kAnnotation,  ///< range marked by the user or the framework
};

struct HostEvents {
  std::vector<std::int64_t> start_ns;
  std::vector<std::int64_t> end_ns;
  std::vector<NameId> name;
  std::vector<std::uint32_t> thread;       ///< index into RankTrace::threads
  std::vector<std::uint64_t> correlation;  ///< of a call; 0: none
  std::vector<HostKind> kind;
  std::size_t size() const { return start_ns.size(); }
};

/// What a record says about one collective or point-to-point operation. Fields that the file does not hold stay empty.
struct CollectiveInfo {
  NameId op = kNoName;           ///< "allreduce", "_allgather_base", ... as written
  NameId group = kNoName;        ///< process group name
  NameId description = kNoName;
  NameId ranks = kNoName;        ///< "[0, 1, ...]" as written
  NameId dtype = kNoName;
  std::int64_t in_elements = -1;
  std::int64_t out_elements = -1;
  std::int64_t group_size = -1;
  std::int64_t sequence = -1;
  std::int64_t peer = -1;        ///< of a send or receive
};

/// Events that were left out or mended, each kind counted; nothing is dropped silently.
enum class Defect : std::uint8_t {
  kSyntax,            ///< not JSON; skipped to the next event
  kCutOff,            ///< the file ends inside an event
  kDamagedStream,     ///< the compressed data ends early or is damaged
  kBadTime,           ///< time missing, not a number, or not finite
  kNegativeDuration,
  kImplausibleDuration,  ///< above seven days
  kTooLong,           ///< one event above 64 MiB
  kTimeBeforeBase,    ///< clamped by the writer to 0
  kUnmatchedEnd,      ///< an end without a beginning, or the reverse
  kOverlapOnStream,   ///< kept: starts before the previous one of its stream ended
  kLaunchAfterStart,  ///< kept: device work that starts before its launch call
  kOrphan,            ///< kept: device work whose launch the file does not hold
  kCount,
};
std::string_view name(Defect defect);
/// Whether events of this kind are missing from the columns (else they are kept, and only counted).
bool drops(Defect defect);

struct Defects {
  std::array<std::uint64_t, static_cast<std::size_t>(Defect::kCount)> count{};
  std::array<std::uint64_t, static_cast<std::size_t>(Defect::kCount)> first_byte{};  ///< where the first one stands
  void add(Defect defect, std::uint64_t byte = 0) {
    const auto i = static_cast<std::size_t>(defect);
    if (count[i]++ == 0) first_byte[i] = byte;
  }
  std::uint64_t operator[](Defect defect) const { return count[static_cast<std::size_t>(defect)]; }
  std::uint64_t dropped() const;
};

/// A process group as the file's head or tail describes it.
struct GroupInfo {
  std::string name;
  std::string description;
  std::vector<int> ranks;
};

struct RankTrace {
  std::string file;
  int rank = 0;
  bool rank_known = false;        ///< the file says so; else taken from its name or order
  int world_size = 0;             ///< 0: unknown
  std::string backend;
  std::string device_name;
  std::string host;               ///< "": unknown
  std::vector<GroupInfo> groups;
  bool absolute_clock = false;    ///< times since the epoch
  std::int64_t clock_base_ns = 0; ///< what was added to the file's own times
  Names names;
  std::vector<NameId> threads;
  DeviceEvents device;
  HostEvents host_events;
  std::vector<CollectiveInfo> collectives;
  std::vector<std::uint64_t> flow_starts;  ///< correlations that have a host-to-device arrow, ascending
  Defects defects;
  std::vector<std::string> notes;
  std::uint64_t bytes_read = 0;   ///< uncompressed
  std::uint64_t events_seen = 0;
};

}  // namespace chokepoint::trace

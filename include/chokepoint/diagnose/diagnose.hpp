// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a measured job takes as long as it does: where each rank's time went, which collectives waited for whom.
//
//   Result<Diagnosis> d = diagnose(std::move(traces));
//
// All ranks together: a communication kernel that runs may merely wait for a late rank, which only the other ranks' traces
// show. Times of a bill are whole nanoseconds and sum to the rank's span exactly.
#include <array>
#include <chokepoint/base/result.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/diagnose/device_time.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <chokepoint/trace/columns.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::diagnose {

/// Parts of the bill's class "host": what the host did while its device had nothing to do.
enum class HostPart { kLaunch, kDataLoader, kSynchronise, kCheckpoint, kCount };
inline constexpr int kHostPartCount = static_cast<int>(HostPart::kCount);
std::string_view name(HostPart part);

/// The classes of a prediction, measured. "other" is a device that idles although work was queued, or for unknown reasons.
struct MeasuredBill {
  std::array<std::int64_t, simulate::kBillCount> ns{};       ///< sums to the window
  std::array<std::int64_t, simulate::kBillCount> wait_ns{};  ///< part of `ns` of a communication class: a peer was not there yet
  std::array<std::int64_t, kHostPartCount> host_ns{};        ///< sums to the class "host"
  std::int64_t total_ns() const;
  MeasuredBill& operator+=(const MeasuredBill& other);
};

struct StepBill {
  std::string name;
  Interval window;   ///< on the device: first work of this step to first work of the next
  MeasuredBill bill;
};

/// What one rank's device spent in one kernel, or in one kind of transfer of one group.
struct OpTotal {
  std::string name;
  bool transfer = false;
  std::int64_t ns = 0;  ///< summed over the recording; of transfers the wire alone
  int count = 0;
};

struct RankResult {
  std::string file;
  int rank = 0;
  bool rank_known = false;
  DeviceTime time;
  MeasuredBill bill;
  std::vector<StepBill> steps;
  std::int64_t collective_wait_ns = 0;  ///< sum over matched collectives of the time until the last rank came
  std::int64_t collective_wire_ns = 0;  ///< sum over matched collectives of their transfer
  std::int64_t clock_offset_ns = 0;     ///< what was added to this rank's times
  double clock_drift = 0;               ///< seconds per second, already taken out
  std::int64_t clock_error_ns = 0;      ///< residual of the alignment: no wait below it is claimed
  int late_count = 0;                   ///< collectives in which this rank came last
  std::vector<OpTotal> ops;             ///< by name, transfers last
  trace::Defects defects;
  std::vector<std::string> notes;
};

/// One operation of one process group, matched over its ranks.
struct MatchedCollective {
  std::string group;                ///< name and description, or how it was inferred
  bool inferred = false;            ///< the traces do not name the group
  bool early = false;               ///< gradients reduced although another forward pass comes before the optimizer's step
  collective::Op op = collective::Op::kAllReduce;
  bool op_known = false;
  simulate::Bill dimension = simulate::Bill::kDataReduce;
  std::int64_t bytes = -1;          ///< nccl-tests' size; -1: unknown
  int group_size = 0;               ///< 0: unknown
  int index = 0;                    ///< in its group
  std::vector<int> members;         ///< positions in Diagnosis::ranks
  std::vector<std::size_t> events;  ///< of the members, in their device events
  std::int64_t first_start_ns = 0;
  std::int64_t last_start_ns = 0;
  std::int64_t first_end_ns = 0;
  std::int64_t last_end_ns = 0;
  int late = -1;                    ///< position of the last to come; -1 with one member, or within the clocks' error
  std::int64_t wire_ns() const { return first_end_ns > last_start_ns ? first_end_ns - last_start_ns : 0; }
  std::int64_t wait_ns() const { return last_start_ns - first_start_ns; }  ///< of the first to come
  double expected_bus_bytes_per_s = 0;  ///< what the wiring gives at this size; 0: no wiring given, or size unknown
  double bus_bytes_per_s() const;   ///< 0 when size or group is unknown, or a member is missing
};

/// One reason why the job is slower than it could be. The costs of all causes sum to measured - ideal.
struct Cause {
  std::string id;                 ///< "slow-rank", "host", "wire", ...
  std::string where;              ///< rank, stage, group, link
  std::string what;               ///< one sentence with a number
  std::string remedy;             ///< what to change, in the framework's own words
  double cost_s = 0;              ///< share of the gap, by Shapley value over the classes
  double step_time_without_s = 0; ///< replayed without this cause alone
};

struct Diagnosis {
  std::vector<RankResult> ranks;   ///< by rank
  std::vector<MatchedCollective> collectives;
  std::vector<Cause> causes;       ///< dearest first
  double measured_s = 0;           ///< per step, over all ranks
  double ideal_s = 0;
  int steps = 0;                   ///< that measured_s is the mean of
  std::string choke_point;         ///< one sentence
  std::vector<Note> notes;         ///< limits of this answer
  int world_size = 0;
};

struct Options {
  bool causes = true;
  const collective::Network* network = nullptr;  ///< the job's wiring, for what its collectives should reach
  int gpus_per_host = 8;                         ///< rank / gpus_per_host is a rank's host; with `network`
};

/// Traces of one job's ranks, in any order.
Result<Diagnosis> diagnose(std::vector<trace::RankTrace> traces, const Options& options = {});

}  // namespace chokepoint::diagnose

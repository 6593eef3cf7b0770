// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is wrong with a cluster's wiring or its settings: a catalogue of checks, each with evidence, severity, a fix and
// the command that verifies it; and what each fault costs a given job.
//
//   std::vector<Finding> found = check(assembly);
//   price(found, assembly, job, strategy);     // fills Finding::cost by predicting the step with and without the fault
#include <chokepoint/assemble/assemble.hpp>
#include <chokepoint/parallel/job.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::findings {

/// Info: worth knowing, often by design. Warning: costs speed in some jobs. Critical: broken.
enum class Severity { kCritical, kWarning, kInfo };
std::string_view name(Severity severity);

/// One entry of the catalogue (docs/findings.md is written from it).
struct Check {
  std::string_view id;
  Severity severity;
  std::string_view title;
  std::string_view fix;
  std::string_view verify;    ///< command whose output shows that it is mended
  std::string_view source;    ///< where the fault and its signature are described
};
const std::vector<Check>& catalogue();

/// How a fault changes a cluster, for its price.
enum class EffectKind { kNone, kNoGpuDirect, kSockets, kNoPeerToPeer, kNvLinks, kGpuSlot, kUplinks, kNics };
struct Effect {
  EffectKind kind = EffectKind::kNone;
  double share = 1;           ///< what is left of the bandwidth: links that are up, lanes that trained, cards in use
  std::string device;         ///< kGpuSlot: whose slot; empty: all
};

/// Step time of the job as the cluster is and as it would be without the fault.
struct Cost {
  double step_time_s = 0;
  double step_time_if_mended_s = 0;
  double lost_s() const { return step_time_s - step_time_if_mended_s; }
};

struct Finding {
  std::string id;
  Severity severity = Severity::kInfo;
  std::string where;                   ///< "GPU3", "leaf12", "job.out"
  std::string what;                    ///< one sentence with the numbers seen
  std::vector<SourcePos> evidence;
  std::string fix;
  std::string verify;
  std::string source;
  Effect effect;
  std::optional<Cost> cost;            ///< none without a job, or where the model cannot tell
};

/// All checks, worst first; within a severity in the order of the catalogue.
std::vector<Finding> check(const assemble::Assembly& assembly);

/// Predicts the job's step on this cluster with and without each fault. The cluster of the files stands in for the job's
/// own where it has the accelerators the job needs; else the fault is put into the job's own cluster.
Result<bool> price(std::vector<Finding>& found, const assemble::Assembly& assembly, const parallel::Job& job, const parallel::Strategy& strategy);

/// A benchmark's table against what the model expects of this wiring.
struct Reached {
  double bytes = 0;
  double measured_bytes_per_s = 0;
  double expected_bytes_per_s = 0;
  double share() const { return expected_bytes_per_s > 0 ? measured_bytes_per_s / expected_bytes_per_s : 0; }
};
/// A finding when large messages reach far less than expected; none when they do not.
std::optional<Finding> judge(const std::vector<Reached>& rows, std::string_view op, std::string_view limit, const SourcePos& evidence);

}  // namespace chokepoint::findings

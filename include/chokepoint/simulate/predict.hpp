// SPDX-License-Identifier: Apache-2.0
#pragma once
// One training step in closed form: time, the bill that sums to it, the efficiency ladder, memory, the choke point.
#include <array>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/compute/constants.hpp>
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/parallel/memory.hpp>
#include <chokepoint/simulate/constants.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::simulate {

/// Classes of a step's wall time. They sum to it exactly, for predicted and measured steps alike.
enum class Bill {
  kCompute,
  kRecompute,
  kTensor,       ///< exposed tensor-parallel communication
  kContext,
  kExpert,
  kPipeline,     ///< exposed point-to-point between stages
  kDataGather,   ///< exposed parameter gathers (ZeRO, FSDP)
  kDataReduce,   ///< exposed gradient reduction
  kBubble,
  kHost,         ///< launch- or Python-bound time beyond the device's work
  kOptimizer,
  kOffload,
  kOther,
};
inline constexpr int kBillCount = 13;
std::string_view name(Bill item);

/// One rung of the ladder from peak to useful work; `fraction` is what is left of the peak after it.
struct Rung {
  std::string name;
  double fraction = 1;
};

/// The resource whose step to an attainable better value shortens the step most.
struct ChokePoint {
  std::string kind;                 ///< "nic", "nvlink", "pcie", "compute", "memory", "host", "bubble", ...
  std::string where;                ///< in the wiring's words
  std::string change;               ///< what "better" means: "400 Gb/s NICs instead of 100 Gb/s"
  double step_time_if_changed_s = 0;
};

struct Prediction {
  parallel::Strategy strategy;
  double step_time_s = 0;
  double step_time_low_s = 0;       ///< 80 % band
  double step_time_high_s = 0;
  std::array<double, kBillCount> bill{};
  double tokens_per_s_per_gpu = 0;
  double model_flops_per_s_per_gpu = 0;  ///< 3 x forward, causal half of the attention square not counted as work
  double mfu = 0;
  double hfu = 0;
  parallel::Memory memory;
  std::vector<Rung> ladder;
  std::vector<ChokePoint> choke_points;  ///< best first; empty unless asked for
  std::vector<std::string> findings;     ///< one line each: what costs what and why
  std::vector<Note> assumptions;

  double item(Bill b) const { return bill[static_cast<std::size_t>(b)]; }
};

struct Pieces;

/// Every constant that a prediction depends on.
struct Parameters {
  compute::Constants compute;
  collective::Constants collective;
  Constants step;
};
std::vector<ParameterRef> refs(Parameters& parameters);

/// Predicts steps of one job. Holds the network and kernel models so that thousands of strategies share them.
class Predictor {
 public:
  explicit Predictor(const parallel::Job& job, const collective::Scale& scale = {}, const Parameters& parameters = {});
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  /// `strategy` may leave data degree and accumulation to be derived.
  Result<Prediction> predict(const parallel::Strategy& strategy) const;
  /// Times, bill and memory only (no ladder, findings or assumptions), for a completed strategy: the search path.
  Prediction evaluate(const parallel::Strategy& completed) const;
  /// What the closed form adds up, for the event engine. `completed` as in evaluate().
  Pieces pieces(const parallel::Strategy& completed) const;
  const parallel::Job& job() const;
  /// The same job under other constants; rebuilds only what they touch, so that fits may call it often.
  void set_parameters(const Parameters& parameters);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Fills `choke_points` by re-evaluating the step with each resource class at an attainable better value.
void find_choke_points(const parallel::Job& job, Prediction& prediction, const Parameters& parameters = {});

/// What a measured step time says about the wires: the bandwidth at which the model would take that long.
struct Implied {
  double measured_step_time_s = 0;
  double ratio = 1;                   ///< measured / predicted
  bool inside_band = false;
  bool explained_by_wires = false;    ///< some bandwidth reproduces the measurement
  std::string link;                   ///< which wires were varied
  double bytes_per_s = 0;             ///< of one host into the fabric, or of one GPU inside the host
  double expected_bytes_per_s = 0;
  std::string suspect;                ///< first hypothesis to check, in one sentence
};
Implied implied_bandwidth(const parallel::Job& job, const Prediction& prediction, double measured_step_time_s,
                          const Parameters& parameters = {});

std::vector<Parameter> parameters();

}  // namespace chokepoint::simulate

// SPDX-License-Identifier: Apache-2.0
// Kernel timings as `chokepoint measure --compute` writes them. Each entry is read or refused with a note; a rate above
// the data-sheet peak is a mistake of the measurement (asynchronous launches not waited for), never a fast machine.
#include <chokepoint/calibrate/inputs.hpp>

#include <chokepoint/compute/kernels.hpp>
#include <chokepoint/compute/launch.hpp>

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace chokepoint::calibrate {

namespace {

using Json = nlohmann::json;

constexpr double kLargestSize = 1e7;   ///< elements along one side of a matrix
constexpr double kLaunchesHidden = 2;  ///< a kernel this many launches long was not waiting for the host
constexpr double kFastest = 1.05;      ///< of the data-sheet peak

/// A finite number above zero under `key`; NaN otherwise.
double positive(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number()) return NAN;
  const double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? value : NAN;
}

std::string text(const Json& entry, const char* key, const char* otherwise) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

struct Timings {
  const hardware::Accelerator& accelerator;
  compute::Clock clock;
  Input& input;
  double launch_s = 0;

  void refuse(const std::string& what, const std::string& why) { input.notes.push_back({what + " left out: " + why, {input.name, 0, 0}}); }

  /// `own_clock`: of the entry itself; empty: the table's.
  void add(std::string label, double time_s, std::function<double(const compute::KernelModel&)> model, const std::string& own_clock = {}) {
    const compute::Clock at = own_clock.empty() ? clock : own_clock == "sustained" ? compute::Clock::kSustained : compute::Clock::kBurst;
    input.observations.push_back({input.name, time_s, 1, [accelerator = accelerator, clock = at, model = std::move(model)](const simulate::Parameters& p) {
                                    return model(compute::KernelModel(accelerator, clock, p.compute));
                                  }});
    input.labels.push_back(std::move(label));
  }

  void add_gemm(const Json& entry, std::size_t index) {
    const std::string what = fmt::format("gemm[{}]", index);
    const double m = positive(entry, "m"), n = positive(entry, "n"), k = positive(entry, "k"), time_s = positive(entry, "time_s");
    if (!(m > 0 && n > 0 && k > 0 && time_s > 0)) return refuse(what, "needs m, n, k and time_s, numbers above zero");
    if (time_s < kLaunchesHidden * launch_s) return refuse(what, "no longer than launches take: it says nothing of the kernel");
    if (std::max({m, n, k}) > kLargestSize) return refuse(what, "a side above ten million elements");
    const auto dtype = hardware::parse_dtype(text(entry, "dtype", "bf16"));
    if (!dtype) return refuse(what, dtype.error().message);
    const double peak = accelerator.peak(*dtype);
    if (peak <= 0) return refuse(what, fmt::format("{} has no {} arithmetic", accelerator.name, hardware::name(*dtype)));
    const double rate = 2 * m * n * k / time_s;
    if (rate > kFastest * peak) {
      return refuse(what, fmt::format("{:.0f} TFLOP/s is above the peak of {:.0f}: was the device waited for?", rate * 1e-12, peak * 1e-12));
    }
    add(fmt::format("product of {:.0f} x {:.0f} x {:.0f}", m, n, k), time_s,
        [dtype = *dtype, m, n, k](const compute::KernelModel& kernels) { return kernels.gemm_s(dtype, m, n, k); }, text(entry, "clock", ""));
  }

  void add_attention(const Json& entry, std::size_t index) {
    const std::string what = fmt::format("attention[{}]", index);
    compute::AttentionShape shape;
    shape.batch = positive(entry, "batch");
    shape.heads = positive(entry, "heads");
    shape.head_dim = positive(entry, "head_dim");
    shape.sequence = shape.kv_sequence = positive(entry, "sequence");
    const double kv_heads = positive(entry, "kv_heads");
    // One pass as time_s, or both as measure --compute writes them.
    const double forward_s = positive(entry, "forward_s"), both_s = positive(entry, "forward_backward_s");
    const double time_s = forward_s > 0 ? forward_s : positive(entry, "time_s");
    shape.kv_heads = kv_heads > 0 ? kv_heads : shape.heads;
    if (!(shape.batch > 0 && shape.heads > 0 && shape.head_dim > 0 && shape.sequence > 0 && time_s > 0)) {
      return refuse(what, "needs batch, heads, head_dim, sequence and time_s, numbers above zero");
    }
    const auto causal = entry.find("causal");
    shape.causal = causal == entry.end() || !causal->is_boolean() || causal->get<bool>();
    const auto dtype = hardware::parse_dtype(text(entry, "dtype", "bf16"));
    if (!dtype) return refuse(what, dtype.error().message);
    const bool backward = text(entry, "pass", "forward") == "backward";
    compute::AttentionKernel kernel = compute::AttentionKernel::kFlash2;
    for (const auto known : {compute::AttentionKernel::kUnfused, compute::AttentionKernel::kFlash1, compute::AttentionKernel::kTriton,
                             compute::AttentionKernel::kFlash3, compute::AttentionKernel::kFlash4}) {
      if (text(entry, "kernel", "") == compute::name(known)) kernel = known;
    }
    add(fmt::format("attention over {:.0f} tokens", shape.sequence), time_s, [=, dtype = *dtype](const compute::KernelModel& kernels) {
      return backward ? kernels.attention_backward_s(kernel, dtype, shape) : kernels.attention_forward_s(kernel, dtype, shape);
    });
    if (!(both_s > time_s)) return;
    add(fmt::format("attention backward over {:.0f} tokens", shape.sequence), both_s - time_s, [=, dtype = *dtype](const compute::KernelModel& kernels) {
      return kernels.attention_backward_s(kernel, dtype, shape);
    });
  }

  void add_launch(double launch_s, int year) {
    input.observations.push_back({input.name, launch_s, 1, [year](const simulate::Parameters& p) {
                                    return compute::LaunchModel(p.compute).launch_s(compute::Execution::kEager, year);
                                  }});
    input.labels.push_back("one kernel launch");
  }
};

}  // namespace

Result<Input> read_kernel_timings(std::string_view text_of_file, const std::string& file, const Machine& machine) {
  const Json json = Json::parse(text_of_file, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return fail("not JSON, or no object", {file, 1, 1}, {"expected what chokepoint measure --compute writes"});
  Input input{file, "kernels", {}, {}, {}};
  hardware::Accelerator accelerator;
  const std::string named = text(json, "accelerator", text(json, "device", "").c_str());
  if (auto found = hardware::find_accelerator(named); !named.empty() && found) {
    accelerator = *found;
    if (machine.accelerator && machine.accelerator->name != accelerator.name) {
      return fail(fmt::format("measured on {}, but the machine has {}", accelerator.name, machine.accelerator->name), {file, 0, 0}, {});
    }
  } else if (machine.accelerator) {
    accelerator = *machine.accelerator;
  } else {
    return fail(named.empty() ? "the timings do not say on which accelerator" : fmt::format("unknown accelerator '{}'", named), {file, 0, 0},
                {"give --accelerator; chokepoint accelerators lists them"});
  }
  const bool sustained = text(json, "clock", "burst") == "sustained";
  Timings timings{accelerator, sustained ? compute::Clock::kSustained : compute::Clock::kBurst, input, 0};
  if (const double launch_s = positive(json, "launch_s"); launch_s > 0) timings.launch_s = launch_s;
  const auto each = [&](const char* key, auto add) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array()) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].is_object()) add((*list)[i], i);
    }
  };
  each("gemm", [&](const Json& entry, std::size_t i) { timings.add_gemm(entry, i); });
  each("attention", [&](const Json& entry, std::size_t i) { timings.add_attention(entry, i); });
  const double year = positive(json, "year");
  if (const double launch_s = positive(json, "launch_s"); launch_s > 0) {
    timings.add_launch(launch_s, year > 2000 && year < 2100 ? static_cast<int>(year) : 0);
  }
  if (!input.observations.empty()) {
    share_weight(input);
    return input;
  }
  std::vector<std::string> why{"expected gemm: [{dtype, m, n, k, time_s}], attention: [...] or launch_s"};
  for (std::size_t i = 0; i < input.notes.size() && i < 3; ++i) why.push_back(input.notes[i].text);
  return fail("no kernel timing can be used", {file, 0, 0}, why);
}

}  // namespace chokepoint::calibrate

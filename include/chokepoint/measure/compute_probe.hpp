// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernel times measured on the user's own accelerator: the PyTorch script that measures them, the table it writes
// (docs/formats/measure-compute.md), and each row beside the model's time.
#include <chokepoint/base/result.hpp>
#include <chokepoint/compute/kernels.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::measure {

/// The script, for Python 3.9 or newer with PyTorch 1.13 or newer. Static text.
std::string_view compute_script();

struct GemmTiming {
  hardware::Dtype dtype = hardware::Dtype::kBf16;
  double m = 0, n = 0, k = 0;
  compute::Clock clock = compute::Clock::kBurst;
  double time_s = 0;
};

struct AttentionTiming {
  hardware::Dtype dtype = hardware::Dtype::kBf16;
  std::string kernel;  ///< "sdpa": whatever scaled_dot_product_attention chose; "unfused"
  compute::AttentionShape shape;
  double forward_s = 0;
  std::optional<double> forward_backward_s;
};

/// One decoder layer of plain PyTorch, as src/measure/compute_probe.py spells it.
struct LayerTiming {
  hardware::Dtype dtype = hardware::Dtype::kBf16;
  std::string mode;  ///< "eager", "compiled", "graph"
  double hidden = 0, ffn_hidden = 0, heads = 0, batch = 0, sequence = 0;
  double forward_s = 0;
  std::optional<double> forward_backward_s;
};

struct ComputeTable {
  std::string device;       ///< as the driver names it: "NVIDIA A100-SXM4-80GB"
  std::string device_type;  ///< "cuda" (ROCm too), "xpu", "cpu"
  std::string torch;
  double compute_units = 0;
  double power_limit_w = 0;       ///< 0: not known
  double launch_s = 0;            ///< from one eager launch to the next
  std::optional<double> graph_launch_s;
  double copy_bytes_per_s = 0;    ///< read plus written, on the device
  std::vector<GemmTiming> gemm;
  std::vector<AttentionTiming> attention;
  std::vector<LayerTiming> layer;
  std::vector<Note> refused;      ///< rows that could not be used, and why
};

/// Reads a table. A row with a missing or impossible figure goes to `refused`; a text that is no such table is an error.
Result<ComputeTable> read_compute_table(std::string_view json, const std::string& file);

/// One measured kernel and the model's time of it.
struct ComputeRow {
  std::string kernel;  ///< "product", "attention-forward", "attention-backward", "copy"
  std::string shape;   ///< in words
  hardware::Dtype dtype = hardware::Dtype::kBf16;
  double measured_s = 0;
  double predicted_s = 0;
};

/// Kernels only: a layer's time belongs to the step model. The model knows launches from the table: no kernel shows
/// faster than `launch_s`.
std::vector<ComputeRow> compare(const ComputeTable& table, const hardware::Accelerator& part,
                                const compute::Constants& constants = {});

}  // namespace chokepoint::measure

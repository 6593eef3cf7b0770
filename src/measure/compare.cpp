// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chokepoint/measure/compute_probe.hpp>

namespace chokepoint::measure {
namespace {

using compute::AttentionKernel;
using compute::Clock;
using compute::KernelModel;

std::string whole(double value) { return std::to_string(static_cast<long long>(value)); }

/// What scaled_dot_product_attention dispatches to: flash 2, on Blackwell cuDNN.
AttentionKernel kernel_of(const AttentionTiming& row, const hardware::Accelerator& part) {
  if (row.kernel == "unfused") return AttentionKernel::kUnfused;
  const bool blackwell = part.architecture == hardware::Architecture::kBlackwell;
  return blackwell ? AttentionKernel::kFlash4 : AttentionKernel::kFlash2;
}

std::string words(const AttentionTiming& row) {
  return "batch " + whole(row.shape.batch) + ", heads " + whole(row.shape.heads) + "/" + whole(row.shape.kv_heads) + " x " +
         whole(row.shape.head_dim) + ", sequence " + whole(row.shape.sequence) + (row.shape.causal ? ", causal" : "");
}

}  // namespace

std::vector<ComputeRow> compare(const ComputeTable& table, const hardware::Accelerator& part,
                                const compute::Constants& constants) {
  hardware::Accelerator own = part;
  if (table.power_limit_w > 0) own.power_w = table.power_limit_w;
  const KernelModel burst(own, Clock::kBurst, constants);
  const KernelModel sustained(own, Clock::kSustained, constants);
  const auto seen = [&](double kernel_s) { return std::max(kernel_s, table.launch_s); };
  std::vector<ComputeRow> out;
  for (const GemmTiming& row : table.gemm) {
    const KernelModel& model = row.clock == Clock::kBurst ? burst : sustained;
    out.push_back({"product", whole(row.m) + " x " + whole(row.n) + " x " + whole(row.k), row.dtype, row.time_s,
                   seen(model.gemm_s(row.dtype, row.m, row.n, row.k))});
  }
  for (const AttentionTiming& row : table.attention) {
    const AttentionKernel kernel = kernel_of(row, own);
    out.push_back({"attention-forward", words(row), row.dtype, row.forward_s,
                   seen(burst.attention_forward_s(kernel, row.dtype, row.shape))});
    if (row.forward_backward_s)
      out.push_back({"attention-backward", words(row), row.dtype, *row.forward_backward_s - row.forward_s,
                     seen(burst.attention_backward_s(kernel, row.dtype, row.shape))});
  }
  constexpr double kCopied_bytes = 2147483648.0;  // read and written
  out.push_back({"copy", "1 GiB", hardware::Dtype::kBf16, kCopied_bytes / table.copy_bytes_per_s, seen(burst.memory_s(kCopied_bytes))});
  return out;
}

}  // namespace chokepoint::measure

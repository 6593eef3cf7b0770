// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step model's own constants. Plain values, so that a fit, a left-out run or a user's profile can vary them; refs()
// names each one with its unit, source and how far it may move.
#include <chokepoint/base/parameter.hpp>
#include <vector>

namespace chokepoint::simulate {

struct Constants {
  /// Products and memory passes inside a step against the same kernels alone: caches hold other data, clocks follow the
  /// mixed load, small gaps follow each kernel. Attention runs long enough not to notice.
  double kernel_in_step = 1.22;
  /// The same where kernels are fused by hand and casts ride along (Transformer Engine, Megatron-Core from 2023).
  double kernel_in_step_fused = 1.06;
  /// Kernels of one machine against the model's: its clocks, cooling, memory and library versions.
  double machine_pace = 1;
  /// Python of one decoder layer beyond its launches, eager: module calls, autograd functions, allocator.
  double python_forward_s = 0.85e-3;
  double python_backward_s = 0.75e-3;
  double python_compiled_share = 0.3;  ///< compiled layers keep guards and a few wrappers
  /// Gathers, scatters and their stream hand-over per pass when tensor parallelism comes with sequence parallelism.
  double sequence_parallel_host_s = 1.1e-3;
  double tensor_host_s = 0.05e-3;
  double sharded_unit_host_s = 0.3e-3;  ///< hooks of sharded units per pass: unshard, reshard, record streams
  double routing_kernels = 35;  ///< small kernels of a router and its dispatcher, forward, beside products and moves
  double moe_host_factor = 1.6;  ///< host work of a mixture-of-experts layer against a dense one: routing, counts
  /// Host work once per step that nothing hides: data hand-over, loss readback, gradient-norm check, logging.
  double step_fixed_s = 0.017;
  double slice_copy_s = 5.5e-6;  ///< a small copy in a loop of eager Python: slicing, dispatcher, launch
  double communication_units = 18;  ///< SMs that communication kernels hold while they overlap
  /// Share of tensor-parallel communication left when products are cut into pieces that overlap it.
  double async_tensor_exposed = 0.55;
  /// DeepSpeed fetches parameters tensor by tensor, coalesced up to the prefetch bucket, and copies them out of a flat
  /// buffer (runtime/zero/partition_parameters.py): added to each gather, and the share of gathers that can hide at all.
  double fetch_s_per_byte = 1 / 70e9;
  double fetch_overlap_share = 0.4;
  /// Share of the host memory's specified rate that Adam on the CPU reaches: 10 B parameters of 28 bytes in 2.57 s on a
  /// DGX-2 with 2 x 6 channels of DDR4-2666 (ZeRO-Offload, arXiv 2101.06840, table 4).
  double host_adam_share = 0.43;
  double pinned_copy_share = 0.8;  ///< of PCIe's rate that pinned copies reach

  // Relative errors by class of the bill, for the band.
  double band_compute = 0.12;
  double band_host = 0.50;
  double band_bubble = 0.20;
  double band_wires_measured = 0.40;  ///< collectives measured in the same job
  double band_wires = 0.60;
  double band_generation = 0.12;      ///< added where no products of the accelerator's generation were measured
  double band_framework = 0.08;       ///< added where the framework is not known
  double band_source = 0.10;          ///< software versions, clocks, what the description leaves out
};

/// Every member of `constants`, in the order above.
std::vector<ParameterRef> refs(Constants& constants);

}  // namespace chokepoint::simulate

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step model's own constants; simulate::parameters() lists them with their sources.

namespace chokepoint::simulate {

/// Products and memory passes inside a step against the same kernels alone: caches hold other data, clocks follow the
/// mixed load, small gaps follow each kernel. Attention runs long enough not to notice.
inline constexpr double kKernelInStep = 1.15;
/// The same where kernels are fused by hand and casts ride along (Transformer Engine, Megatron-Core from 2023).
inline constexpr double kKernelInStepFused = 1.06;
/// Python of one decoder layer beyond its launches, eager: module calls, autograd functions, allocator.
inline constexpr double kPythonForward_s = 0.85e-3;
inline constexpr double kPythonBackward_s = 0.75e-3;
/// Compiled layers keep guards and a few wrappers.
inline constexpr double kPythonCompiledShare = 0.3;
/// Gathers, scatters and their stream hand-over per pass when tensor parallelism comes with sequence parallelism.
inline constexpr double kSequenceParallelHost_s = 1.1e-3;
inline constexpr double kTensorHost_s = 0.05e-3;
/// Hooks of sharded units per pass: unshard, reshard, record streams.
inline constexpr double kShardedUnitHost_s = 0.3e-3;
/// Host work once per step that nothing hides: data hand-over, loss readback, gradient-norm check, logging.
inline constexpr double kStepFixed_s = 0.012;
/// SMs that communication kernels hold while they overlap (NCCL's default channel counts lie in 16-32).
inline constexpr double kCommunicationUnits = 18;
/// Share of tensor-parallel communication left when products are cut into pieces that overlap it.
inline constexpr double kAsyncTensorExposed = 0.55;
/// Sustained rate of host memory, two sockets, for optimizer steps on the CPU.
inline constexpr double kHostMemory_bytes_per_s = 150e9;
/// Share of PCIe's rate that pinned copies reach.
inline constexpr double kPinnedCopyShare = 0.8;

/// Host work of a mixture-of-experts layer against a dense one: routing, permutation, counts.
inline constexpr double kMoeHostFactor = 1.6;
/// Relative errors by class of the bill, for the band.
inline constexpr double kBandCompute = 0.12;
inline constexpr double kBandHost = 0.50;
inline constexpr double kBandBubble = 0.20;
inline constexpr double kBandWiresMeasured = 0.40;  ///< collectives measured in the same job
inline constexpr double kBandWires = 0.60;
inline constexpr double kBandSource = 0.10;         ///< software versions, clocks, what the description leaves out

}  // namespace chokepoint::simulate

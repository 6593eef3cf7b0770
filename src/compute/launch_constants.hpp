// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host launch costs, from public profiler traces (docs/models/compute.md lists them). The profiler itself slows the
// host; 0.6 of the profiled distance between launches is taken as the undisturbed one.

namespace chokepoint::compute {

inline constexpr int kFirstYear = 2021;
inline constexpr int kLastYear = 2025;
inline constexpr int kDefaultYear = 2023;
/// 2021: median 37-60 us between launches (V100 hosts, profiled), times 0.6.
inline constexpr double kEagerLaunch_s = 25e-6;
/// 2023: 32-34 us (A100), 2024: 19 us (H100), 2025: 8-16 us (MI300X), each profiled.
inline constexpr double kYearlyFactor = 0.78;
/// Generated code skips the dispatcher and most of Python: about 5 us a launch where eager takes 12.
inline constexpr double kCompiledOverEager = 0.4;
/// Nodes of a captured graph follow each other on the device without the host (NVIDIA, "Getting Started with CUDA
/// Graphs": 3.8 us a kernel with launches, 3.4 us in a graph, of which 2.9 us is the kernel).
inline constexpr double kGraphLaunch_s = 0.5e-6;

/// Qwen1.5 layer in plain PyTorch on H100: 1,465 kernels over 34.4 layer passes.
inline constexpr int kPrimitiveForwardKernels = 43;
/// Two norms, four products, bias-activation, two bias-dropout-adds, attention, its four reshapes, rotary embedding (2),
/// casts (2): counted from the operators.
inline constexpr int kFusedForwardKernels = 17;
/// Products and attention stay library calls (5), pointwise chains merge into about four kernels.
inline constexpr int kCompiledForwardKernels = 9;
/// Two products for one, softmax, dropout and two copies in place of one fused kernel.
inline constexpr int kUnfusedAttentionKernels = 5;
/// Each product has two in the backward, each pointwise operator one or two, and gradients are accumulated.
inline constexpr int kBackwardOverForward = 2;

}  // namespace chokepoint::compute

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention kernels: shares of the dense peak at head_dim 128 and long sequences, from the papers of the kernels.

namespace chokepoint::compute {

/// Per FLOP/s of one unit's peak. A100 (2.89 TFLOP/s per SM): flash 2 forward 0.69 to 0.72 of peak (arXiv:2307.08691, fig. 5).
inline constexpr double kSoftmaxBeta = 0.0944e-12;
/// Against flash 2 forward on the same part (arXiv:2307.08691, figs. 5 and 6, A100).
inline constexpr double kFlash2Backward = 0.87;
inline constexpr double kFlash1Forward = 0.52;
inline constexpr double kFlash1Backward = 0.45;
inline constexpr double kTritonForward = 0.65;
inline constexpr double kTritonBackward = 0.42;
/// H100-SXM, 640-660 and 540-560 of 989 TFLOP/s (arXiv:2407.08608, figs. 5 and 6).
inline constexpr double kFlash3Forward = 0.67;
inline constexpr double kFlash3Backward = 0.57;
/// B200: cuDNN rows of the SimuMax table, 0.52-0.60 and 0.43-0.48 of 2250 TFLOP/s once all units are busy; flash 4
/// reports 0.71 in a short benchmark (together.ai, 2026).
inline constexpr double kFlash4Forward = 0.60;
inline constexpr double kFlash4Backward = 0.48;
/// Loss of the share per element of head_dim above 128, down to kWideHeadFloor. SimuMax rows with 192/128 heads:
/// 0.89-1.0 forward and 0.77-0.83 backward of head_dim 128.
inline constexpr double kWideHeadLossForward = 0.003;
inline constexpr double kWideHeadLossBackward = 0.0065;
inline constexpr double kWideHeadFloor = 0.75;
/// Prologue and epilogue of a block, in keys it could have passed: the fall towards short sequences in the same figures.
inline constexpr double kBlockOverheadKeys = 192;
/// Attention draws less power than dense products, so it may run this much above their sustained share.
inline constexpr double kPowerHeadroom = 1.2;

/// Memory passes over one score beyond the products' own reads and writes, in 16-bit arithmetic with a byte mask:
/// scale-mask-softmax reads and writes (4 B), dropout reads, writes and stores its mask (5 B).
inline constexpr double kUnfusedForwardBytes = 9;
/// Dropout backward reads the gradient and the mask and writes (5 B), softmax backward reads two and writes one (6 B).
inline constexpr double kUnfusedBackwardBytes = 11;

}  // namespace chokepoint::compute

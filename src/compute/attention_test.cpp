// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/compute/kernels.hpp>
#include <gtest/gtest.h>

namespace chokepoint::compute {
namespace {

using hardware::Accelerator;
using hardware::Architecture;
using hardware::Dtype;

Accelerator part(Architecture architecture, int units, double peak, double bandwidth, double power_w) {
  Accelerator out;
  out.architecture = architecture;
  out.compute_units = units;
  out.memory_bytes_per_s = bandwidth;
  out.power_w = power_w;
  out.peak_flops_per_s[static_cast<std::size_t>(Dtype::kBf16)] = peak;
  out.peak_flops_per_s[static_cast<std::size_t>(Dtype::kFp16)] = peak;
  return out;
}
Accelerator a100() { return part(Architecture::kAmpere, 108, 312e12, 2.039e12, 400); }
Accelerator h100() { return part(Architecture::kHopper, 132, 989e12, 3.35e12, 700); }

AttentionShape shape(double heads, double sequence, bool causal, double head_dim = 128) {
  return {1, heads, heads, head_dim, sequence, sequence, causal};
}

TEST(Attention, LongForwardOfFlash2ReachesItsPublishedRateOnA100) {
  // 4 * 16 heads * 16384^2 * 128 FLOP; the paper plots about 220 TFLOP/s without mask at head_dim 128, of 312.
  const double flops = 4.0 * 16 * 16384 * 16384 * 128;
  const double rate = flops / KernelModel(a100()).attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16,
                                                                      shape(16, 16384, false));
  EXPECT_GT(rate, 190e12);
  EXPECT_LT(rate, 230e12);
}

TEST(Attention, CausalMaskHalvesLongSequencesButNotShortOnes) {
  const KernelModel model(a100());
  auto ratio = [&](double heads, double sequence) {
    return model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, shape(heads, sequence, true)) /
           model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, shape(heads, sequence, false));
  };
  EXPECT_NEAR(ratio(64, 32768), 0.5, 0.02);
  EXPECT_GT(ratio(2048, 256), 0.7);  // two blocks a row: three of four are computed
}

TEST(Attention, BackwardTakesTwoAndAHalfForwardsOrMore) {
  const KernelModel model(a100());
  const auto s = shape(32, 8192, true);
  EXPECT_GT(model.attention_backward_s(AttentionKernel::kFlash2, Dtype::kBf16, s),
            2.5 * model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, s));
}

TEST(Attention, EachGenerationBeatsTheOneBefore) {
  const KernelModel model(h100());
  const auto s = shape(32, 8192, true);
  double previous = 1e9;
  for (const auto kernel : {AttentionKernel::kUnfused, AttentionKernel::kFlash1, AttentionKernel::kTriton,
                            AttentionKernel::kFlash2, AttentionKernel::kFlash3}) {
    const double time = model.attention_forward_s(kernel, Dtype::kBf16, s);
    EXPECT_LT(time, previous) << name(kernel);
    previous = time;
  }
}

TEST(Attention, KernelsOfNewerPartsFallBackOnOlderOnes) {
  const auto s = shape(32, 8192, true);
  const KernelModel ampere(a100());
  EXPECT_DOUBLE_EQ(ampere.attention_forward_s(AttentionKernel::kFlash3, Dtype::kBf16, s),
                   ampere.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, s));
  const KernelModel volta(part(Architecture::kVolta, 80, 125e12, 0.9e12, 300));
  EXPECT_DOUBLE_EQ(volta.attention_forward_s(AttentionKernel::kFlash1, Dtype::kFp16, s),
                   volta.attention_forward_s(AttentionKernel::kUnfused, Dtype::kFp16, s));
}

TEST(Attention, FewHeadsLeaveUnitsIdle) {
  const KernelModel model(a100());
  auto per_head = [&](double heads) {
    return model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, shape(heads, 4096, true)) / heads;
  };
  EXPECT_GT(per_head(4), 1.8 * per_head(64));
}

TEST(Attention, UnfusedPassesOverTheScoresByHand) {
  // 16 heads, 2048^2 scores: 67.1 M. Passes: 9 B each at 0.88 * 2.039 TB/s = 336.6 us, and the products on top.
  const KernelModel model(a100());
  const auto s = shape(16, 2048, true);
  const double products =
      model.gemm_s(Dtype::kBf16, 2048, 2048, 128, 16) + model.gemm_s(Dtype::kBf16, 2048, 128, 2048, 16);
  EXPECT_NEAR(model.attention_forward_s(AttentionKernel::kUnfused, Dtype::kBf16, s), products + 336.6e-6 + 6e-6, 1e-6);
}

TEST(Attention, UnfusedHeadsOffSixteenBytesRunWithoutMatrixUnits) {
  // 16 heads of 108 (216 bytes, 8 past a multiple of 16), 2048^2 scores: 4 x 67.1 M x 108 = 29.0 GFLOP at half of fp32's
  // 19.5 TFLOP/s = 2.97 ms; passes 336.6 us as above. Heads of 112 keep the matrix units.
  Accelerator with_vectors = a100();
  with_vectors.peak_flops_per_s[static_cast<std::size_t>(Dtype::kFp32)] = 19.5e12;
  const KernelModel model(with_vectors);
  const double unaligned = model.attention_forward_s(AttentionKernel::kUnfused, Dtype::kFp16, shape(16, 2048, true, 108));
  EXPECT_NEAR(unaligned, 2.97e-3 + 336.6e-6 + 6e-6, 0.02e-3);
  EXPECT_LT(model.attention_forward_s(AttentionKernel::kUnfused, Dtype::kFp16, shape(16, 2048, true, 112)), 0.3 * unaligned);
  // Two products forward, four backward.
  EXPECT_GT(model.attention_backward_s(AttentionKernel::kUnfused, Dtype::kFp16, shape(16, 2048, true, 108)), 1.9 * unaligned - 336.6e-6);
}

TEST(Attention, FusedKernelsPadHeadsOffSixteenBytes) {
  const KernelModel model(a100());
  const double odd = model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, shape(16, 2048, true, 108));
  EXPECT_LE(odd, 1.01 * model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, shape(16, 2048, true, 112)));
}

TEST(Attention, NarrowHeadsReachLessOfThePeak) {
  // Same FLOPs: twice the heads at half the width.
  const KernelModel model(h100());
  EXPECT_GT(model.attention_forward_s(AttentionKernel::kFlash3, Dtype::kBf16, shape(64, 8192, true, 64)),
            1.2 * model.attention_forward_s(AttentionKernel::kFlash3, Dtype::kBf16, shape(32, 8192, true, 128)));
}

}  // namespace
}  // namespace chokepoint::compute

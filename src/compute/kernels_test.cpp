// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/compute/kernels.hpp>
#include <gtest/gtest.h>

#include <cmath>

namespace chokepoint::compute {
namespace {

using hardware::Accelerator;
using hardware::Architecture;
using hardware::Dtype;

void set_peak(Accelerator& part, Dtype dtype, double flops) {
  part.peak_flops_per_s[static_cast<std::size_t>(dtype)] = flops;
}

Accelerator a100() {
  Accelerator part;
  part.architecture = Architecture::kAmpere;
  part.compute_units = 108;
  part.memory_bytes_per_s = 2.0e12;
  part.power_w = 400;
  set_peak(part, Dtype::kBf16, 312e12);
  set_peak(part, Dtype::kFp16, 312e12);
  set_peak(part, Dtype::kFp32, 19.5e12);
  return part;
}

Accelerator h100() {
  Accelerator part = a100();
  part.architecture = Architecture::kHopper;
  part.compute_units = 132;
  part.memory_bytes_per_s = 3.35e12;
  part.power_w = 700;
  set_peak(part, Dtype::kBf16, 989e12);
  set_peak(part, Dtype::kFp16, 989e12);
  set_peak(part, Dtype::kFp8, 1979e12);
  return part;
}

TEST(Gemm, OneFullWaveTakesItsTileTimeWorkedOutByHand) {
  // 256 x 128 tiles: 1536/256 * 2304/128 = 6 * 18 = 108 tiles, one per SM.
  // Loop: 2*256*128*4096 FLOP / (312e12/108 FLOP/s) * (1 + 10.5/256 + 10.5/128) = 92.92 us * 1.12305 = 104.36 us.
  // Operands: 2 B * (1536*4096 + 4096*2304 + 1536*2304) = 38.54 MB at 0.88 * 2.0 TB/s = 21.90 us, a quarter of it exposed.
  // Plus 4 us of fill and drain and 3 us of launch tail. 128 x 256 tiles give 12 * 9 = 108 too; smaller are slower.
  const KernelModel model(a100(), Clock::kBurst);
  EXPECT_NEAR(model.gemm_s(Dtype::kBf16, 1536, 2304, 4096), 104.36e-6 + 0.25 * 21.90e-6 + 4e-6 + 3e-6, 0.02e-6);
}

TEST(Gemm, AWaveStartedForOneTileCostsMoreThanItsShareOfTheWork) {
  const KernelModel model(a100(), Clock::kBurst);
  const double full = model.gemm_s(Dtype::kBf16, 1536, 2304, 4096);
  const double spilled = model.gemm_s(Dtype::kBf16, 1536, 2304 + 128, 4096);  // 6 tiles more in a second wave
  EXPECT_GT(spilled / full, 1.2);
}

TEST(Gemm, LargeSustainedProductsRunAtTheSustainedFraction) {
  const KernelModel model(h100());
  const double flops = 2.0 * 16384 * 16384 * 16384;
  const double rate = flops / model.gemm_s(Dtype::kBf16, 16384, 16384, 16384);
  // Operands of 3 * 2 * 16384^2 B take 0.53 ms of the 11.7 ms, 0.4 of which the power limit counts: 1.8 %.
  EXPECT_NEAR(rate / 989e12, model.sustained_fraction(Dtype::kBf16) / 1.018, 0.002);
  EXPECT_NEAR(model.sustained_fraction(Dtype::kBf16), 0.76, 0.001);  // 700 W over 989 TFLOP/s is the reference density
}

TEST(Gemm, ABurstIsFasterThanTheSustainedRate) {
  EXPECT_LT(KernelModel(h100(), Clock::kBurst).gemm_s(Dtype::kBf16, 8192, 8192, 8192),
            KernelModel(h100()).gemm_s(Dtype::kBf16, 8192, 8192, 8192));
}

TEST(Gemm, LessBoardPowerSustainsLess) {
  // 300 W against 400 W on the same peak: 0.86 * 0.75^0.45 = 0.7556.
  Accelerator pcie = a100();
  pcie.power_w = 300;
  EXPECT_NEAR(KernelModel(pcie).sustained_fraction(Dtype::kBf16), 0.7556, 0.001);
}

TEST(Gemm, SkinnyProductsAreBoundByMemory) {
  // m = 1: the weights, 8192 * 8192 * 2 B, cross memory once at 0.88 * 2.0 TB/s: 76.3 us; the launch's tail comes on top.
  const KernelModel model(a100());
  EXPECT_NEAR(model.gemm_s(Dtype::kBf16, 1, 8192, 8192), 76.3e-6 + 3e-6, 3e-6);
}

TEST(Gemm, TimeGrowsWithEveryDimension) {
  const KernelModel model(h100());
  double previous = 0;
  for (double m = 256; m <= 65536; m *= 2) {
    const double time = model.gemm_s(Dtype::kBf16, m, 4096, 4096);
    EXPECT_GE(time, previous) << m;
    previous = time;
  }
  previous = 0;
  for (double k = 64; k <= 65536; k *= 2) {
    const double time = model.gemm_s(Dtype::kBf16, 4096, 4096, k);
    EXPECT_GE(time, previous) << k;
    previous = time;
  }
}

TEST(Gemm, ABatchCostsLessThanItsProductsOneByOne) {
  const KernelModel model(a100());
  EXPECT_LT(model.gemm_s(Dtype::kBf16, 512, 512, 64, 96), 96 * model.gemm_s(Dtype::kBf16, 512, 512, 64));
}

TEST(Gemm, MemoryTrafficTakesItsShareOfThePowerLimit) {
  // 0.4 of the time of the operands' bytes comes on top where the board's power bounds the product.
  const KernelModel model(h100());
  const double n = 16384;
  const double k = 2048;
  const double power = 2 * n * n * k / (0.76 * 989e12);
  const double memory = 2 * (2 * n * k + n * n) / (0.90 * 3.35e12);
  EXPECT_NEAR(model.gemm_s(Dtype::kBf16, n, n, k), power + 0.4 * memory + 3e-6, 1e-6);
}

TEST(Gemm, AccumulatingReadsAndWritesTheWiderResult) {
  const KernelModel model(h100());
  EXPECT_GT(model.gemm_accumulate_s(Dtype::kBf16, 4096, 4096, 1024), model.gemm_s(Dtype::kBf16, 4096, 4096, 1024));
  EXPECT_GT(model.gemm_accumulate_s(Dtype::kBf16, 4096, 4096, 1024, 1, 4),
            model.gemm_accumulate_s(Dtype::kBf16, 4096, 4096, 1024, 1, 2));
}

TEST(GroupedGemm, SmallExpertsOneByOneAreSlowerThanTogether) {
  // 64 experts of 154 tokens: a tile wave each, mostly idle, against all tiles in common waves.
  const KernelModel model(h100());
  const GroupedShape small{64, 154, 2048, 2048, 1};
  const double loop = model.grouped_gemm_s(GroupedKernel::kLoop, Dtype::kBf16, small);
  const double streams = model.grouped_gemm_s(GroupedKernel::kStreams, Dtype::kBf16, small);
  const double fused = model.grouped_gemm_s(GroupedKernel::kFused, Dtype::kBf16, small);
  EXPECT_GT(loop, fused);
  EXPECT_GT(streams, fused);
  EXPECT_GE(streams, 64 * 9e-6);  // one library call of 9 us for each
}

TEST(GroupedGemm, RowsArePaddedToTheirMultiple) {
  const KernelModel model(h100());
  const auto time = [&](double rows, double multiple) {
    return model.grouped_gemm_s(GroupedKernel::kFused, Dtype::kBf16, {8, rows, 4096, 4096, multiple});
  };
  EXPECT_DOUBLE_EQ(time(130, 128), time(256, 1));
  EXPECT_DOUBLE_EQ(time(128, 128), time(128, 1));
}

TEST(GroupedGemm, ALoopIsTheSumOfItsProducts) {
  const KernelModel model(a100());
  EXPECT_DOUBLE_EQ(model.grouped_gemm_s(GroupedKernel::kLoop, Dtype::kBf16, {8, 512, 1024, 1024, 1}),
                   8 * model.gemm_s(Dtype::kBf16, 512, 1024, 1024));
}

TEST(Gemm, OddExtentsAreSlower) {
  const KernelModel model(a100());
  EXPECT_GT(model.gemm_s(Dtype::kBf16, 8192, 50257, 4096), 1.5 * model.gemm_s(Dtype::kBf16, 8192, 50304, 4096));
}

TEST(Gemm, WorkWithoutExtentCostsTheLaunchTailOnly) {
  const KernelModel model(a100());
  EXPECT_DOUBLE_EQ(model.gemm_s(Dtype::kBf16, 0, 128, 128), model.memory_s(0));
  EXPECT_DOUBLE_EQ(model.gemm_s(Dtype::kBf16, std::nan(""), 128, 128), model.memory_s(0));
}

TEST(Gemm, ADtypeWithoutAUnitRunsInTheNextWiderOne) {
  const KernelModel ampere(a100());  // no fp8 units
  EXPECT_DOUBLE_EQ(ampere.gemm_s(Dtype::kFp8, 4096, 4096, 4096), ampere.gemm_s(Dtype::kBf16, 4096, 4096, 4096));
  Accelerator volta = a100();
  volta.architecture = Architecture::kVolta;
  set_peak(volta, Dtype::kBf16, 0);
  const KernelModel old(volta);
  EXPECT_GT(old.gemm_s(Dtype::kBf16, 4096, 4096, 4096), 5 * old.gemm_s(Dtype::kFp16, 4096, 4096, 4096));
}

TEST(Gemm, Fp8GainsLessThanItsPeak) {
  const KernelModel model(h100());
  const double gain =
      model.gemm_s(Dtype::kBf16, 8192, 8192, 8192) / model.gemm_s(Dtype::kFp8, 8192, 8192, 8192);
  EXPECT_GT(gain, 1.7);
  EXPECT_LT(gain, 2.0);
}

TEST(Memory, StreamsAtTheAchievedFractionAfterTheTail) {
  // 1 GiB at 0.88 * 2.0 TB/s: 610.1 us, and 3 us.
  EXPECT_NEAR(KernelModel(a100()).memory_s(1073741824), 613.1e-6, 0.1e-6);
}

TEST(KernelModel, APartWithoutFiguresGivesFiniteTimes) {
  const KernelModel model{Accelerator{}};
  EXPECT_TRUE(std::isfinite(model.gemm_s(Dtype::kBf16, 64, 64, 64)));
  EXPECT_TRUE(std::isfinite(model.memory_s(1e6)));
  EXPECT_TRUE(std::isfinite(model.attention_forward_s(AttentionKernel::kFlash2, Dtype::kBf16, {})));
}

}  // namespace
}  // namespace chokepoint::compute

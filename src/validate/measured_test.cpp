// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"

#include <gtest/gtest.h>

namespace chokepoint::validate {
namespace {

/// 16 layers of width 1,024 with 16 heads, vocabulary 50,000, 8 sequences of 1,000 tokens on 4 GPUs.
parallel::Job job() {
  parallel::Job job;
  model::Model& m = job.model;
  m.layers = 16;
  m.hidden = 1024;
  m.ffn_hidden = 4096;
  m.heads = m.kv_heads = 16;
  m.head_dim = 64;
  m.vocab = 50000;
  m.tied_embeddings = true;
  job.sequence = 1000;
  job.global_batch = 8;
  job.gpus = 4;
  job.accelerator.memory_bytes = 80.0 * 1024 * 1024 * 1024;
  job.accelerator.peak_flops_per_s[static_cast<std::size_t>(hardware::Dtype::kBf16)] = 312e12;
  return job;
}

double seconds(const RunFields& row, parallel::Recompute recompute = parallel::Recompute::kNone) {
  parallel::Strategy strategy;
  strategy.recompute = recompute;
  return measured_step(row, job(), strategy).value_or(Measured{}).step_time_s;
}

// Forward: 2 x 8,000 tokens x 16 x 12 x 1,024^2 of the blocks, 4 x 8 x 1,000^2 x 1,024 x 16 of the attention square,
// 2 x 8,000 x 1,024 x 50,000 of the head: 4.5647e12; three times that 1.36940e13.
constexpr double kBlocks = 2.0 * 8000 * 16 * 12 * 1024 * 1024;
constexpr double kSquare = 4.0 * 8 * 1000 * 1000 * 1024 * 16;
constexpr double kHead = 2.0 * 8000 * 1024 * 50000;

TEST(MeasuredStep, SecondsComeFirst) {
  RunFields row;
  row.step_time_s = 2.5;
  row.tok_s_gpu = 700;  // 2.5 s would be 800
  EXPECT_DOUBLE_EQ(seconds(row), 2.5);
}

TEST(MeasuredStep, FiguresThatCannotBeTrueAreErrors) {
  RunFields row;
  row.step_time_s = 2.5;
  row.tok_s_gpu = 80;  // a digit lost
  const auto contradiction = measured_step(row, job(), {});
  ASSERT_FALSE(contradiction);
  EXPECT_NE(contradiction.error().message.find("contradict each other by a factor of 10"), std::string::npos);
  // Half the square: 1.2909e13 FLOPs on 4 x 312 TFLOP/s take 10.3 ms at least; 1 ms is ten times the peak.
  RunFields fast;
  fast.step_time_s = 1e-3;
  const auto impossible = measured_step(fast, job(), {});
  ASSERT_FALSE(impossible);
  EXPECT_NE(impossible.error().message.find("10.3 times the peak"), std::string::npos) << impossible.error().message;
}

TEST(MeasuredStep, TokensPerSecond) {
  RunFields row;
  row.tok_s_gpu = 500;
  EXPECT_DOUBLE_EQ(seconds(row), 8.0 * 1000 / (4 * 500));
}

TEST(MeasuredStep, ModelFlops) {
  RunFields row;
  row.model_tflops_gpu = 100;
  EXPECT_NEAR(seconds(row), 3 * (kBlocks + kSquare + kHead) / (4 * 100e12), 1e-9);
  row.notes = "model TFLOPS with causal attention";
  EXPECT_NEAR(seconds(row), 3 * (kBlocks + kSquare / 2 + kHead) / (4 * 100e12), 1e-9);
}

TEST(MeasuredStep, HardwareFlopsCountTheRecomputedForward) {
  RunFields row;
  row.model_tflops_gpu = 100;
  row.notes = "FLOPS=HARDWARE: Megatron formula";
  // 96 B s l h^2 (1 + s / 6h + V / 16 l h)
  const double h = 1024, expected = 96.0 * 8 * 1000 * 16 * h * h * (1 + 1000 / (6 * h) + 50000 / (16 * 16 * h));
  EXPECT_NEAR(seconds(row, parallel::Recompute::kFull), expected / (4 * 100e12), 1e-9);
}

TEST(MeasuredStep, UtilisationIsOfThePeakThatTheNotesPrint) {
  RunFields row;
  row.mfu = 0.5;
  const double flops = 3 * (kBlocks + kSquare + kHead);
  EXPECT_NEAR(seconds(row), flops / (4 * 0.5 * 312e12), 1e-9);
  row.notes = "MFU vs 250 TFLOPS";
  EXPECT_NEAR(seconds(row), flops / (4 * 0.5 * 250e12), 1e-9);
}

TEST(MeasuredStep, APrintedHardwareRateBeatsItsShareOfPeak) {
  RunFields row;
  row.hfu = 0.5;
  row.notes = "hw_tflops_gpu=100 by 8*P*tokens/time";
  row.params_b = 0.25;
  EXPECT_NEAR(seconds(row), 8 * 0.25e9 * 8000 / (4 * 100e12), 1e-9);
}

TEST(MeasuredStep, NothingMeasuredIsAnError) {
  EXPECT_FALSE(measured_step(RunFields{}, job(), parallel::Strategy{}));
}

TEST(MeasuredMemory, AFullDeviceIsNoPeak) {
  RunFields row;
  EXPECT_FALSE(measured_memory(row, job()).has_value());
  row.peak_mem_gib = 80;
  EXPECT_FALSE(measured_memory(row, job()).has_value());
  row.peak_mem_gib = 60;
  EXPECT_EQ(measured_memory(row, job())->kind, MemoryKind::kReserved);
  row.notes = "peak allocated memory";
  EXPECT_EQ(measured_memory(row, job())->kind, MemoryKind::kAllocated);
}

}  // namespace
}  // namespace chokepoint::validate

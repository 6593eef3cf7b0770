// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/calibrate/inputs.hpp>
#include <chokepoint/calibrate/profile.hpp>

#include <chokepoint/wiring/wiring.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

namespace chokepoint::calibrate {
namespace {

using testing::HasSubstr;

// 1000 steps of the fixed host work: 12 s by default, d log t / d log p = 1 for "step.fixed" and 0 for all else.
Observation fixed_work(double measured_s) {
  return {"mine", measured_s, 1, [](const simulate::Parameters& p) { return 12 * p.step.step_fixed_s / simulate::Constants{}.step_fixed_s; }};
}

Input input_of(std::vector<double> times) {
  Input input{"mine.csv", "steps", {}, {}, {}};
  for (const double time : times) input.observations.push_back(fixed_work(time));
  return input;
}

Machine machine() {
  Machine m;
  m.cluster = wiring::build_cluster("dgx-h100", 2).value();
  m.accelerator = hardware::find_accelerator("h100-sxm").value();
  return m;
}

TEST(Profile, ListsWhatChangedAndWhichInputChangedIt) {
  const auto profile = make_profile({input_of({18, 18, 18, 18, 18, 18}), input_of({12, 12, 12, 12, 12, 12})});
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->parameters.size(), 1u);
  const ProfileParameter& p = profile->parameters[0];
  EXPECT_EQ(p.info.name, "step.fixed");
  const double shipped = simulate::Constants{}.step_fixed_s;
  EXPECT_GT(p.value, shipped);
  EXPECT_LT(p.value, 1.5 * shipped);
  ASSERT_EQ(p.changed_by.size(), 1u);  // the second input agrees with the shipped value
  EXPECT_EQ(p.changed_by[0].first, 0u);
  EXPECT_NEAR(p.changed_by[0].second, 1.5, 0.1);
}

TEST(Profile, RowsHeldBackTellWhetherItHelps) {
  const auto good = make_profile({input_of({18, 18, 18, 18, 18, 18})});
  ASSERT_TRUE(good);
  EXPECT_EQ(good->held_back.rows, 2);
  EXPECT_NEAR(good->held_back.before, 1.0 / 3, 1e-9);  // |12/18 - 1|
  EXPECT_LT(good->held_back.after, 0.05);
  EXPECT_FALSE(good->makes_worse());
  // Every third row, the one held back, was right before.
  const auto bad = make_profile({input_of({18, 12, 18, 18, 12, 18})});
  ASSERT_TRUE(bad);
  EXPECT_TRUE(bad->makes_worse());
}

TEST(Profile, NothingMeasuredIsAnError) { EXPECT_FALSE(make_profile({})); }

TEST(Profile, WhatIsWrittenIsReadBack) {
  auto profile = make_profile({input_of({18, 18, 18})});
  ASSERT_TRUE(profile);
  profile->inputs[0].name = "odd \"name\".csv";
  const auto again = read_profile(to_yaml(*profile), "p.yaml");
  ASSERT_TRUE(again) << format(again.error());
  ASSERT_EQ(again->parameters.size(), 1u);
  EXPECT_EQ(again->inputs[0].name, profile->inputs[0].name);
  EXPECT_NEAR(again->parameters[0].value, profile->parameters[0].value, 1e-6);
  EXPECT_NEAR(parameters_of(*again).step.step_fixed_s, profile->parameters[0].value, 1e-6);
  EXPECT_EQ(again->held_back.rows, 1);
  ASSERT_EQ(assumptions_of(*again).size(), 1u);
  EXPECT_THAT(assumptions_of(*again)[0].text, HasSubstr("step.fixed"));
}

TEST(Profile, BadValuesAreRefused) {
  const auto read = [](const std::string& lines) { return read_profile("chokepoint_profile: 1\nparameters:\n" + lines, "p.yaml"); };
  const auto unknown = read("  - {name: step.fixd, value: 0.01}\n");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(format(unknown.error()), HasSubstr("did you mean 'step.fixed'"));
  const auto far = read("  - {name: step.fixed, value: 12000}\n");
  ASSERT_FALSE(far);
  EXPECT_THAT(far.error().message, HasSubstr("step.fixed is 1.2e+04, expected"));
  const auto counted = read("  - {name: attention.unfused_forward_bytes, value: 8}\n");
  ASSERT_FALSE(counted);
  EXPECT_THAT(counted.error().message, HasSubstr("not for a machine to change"));
  EXPECT_FALSE(read("  - {name: step.fixed, value: 0.013}\n  - {name: step.fixed, value: 0.014}\n"));
  EXPECT_FALSE(read("  - {name: step.fixed, value: 0.013, changed_by: [{input: 1, factor: 1.1}]}\n"));
  EXPECT_FALSE(read_profile("chokepoint_profile: 2\n", "p.yaml"));
  EXPECT_FALSE(read_profile("parameters: []\n", "p.yaml"));
}

std::string nccl_table(double slower) {
  std::string text = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 8(factor)\n# Using devices\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("#  Rank  {0} Group  0 Pid 1 on node0 device  {0} [0x0{0}] NVIDIA H100 80GB HBM3\n", i);
  text += "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
          "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
  for (double bytes = 1 << 20; bytes <= 8.6e9; bytes *= 8) {
    const double time_s = slower * (3e-5 + bytes / 270e9);
    const double rate = bytes / time_s;
    text += fmt::format("{:13.0f} {:13.0f} float sum -1 {:8.1f} {:7.2f} {:7.2f} 0 {:8.1f} {:7.2f} {:7.2f} 0\n", bytes, bytes / 4, time_s * 1e6,
                        rate * 1e-9, 1.75 * rate * 1e-9, time_s * 1e6, rate * 1e-9, 1.75 * rate * 1e-9);
  }
  return text;
}

TEST(Measurements, ASlowTableOfCollectivesSlowsTheWires) {
  auto inputs = read_measurements(nccl_table(1.5), "t.txt", machine());
  ASSERT_TRUE(inputs) << format(inputs.error());
  ASSERT_EQ(inputs->size(), 1u);
  EXPECT_GE((*inputs)[0].observations.size(), 5u);
  const auto profile = make_profile(*inputs);
  ASSERT_TRUE(profile);
  EXPECT_LT(profile->inputs[0].check.after, 0.6 * profile->inputs[0].check.before);
  for (const ProfileParameter& p : profile->parameters) EXPECT_THAT(p.info.name, testing::StartsWith("collective."));
}

TEST(Measurements, ATableNeedsItsWiring) {
  const auto inputs = read_measurements(nccl_table(1), "t.txt", {});
  ASSERT_FALSE(inputs);
  EXPECT_THAT(format(inputs.error()), HasSubstr("give --cluster"));
}

TEST(Measurements, ExchangedRatesAreRefusedRowByRow) {
  std::string text = nccl_table(1);
  // algbw 2.00 and busbw 3.50 of a row exchanged: 1 MiB in 524.3 us is 2.00 GB/s.
  text += "      1048576        262144 float sum -1    524.3    3.50    2.00 0    524.3    3.50    2.00 0\n";
  const auto inputs = read_measurements(text, "t.txt", machine());
  ASSERT_TRUE(inputs) << format(inputs.error());
  bool said = false;
  for (const Note& note : (*inputs)[0].notes) said = said || note.text.find("exchanged") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST(Measurements, FilesWithoutTimesAreRefused) {
  EXPECT_FALSE(read_measurements("", "t.txt", machine()));
  EXPECT_FALSE(read_measurements("hello\n", "t.txt", machine()));
  EXPECT_FALSE(read_measurements("{", "t.json", machine()));
  EXPECT_FALSE(read_measurements("{\"gemm\": 3}", "t.json", machine()));
}

TEST(KernelTimings, ImpossibleRatesAreLeftOut) {
  // 8192^3 x 2 FLOP in 1 ms are 1,100 TFLOP/s, above the 989 of an H100; in 1.6 ms they are 687.
  const auto input = read_kernel_timings(R"({"accelerator": "h100-sxm", "gemm": [
      {"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "time_s": 1e-3},
      {"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "time_s": 1.6e-3},
      {"dtype": "bf16", "m": 8192, "n": "8192", "k": 8192, "time_s": 1.6e-3}]})", "k.json", {});
  ASSERT_TRUE(input) << format(input.error());
  EXPECT_EQ(input->observations.size(), 1u);
  ASSERT_EQ(input->notes.size(), 2u);
  EXPECT_THAT(input->notes[0].text, HasSubstr("above the peak"));
  EXPECT_NEAR(input->observations[0].time_s({}), 1.6e-3, 0.4e-3);
}

TEST(KernelTimings, AnotherAcceleratorIsAnError) {
  Machine m;
  m.accelerator = hardware::find_accelerator("a100-sxm4-80gb").value();
  const auto input = read_kernel_timings(R"({"accelerator": "h100-sxm", "gemm": [{"m": 1, "n": 1, "k": 1, "time_s": 1}]})", "k.json", m);
  ASSERT_FALSE(input);
  EXPECT_THAT(input.error().message, HasSubstr("measured on"));
}

}  // namespace
}  // namespace chokepoint::calibrate

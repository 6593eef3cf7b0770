// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/compute/kernels.hpp>
#include <chokepoint/compute/launch.hpp>
#include <gtest/gtest.h>

#include <set>

namespace chokepoint::compute {
namespace {

TEST(Launch, FallsWithTheGenerationAndWithGraphs) {
  EXPECT_DOUBLE_EQ(LaunchModel().launch_s(Execution::kEager, 2021), 25e-6);
  EXPECT_NEAR(LaunchModel().launch_s(Execution::kEager, 2023), 15.21e-6, 0.01e-6);  // 25 * 0.78^2
  EXPECT_DOUBLE_EQ(LaunchModel().launch_s(Execution::kEager, 0), LaunchModel().launch_s(Execution::kEager, 2023));
  EXPECT_DOUBLE_EQ(LaunchModel().launch_s(Execution::kEager, 1999), LaunchModel().launch_s(Execution::kEager, 2021));
  EXPECT_LT(LaunchModel().launch_s(Execution::kCompiled, 2024), LaunchModel().launch_s(Execution::kEager, 2024));
  EXPECT_LT(LaunchModel().launch_s(Execution::kGraph, 2024), LaunchModel().launch_s(Execution::kCompiled, 2024));
}

TEST(Launch, FusionLeavesFewerKernels) {
  const auto plain = LaunchModel().layer_kernels(Execution::kEager, OperatorStyle::kPrimitive, false);
  const auto fused = LaunchModel().layer_kernels(Execution::kEager, OperatorStyle::kFused, false);
  const auto compiled = LaunchModel().layer_kernels(Execution::kCompiled, OperatorStyle::kPrimitive, false);
  EXPECT_EQ(plain.forward, 43);
  EXPECT_EQ(plain.backward, 86);
  EXPECT_LT(fused.forward, plain.forward);
  EXPECT_LT(compiled.forward, fused.forward);
  EXPECT_EQ(LaunchModel().layer_kernels(Execution::kEager, OperatorStyle::kFused, true).forward, fused.forward + 5);
}

TEST(Constants, AModelReadsTheValuesItIsGiven) {
  Constants slow;
  for (const ParameterRef& ref : refs(slow)) {
    EXPECT_DOUBLE_EQ(*ref.value, ref.info.value) << ref.info.name;
    if (ref.info.name == "launch.eager_2021") *ref.value *= 2;
  }
  EXPECT_DOUBLE_EQ(LaunchModel(slow).launch_s(Execution::kEager, 2021), 50e-6);
  EXPECT_DOUBLE_EQ(LaunchModel().launch_s(Execution::kEager, 2021), 25e-6);
}

TEST(Parameters, FewAreFitted) {
  int fitted = 0;
  for (const auto& parameter : parameters()) fitted += parameter.kind == ParameterKind::kFitted ? 1 : 0;
  EXPECT_LE(fitted, 22);
}

TEST(Parameters, EveryConstantIsNamedOnceWithASource) {
  std::set<std::string> names;
  for (const auto& parameter : parameters()) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    EXPECT_FALSE(parameter.source.empty()) << parameter.name;
    EXPECT_GT(parameter.value, 0) << parameter.name;
  }
}

}  // namespace
}  // namespace chokepoint::compute

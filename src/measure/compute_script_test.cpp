// SPDX-License-Identifier: Apache-2.0
// Runs the script where a Python with PyTorch is installed.
#include <chokepoint/base/files.hpp>
#include <chokepoint/measure/compute_probe.hpp>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace chokepoint::measure {
namespace {

/// The first Python that can import torch; empty for none.
std::string python_with_torch() {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (std::system((python + " -c 'import torch' >/dev/null 2>&1").c_str()) == 0) return python;
  return {};
}

TEST(ComputeScript, IsWholeAndNamesItsSchema) {
  const std::string_view script = compute_script();
  EXPECT_EQ(script.substr(0, 22), "#!/usr/bin/env python3");
  EXPECT_NE(script.find("chokepoint.measure-compute/1"), std::string_view::npos);
  EXPECT_NE(script.rfind("    main()\n"), std::string_view::npos);
}

TEST(ComputeScript, WritesATableThatIsReadBack) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with PyTorch on this machine: the script was not run";
  const auto folder = std::filesystem::temp_directory_path() / ("chokepoint_probe_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string script = (folder / "probe.py").string();
  const std::string out = (folder / "out.json").string();
  ASSERT_TRUE(write_text_file(script, compute_script()));
  const std::string command = python + " " + script + " --seconds 2 --device cpu --out " + out + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto text = read_text_file(out);
  ASSERT_TRUE(text);
  const auto table = read_compute_table(*text, out);
  ASSERT_TRUE(table) << format(table.error());
  EXPECT_EQ(table->device_type, "cpu");
  EXPECT_TRUE(table->refused.empty()) << table->refused.front().text;
  EXPECT_FALSE(table->gemm.empty());
  EXPECT_FALSE(table->attention.empty());
  EXPECT_GT(table->launch_s, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace chokepoint::measure

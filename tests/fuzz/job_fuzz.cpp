// SPDX-License-Identifier: Apache-2.0
// A job file, and the first prediction it allows. Catalogue names work; files it names do not exist.
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = job::read_job(text, "/nonexistent/job.yaml", {});
  if (!file || !file->strategy) return 0;
  const auto prediction = simulate::Predictor(file->job).predict(*file->strategy);
  if (prediction && !(prediction->step_time_s > 0)) __builtin_trap();
  return 0;
}

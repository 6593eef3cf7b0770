// SPDX-License-Identifier: Apache-2.0
// Is a Kineto trace read at least as fast as simdjson On-Demand extracts the same fields? Both run here on the same text, a
// trace of the shape PyTorch writes; CHOKEPOINT_BENCH_TRACE=FILE (uncompressed JSON) takes a real one instead.
#include <benchmark/benchmark.h>
#include <chokepoint/trace/trace.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <simdjson.h>
#include <string>

namespace {

/// One operator, its launch, the kernel, both ends of the arrow: about what PyTorch writes for each kernel.
std::string made_trace(int kernels) {
  std::string text = "{\n  \"schemaVersion\": 1,\n  \"baseTimeNanoseconds\": 1727743122000000000,\n  \"traceEvents\": [\n";
  char event[2048];
  for (int i = 0; i < kernels; ++i) {
    const double ts = 4458676983543.183 + 20.0 * i;
    std::snprintf(event, sizeof event,
                  "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::convolution_backward\", \"pid\": 2910249, \"tid\": 2919752,\n"
                  "    \"ts\": %.3f, \"dur\": 11.250,\n    \"args\": {\n      \"External id\": %d,\"Record function id\": 0, \"Sequence number\": 8141, \"Fwd thread id\": 1, "
                  "\"Concrete Inputs\": [\"\", \"\", \"\", \"[0]\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"False\"], \"Input type\": [\"float\", \"float\", \"float\"], "
                  "\"Input Dims\": [[32, 64, 56, 56], [32, 64, 56, 56], [64, 64, 3, 3]], \"Ev Idx\": %d\n    }\n  },\n"
                  "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 2910249, \"tid\": 2919752,\n    \"ts\": %.3f, \"dur\": 5.633,\n"
                  "    \"args\": {\n      \"External id\": %d,      \"cbid\": 211, \"correlation\": %d\n    }\n  },\n",
                  ts, i, i, ts + 2, i, i + 1);
    text += event;
    std::snprintf(event, sizeof event,
                  "  {\n    \"ph\": \"s\", \"id\": %d, \"pid\": 2910249, \"tid\": 2919752, \"ts\": %.3f,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n"
                  "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 32, true, 1>(float, float, float, "
                  "float, cudnnTensorStruct, float const*, cudnnTensorStruct, float const*, cudnnTensorStruct, float*, float const*)\", \"pid\": 0, \"tid\": 7,\n"
                  "    \"ts\": %.3f, \"dur\": 9.407,\n    \"args\": {\n      \"External id\": %d,      \"queued\": 0, \"device\": 0, \"context\": 1,      \"stream\": 7, "
                  "\"correlation\": %d,      \"registers per thread\": 40,      \"shared memory\": 400,      \"blocks per SM\": 4.740741,      \"warps per SM\": 75.851852,      "
                  "\"grid\": [512, 1, 1],      \"block\": [512, 1, 1],      \"est. achieved occupancy %%\": 100\n    }\n  },\n"
                  "  {\n    \"ph\": \"f\", \"id\": %d, \"pid\": 0, \"tid\": 7, \"ts\": %.3f,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }%s\n",
                  i + 1, ts + 2, ts + 10, i, i + 1, i + 1, ts + 10, i + 1 < kernels ? "," : "");
    text += event;
  }
  return text + "  ]\n}\n";
}

const std::string& input() {
  static const std::string text = [] {
    const char* file = std::getenv("CHOKEPOINT_BENCH_TRACE");
    if (file == nullptr) return made_trace(40'000);
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  return text;
}

struct Extracted {
  std::size_t device = 0;
  std::size_t host = 0;
  double sum_us = 0;
};

/// The fields the columns need, by On-Demand's forward access.
Extracted extract_with_simdjson(const simdjson::padded_string& text) {
  Extracted result;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document = parser.iterate(text);
  std::size_t names = 0;
  for (simdjson::ondemand::object event : document["traceEvents"].get_array()) {
    std::string_view phase, category, name;
    double ts = 0;
    double dur = 0;
    std::uint64_t correlation = 0;
    for (auto field : event) {
      const std::string_view key = field.unescaped_key();
      if (key == "ph") phase = field.value().get_string();
      else if (key == "cat") category = field.value().get_string();
      else if (key == "name") name = field.value().get_string();
      else if (key == "ts") ts = field.value().get_double();
      else if (key == "dur") dur = field.value().get_double();
      else if (key == "args" && (category == "kernel" || category == "cuda_runtime")) {
        simdjson::ondemand::object args = field.value().get_object();
        for (auto argument : args) {
          if (std::string_view(argument.unescaped_key()) == "correlation") correlation = argument.value().get_uint64();
        }
      }
    }
    if (phase != "X") continue;
    names += name.size() + correlation % 2;
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") ++result.device;
    else ++result.host;
    result.sum_us += dur + 0 * ts;
  }
  benchmark::DoNotOptimize(names);
  return result;
}

void simdjson_on_demand(benchmark::State& state) {
  const simdjson::padded_string text(input());
  for (auto _ : state) benchmark::DoNotOptimize(extract_with_simdjson(text).device);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * input().size()));
}
BENCHMARK(simdjson_on_demand)->Unit(benchmark::kMillisecond);

void chokepoint_columns(benchmark::State& state) {
  const auto once = chokepoint::trace::read_chrome_text(input(), "bench");
  const Extracted other = extract_with_simdjson(simdjson::padded_string(input()));
  if (!once || once->device.size() != other.device) {
    state.SkipWithError("the two readers differ");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(chokepoint::trace::read_chrome_text(input(), "bench")->device.size());
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * input().size()));
}
BENCHMARK(chokepoint_columns)->Unit(benchmark::kMillisecond);

}  // namespace

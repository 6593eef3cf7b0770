// SPDX-License-Identifier: Apache-2.0
// How fast is a strict YAML document read? It bounds the start-up of every command that reads the catalogue or a cluster.
#include <benchmark/benchmark.h>
#include <chokepoint/base/yaml.hpp>
#include <cstdlib>
#include <string>

namespace {

std::string document(int hosts) {
  std::string text = "hosts:\n";
  for (int i = 0; i < hosts; ++i) {
    text += "  - name: host" + std::to_string(i) + "\n    count: 8\n    bandwidth: 400 Gb/s\n    memory: 80 GiB\n";
  }
  return text;
}

void read_hosts(benchmark::State& state) {
  const std::string text = document(static_cast<int>(state.range(0)));
  const auto once = chokepoint::YamlMap::parse(text, "hosts.yaml");
  if (!once || once->maps("hosts")->size() != static_cast<std::size_t>(state.range(0))) std::abort();
  for (auto _ : state) {
    benchmark::DoNotOptimize(chokepoint::YamlMap::parse(text, "hosts.yaml"));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_hosts)->Arg(10)->Arg(1000);

}  // namespace

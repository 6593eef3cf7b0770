// SPDX-License-Identifier: Apache-2.0
// How long does one cost() of a known group take? A search asks for it a few hundred times for every strategy.
#include <benchmark/benchmark.h>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/describe.hpp>
#include <cstdlib>

namespace {

using chokepoint::collective::Group;
using chokepoint::collective::Network;
using chokepoint::collective::Op;

void warm_cost(benchmark::State& state) {
  const auto cluster = chokepoint::wiring::cluster_from_words("H100-SXM5-80GB", 8, 16, "NVLink4+NVSwitch", "8x400G-IB per node");
  if (!cluster) std::abort();
  const auto accelerator = chokepoint::hardware::find_accelerator(cluster->hosts.front().host.accelerator);
  if (!accelerator) std::abort();
  const Network network(*cluster, *accelerator);
  const Group group{.ranks = 128, .ranks_per_host = 8};
  const Op op = static_cast<Op>(state.range(0));
  if (!(network.cost(op, 1e6, group).time_s > 0)) std::abort();
  double bytes = 1e3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(network.cost(op, bytes, group));
    bytes = bytes > 1e9 ? 1e3 : bytes * 1.7;
  }
}
BENCHMARK(warm_cost)->Arg(static_cast<int>(Op::kAllReduce))->Arg(static_cast<int>(Op::kAllGather))->Arg(static_cast<int>(Op::kAllToAll));

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The platform of real hosts (topo -m, NCCL and hwloc XML, rocm-smi) against their graphs: one flow alone between any
// two GPUs gets what the narrowest link of topology::route() lets through, and all flows into one GPU together no more
// than the links that end there.
#include <chokepoint/flow/platform.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace {

namespace fs = std::filesystem;
using namespace chokepoint;

const fs::path kWiring = fs::path(CHOKEPOINT_SOURCE_DIR) / "../shared/wiring";

std::optional<topology::Host> read(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const Result<topology::Host> host = wiring::read_host(text.str(), file.filename().string());
  if (!host || host->gpus().size() < 2) return std::nullopt;
  // Matrices name no accelerator; links need some bandwidth for this test, whichever it is.
  const Result<hardware::Accelerator> accelerator = hardware::find_accelerator("a100-sxm4-80gb");
  if (!accelerator) return std::nullopt;
  const Result<topology::Host> known = wiring::with_accelerator(*host, *accelerator);
  return known ? *known : *host;
}

double rate_alone(const flow::Platform& platform, const std::vector<double>& capacities, int from, int to) {
  flow::Fluid fluid(capacities);
  std::vector<flow::Use> uses;
  if (!platform.route(from, to, {}, uses)) return -1;
  return fluid.rate(fluid.start(uses, 1e9));
}

TEST(RealHosts, AFlowAloneGetsTheNarrowestLinkOfItsWay) {
  if (!fs::is_directory(kWiring)) GTEST_SKIP() << "SKIPPED: no " << kWiring;
  int hosts = 0;
  int pairs = 0;
  for (const char* kind : {"topo-m", "nccl-topo-xml", "hwloc", "rocm-smi"}) {
    if (!fs::is_directory(kWiring / kind)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(kWiring / kind)) {
      const std::optional<topology::Host> host = read(entry.path());
      if (!host) continue;
      topology::Cluster cluster;
      cluster.hosts.push_back({*host, 1});
      const Result<flow::Platform> platform = flow::Platform::make(cluster);
      ASSERT_TRUE(platform) << entry.path() << ": " << format(platform.error());
      const std::vector<double> capacities = platform->capacities();
      const std::vector<int> gpus = host->gpus();
      const bool several_switches = host->of_kind(topology::DeviceKind::kNvSwitch).size() > 1;
      for (int a = 0; a < platform->gpus(); ++a) {
        for (int b = 0; b < platform->gpus(); ++b) {
          const topology::Route way =
              topology::route(*host, gpus[static_cast<std::size_t>(a)], gpus[static_cast<std::size_t>(b)]);
          if (a == b || several_switches || way.bytes_per_s <= 0) continue;
          double narrowest = way.bytes_per_s;
          for (const int link : way.links) {  // one that is passed twice gives half to each
            const auto times = std::count(way.links.begin(), way.links.end(), link);
            narrowest = std::min(narrowest, capacities[static_cast<std::size_t>(link)] / static_cast<double>(times));
          }
          EXPECT_DOUBLE_EQ(rate_alone(*platform, capacities, a, b), narrowest)
              << entry.path() << " GPU " << a << " to " << b;
          ++pairs;
        }
      }
      ++hosts;
    }
  }
  std::printf("%d hosts, %d pairs\n", hosts, pairs);
}

TEST(RealHosts, FlowsIntoOneGpuShareTheLinksThatEndThere) {
  if (!fs::is_directory(kWiring / "topo-m")) GTEST_SKIP() << "SKIPPED: no " << kWiring / "topo-m";
  for (const fs::directory_entry& entry : fs::directory_iterator(kWiring / "topo-m")) {
    const std::optional<topology::Host> host = read(entry.path());
    if (!host) continue;
    topology::Cluster cluster;
    cluster.hosts.push_back({*host, 1});
    const Result<flow::Platform> platform = flow::Platform::make(cluster);
    ASSERT_TRUE(platform) << entry.path();
    flow::Fluid fluid(platform->capacities());
    double inbound = 0;
    for (const topology::Link& link : host->links)
      inbound += link.to == host->gpus().front() ? link.bandwidth.effective() : 0;
    double together = 0;
    std::vector<flow::FlowId> flows;
    for (int from = 1; from < platform->gpus(); ++from) {
      std::vector<flow::Use> uses;
      if (platform->route(from, 0, {}, uses)) flows.push_back(fluid.start(uses, 1e9));
    }
    for (const flow::FlowId flow : flows) together += fluid.rate(flow) < flow::kNever ? fluid.rate(flow) : 0;
    if (inbound > 0) {
      EXPECT_LE(together, inbound * (1 + 1e-9)) << entry.path();
    }
  }
}

}  // namespace

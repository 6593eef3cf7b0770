// SPDX-License-Identifier: Apache-2.0
// How long does it take to import, check and route an ibnetdiscover listing of 10,000 hosts? The listing is made here:
// a three-level fat tree, leaves of 20 hosts and 20 uplinks, pods of 20 leaves, with one uplink missing and one slow cable.
#include <benchmark/benchmark.h>

#include <chokepoint/findings/findings.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace chokepoint;

constexpr int kHostsPerLeaf = 20;
constexpr int kLeavesPerPod = 20;

struct Listing {
  std::string text;
  int cables = 0;
};

std::string guid(int kind, int number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%016x", kind * 0x1000000 + number);
  return buffer;
}

/// Each cable from the lower end; ibnetdiscover lists both ends, and so does this.
Listing fat_tree(int hosts) {
  Listing listing;
  const int leaves = (hosts + kHostsPerLeaf - 1) / kHostsPerLeaf;
  const int pods = (leaves + kLeavesPerPod - 1) / kLeavesPerPod;
  std::vector<std::string> spine_ports(static_cast<std::size_t>(pods * kHostsPerLeaf));
  std::vector<std::string> core_ports(kHostsPerLeaf * kHostsPerLeaf);
  std::string adapters;
  const auto line = [](int port, char type, const std::string& id, int far, const std::string& name, const char* rate) {
    return "[" + std::to_string(port) + "]\t\"" + type + "-" + id + "\"[" + std::to_string(far) + "]\t\t# \"" + name + "\" lid 1 4x" + rate + "\n";
  };
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const std::string id = guid(1, leaf);
    const std::string name = "leaf" + std::to_string(leaf);
    listing.text += "Switch\t40 \"S-" + id + "\"\t\t# \"" + name + "\" base port 0 lid 1 lmc 0\n";
    for (int i = 0; i < kHostsPerLeaf && leaf * kHostsPerLeaf + i < hosts; ++i) {
      const int host = leaf * kHostsPerLeaf + i;
      const char* rate = host == 77 ? "EDR" : "NDR";
      const std::string host_name = "node" + std::to_string(host) + " mlx5_0";
      listing.text += line(i + 1, 'H', guid(4, host), 1, host_name, rate);
      adapters += "Ca\t1 \"H-" + guid(4, host) + "\"\t\t# \"" + host_name + "\"\n" + line(1, 'S', id, i + 1, name, rate);
      ++listing.cables;
    }
    for (int up = 0; up < kHostsPerLeaf; ++up) {
      if (leaf == 5 && up == 3) continue;
      const int spine = leaf / kLeavesPerPod * kHostsPerLeaf + up;
      listing.text += line(21 + up, 'S', guid(2, spine), 1 + leaf % kLeavesPerPod, "spine" + std::to_string(spine), "NDR");
      spine_ports[static_cast<std::size_t>(spine)] += line(1 + leaf % kLeavesPerPod, 'S', id, 21 + up, name, "NDR");
      ++listing.cables;
    }
  }
  for (std::size_t spine = 0; spine < spine_ports.size(); ++spine) {
    const std::string id = guid(2, static_cast<int>(spine));
    for (int up = 0; up < kHostsPerLeaf; ++up) {
      const int core = static_cast<int>(spine) % kHostsPerLeaf * kHostsPerLeaf + up;
      const int pod = static_cast<int>(spine) / kHostsPerLeaf;
      spine_ports[spine] += line(21 + up, 'S', guid(3, core), 1 + pod, "core" + std::to_string(core), "NDR");
      core_ports[static_cast<std::size_t>(core)] += line(1 + pod, 'S', id, 21 + up, "spine" + std::to_string(spine), "NDR");
      ++listing.cables;
    }
    listing.text += "Switch\t40 \"S-" + id + "\"\t\t# \"spine" + std::to_string(spine) + "\" base port 0 lid 1 lmc 0\n" + spine_ports[spine];
  }
  for (std::size_t core = 0; core < core_ports.size(); ++core) {
    listing.text += "Switch\t64 \"S-" + guid(3, static_cast<int>(core)) + "\"\t\t# \"core" + std::to_string(core) + "\" base port 0 lid 1 lmc 0\n" + core_ports[core];
  }
  listing.text += adapters;
  return listing;
}

struct Answer {
  int hosts = 0;
  std::size_t cables = 0;
  bool uplink = false;
  bool slow = false;
  double unreachable = 0;
};

Answer run(const std::string& text) {
  Answer answer;
  auto documents = wiring::read_documents(text, "fabric.txt");
  if (!documents) return answer;
  const auto assembly = assemble::assemble(std::move(*documents));
  if (!assembly || !assembly->fabric) return answer;
  for (const findings::Finding& finding : findings::check(*assembly)) {
    answer.uplink = answer.uplink || (finding.id == "uplinks-missing" && finding.where == "leaf5");
    answer.slow = answer.slow || finding.id == "fabric-link-degraded";
  }
  answer.hosts = assembly->shape.hosts;
  answer.cables = assembly->fabric->links.size();
  answer.unreachable = topology::routes_of(*assembly->fabric, assembly->shape).unreachable_pairs;
  return answer;
}

void import_check_route(benchmark::State& state) {
  const Listing listing = fat_tree(static_cast<int>(state.range(0)));
  const Answer answer = run(listing.text);
  const bool right = answer.hosts == state.range(0) && answer.cables == static_cast<std::size_t>(listing.cables) && answer.uplink && answer.slow && answer.unreachable == 0;
  if (!right) {
    std::fprintf(stderr, "wrong answer: %d hosts, %zu of %d cables, uplink %d, slow %d\n", answer.hosts, answer.cables, listing.cables, answer.uplink, answer.slow);
    std::exit(1);
  }
  for (auto _ : state) benchmark::DoNotOptimize(run(listing.text));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(listing.text.size()));
}
BENCHMARK(import_check_route)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace

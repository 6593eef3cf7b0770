// SPDX-License-Identifier: Apache-2.0
// How fast is sharing of links beside SimGrid's? 1,024 hosts on a fat tree of 32 leaves and 32 spines, the same
// messages over the same links (its own routes) in both, timed in the same run, ends compared. Built only where SimGrid
// is.
//
//   ring_steps      the first steps of a ring all_reduce, message by message: every host to the next, step after step
//   random_flows    every host sends to two others, all sizes different: each end changes rates everywhere
//   ring_coupled    the whole all_reduce as we simulate it, one flow over all links, against its 2,046 steps there
//                   (timed for 16 of them)
//
// `ratio`: SimGrid's time over ours, both CPU time of one core. `floor_s`: a pass over the messages that adds their
// bytes to their links, which is the least that any answer needs. SimGrid has one engine a process, so each of its runs
// is a child of its own.
#include <benchmark/benchmark.h>
#include <chokepoint/flow/fluid.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {

namespace s4u = simgrid::s4u;
using chokepoint::flow::FlowId;
using chokepoint::flow::Fluid;
using chokepoint::flow::kNever;
using chokepoint::flow::Use;

constexpr int kHosts = 1024;
constexpr int kSteps = 16;
constexpr double kLine = 50e9;  // bytes per second of every cable
constexpr double kMessage = 1 << 20;

struct Message {
  int from;
  int to;
  double bytes;
};

/// Messages of one step start when the step before has ended.
using Steps = std::vector<std::vector<Message>>;

struct Outcome {
  double busy_s = 0;
  double end_s = 0;  ///< simulated
};

/// Of this process: what other processes of the machine do at the same time does not count.
double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Steps ring_steps() {
  std::vector<Message> step;
  for (int i = 0; i < kHosts; ++i) step.push_back({i, (i + 1) % kHosts, kMessage});
  return Steps(kSteps, step);
}

Steps random_flows() {
  std::mt19937_64 random(1);
  std::vector<Message> step;
  for (int i = 0; i < 2 * kHosts; ++i) {
    const int from = i % kHosts;
    const int to = (from + 1 + static_cast<int>(random() % (kHosts - 1))) % kHosts;
    step.push_back({from, to, static_cast<double>(kMessage + static_cast<double>(random() % (1 << 24)))});
  }
  return {step};
}

/// SimGrid's platform; `routes` gets the links of every message, numbered from 0.
struct Tree {
  explicit Tree(s4u::Engine& engine) {
    for (const char* option : {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:1",
                               "network/crosstraffic:0", "network/TCP-gamma:0"}) {
      s4u::Engine::set_config(std::string(option));
    }
    const auto host = [](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
      s4u::Host* made = zone->create_host("host" + std::to_string(id), 1e9)->seal();
      return std::make_pair(made->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
    };
    auto* zone = s4u::create_fatTree_zone("tree", nullptr, {2, {32, 32}, {1, 32}, {1, 1}}, s4u::ClusterCallbacks(host),
                                          kLine, 0, s4u::Link::SharingPolicy::SPLITDUPLEX);
    zone->seal();
    for (int i = 0; i < kHosts; ++i) hosts.push_back(engine.host_by_name("host" + std::to_string(i)));
  }
  std::vector<s4u::Host*> hosts;
};

s4u::Engine& engine_of_this_process() {
  static char name[] = "flow_bench";
  static char quiet[] = "--log=root.thresh:error";
  static char* values[] = {name, quiet, nullptr};
  static int count = 2;
  static s4u::Engine engine(&count, values);
  return engine;
}

/// Runs `work` in a child, which writes doubles.
template <class Work>
std::vector<double> in_child(Work work) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<double> result = work();
    std::FILE* out = fdopen(ends[1], "wb");
    std::fwrite(result.data(), sizeof(double), result.size(), out);
    std::fclose(out);
    _exit(0);
  }
  close(ends[1]);
  std::FILE* in = fdopen(ends[0], "rb");
  std::vector<double> result;
  double value = 0;
  while (std::fread(&value, sizeof value, 1, in) == 1) result.push_back(value);
  std::fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::abort();
  return result;
}

/// Links of every message: for each a count and the numbers.
std::vector<std::vector<Use>> routes_of(const std::vector<Message>& messages) {
  const std::vector<double> flat = in_child([&messages] {
    const Tree tree(engine_of_this_process());
    std::vector<double> numbers;
    std::vector<const s4u::Link*> known;
    for (const Message& message : messages) {
      std::vector<s4u::Link*> links;
      double latency = 0;
      tree.hosts[static_cast<std::size_t>(message.from)]->route_to(tree.hosts[static_cast<std::size_t>(message.to)],
                                                                   links, &latency);
      numbers.push_back(static_cast<double>(links.size()));
      for (const s4u::Link* link : links) {
        auto found = std::find(known.begin(), known.end(), link);
        if (found == known.end()) found = known.insert(known.end(), link);
        numbers.push_back(static_cast<double>(found - known.begin()));
      }
    }
    return numbers;
  });
  std::vector<std::vector<Use>> routes;
  for (std::size_t at = 0; at < flat.size();) {
    const auto count = static_cast<std::size_t>(flat[at++]);
    std::vector<Use> uses;
    for (std::size_t i = 0; i < count; ++i) uses.push_back({static_cast<std::uint32_t>(flat[at++]), 1});
    routes.push_back(std::move(uses));
  }
  return routes;
}

Outcome simgrid(const Steps& steps) {
  const std::vector<double> result = in_child([&steps] {
    s4u::Engine& engine = engine_of_this_process();
    const Tree tree(engine);
    s4u::Actor::create("all", tree.hosts.front(), [&steps, &tree] {
      for (const std::vector<Message>& step : steps) {
        std::vector<s4u::CommPtr> comms;
        comms.reserve(step.size());
        for (const Message& message : step) {
          comms.push_back(s4u::Comm::sendto_async(tree.hosts[static_cast<std::size_t>(message.from)],
                                                  tree.hosts[static_cast<std::size_t>(message.to)],
                                                  static_cast<std::uint64_t>(message.bytes)));
        }
        for (const s4u::CommPtr& comm : comms) comm->wait();
      }
    });
    const double start = cpu_s();
    engine.run();
    return std::vector<double>{cpu_s() - start, s4u::Engine::get_clock()};
  });
  if (result.size() != 2) std::abort();
  return {result[0], result[1]};
}

std::vector<double> capacities(const std::vector<std::vector<Use>>& routes) {
  std::uint32_t links = 0;
  for (const std::vector<Use>& route : routes) {
    for (const Use& use : route) links = std::max(links, use.link + 1);
  }
  return std::vector<double>(links, kLine);
}

Outcome ours(const Steps& steps, const std::vector<std::vector<Use>>& routes) {
  const double start = cpu_s();
  Fluid fluid(capacities(routes));
  std::vector<FlowId> done;
  for (const std::vector<Message>& step : steps) {
    for (std::size_t i = 0; i < step.size(); ++i) fluid.start(routes[i], step[i].bytes);
    while (fluid.next_s() < kNever) fluid.advance(fluid.next_s(), done);
  }
  return {cpu_s() - start, fluid.now_s()};
}

void check(double own_s, double reference_s) {
  if (std::abs(own_s - reference_s) > 1e-3 * reference_s) {
    std::fprintf(stderr, "ends differ: %.9g s, SimGrid %.9g s\n", own_s, reference_s);
    std::abort();
  }
}

double floor_s(const Steps& steps, const std::vector<std::vector<Use>>& routes) {
  std::vector<double> carried(capacities(routes).size(), 0);
  const double start = cpu_s();
  for (const std::vector<Message>& step : steps) {
    for (std::size_t i = 0; i < step.size(); ++i) {
      for (const Use& use : routes[i]) carried[use.link] += use.weight * step[i].bytes;
    }
  }
  benchmark::DoNotOptimize(carried.data());
  return cpu_s() - start;
}

void report(benchmark::State& state, const Outcome& reference, double own_s) {
  state.counters["simgrid_s"] = reference.busy_s;
  state.counters["ours_s"] = own_s;
  state.counters["ratio"] = reference.busy_s / own_s;
}

void against_simgrid(benchmark::State& state, const Steps& steps) {
  const std::vector<std::vector<Use>> routes = routes_of(steps.front());
  const Outcome reference = simgrid(steps);
  std::vector<double> times;
  for (auto _ : state) {
    const Outcome own = ours(steps, routes);
    check(own.end_s, reference.end_s);
    times.push_back(own.busy_s);
  }
  std::sort(times.begin(), times.end());
  report(state, reference, times[times.size() / 2]);
  state.counters["floor_s"] = floor_s(steps, routes);
}

void ring_steps(benchmark::State& state) { against_simgrid(state, ring_steps()); }
void random_flows(benchmark::State& state) { against_simgrid(state, random_flows()); }

void ring_coupled(benchmark::State& state) {
  const Steps steps = ring_steps();
  std::vector<Use> ring;
  const std::vector<std::vector<Use>> routes = routes_of(steps.front());
  for (const std::vector<Use>& route : routes) ring.insert(ring.end(), route.begin(), route.end());
  Outcome reference = simgrid(steps);
  constexpr double kAllSteps = 2.0 * (kHosts - 1);
  reference.busy_s *= kAllSteps / kSteps;
  reference.end_s *= kAllSteps / kSteps;
  std::vector<double> times;
  for (auto _ : state) {
    const double start = cpu_s();
    Fluid fluid(capacities(routes));
    fluid.start(ring, kAllSteps * kMessage);
    std::vector<FlowId> done;
    fluid.advance(kNever, done);
    times.push_back(cpu_s() - start);
    check(fluid.now_s(), reference.end_s);
  }
  std::sort(times.begin(), times.end());
  report(state, reference, times[times.size() / 2]);
}

BENCHMARK(ring_steps)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(random_flows)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_coupled)->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace

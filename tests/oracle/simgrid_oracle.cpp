// SPDX-License-Identifier: Apache-2.0
// Completion times of random flows on random platforms: ours against SimGrid's fluid model (CM02 without TCP's
// factors).
//
// All platforms live in one engine, each in a zone of its own with an actor that plays its events, because SimGrid has
// one engine a process. A flow gets two hosts of its own and its links as their route; a link named twice counts twice
// there as here. A rate limit is one more link of the flow's own there: SimGrid 3.32 ignores the rate of messages
// between hosts. Capacities only fall: a flow of SimGrid is never faster than the narrowest of its links was when it
// started.
#include <chokepoint/flow/fluid.hpp>
#include <gtest/gtest.h>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace {

namespace s4u = simgrid::s4u;
using chokepoint::flow::FlowId;
using chokepoint::flow::Fluid;
using chokepoint::flow::kNever;
using chokepoint::flow::Use;

constexpr int kPlatforms = 400;
constexpr double kTolerance = 1e-3;

struct Flow {
  std::vector<std::uint32_t> links;
  double bytes;
  double limit;
  double start_s;
};

struct Event {
  double time_s;
  std::size_t flow;  ///< started, or kNoFlow: a capacity changes
  std::uint32_t link;
  double bytes_per_s;
};
constexpr std::size_t kNoFlow = ~std::size_t{0};

struct Case {
  std::vector<double> capacity;
  std::vector<Flow> flows;
  std::vector<Event> events;  ///< by time
};

Case random_case(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](std::uint64_t count) { return random() % count; };
  const auto real = [&random](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  Case made;
  const std::size_t links = 1 + pick(20);
  for (std::size_t i = 0; i < links; ++i) made.capacity.push_back(pick(3) == 0 ? 1e9 : real(1e8, 1e10));
  const std::size_t flows = 1 + pick(40);
  for (std::size_t i = 0; i < flows; ++i) {
    Flow flow{{}, std::floor(real(1e7, 1e10)), pick(3) == 0 ? real(1e7, 2e9) : kNever, pick(2) == 0 ? 0 : real(0, 10)};
    const std::size_t length = 1 + pick(6);
    for (std::size_t k = 0; k < length; ++k) flow.links.push_back(static_cast<std::uint32_t>(pick(links)));
    made.events.push_back({flow.start_s, i, 0, 0});
    made.flows.push_back(flow);
  }
  for (std::size_t i = pick(4); i > 0; --i) {
    made.events.push_back({real(0, 15), kNoFlow, static_cast<std::uint32_t>(pick(links)), real(0.2, 0.9)});
  }
  std::stable_sort(made.events.begin(), made.events.end(),
                   [](const Event& a, const Event& b) { return a.time_s < b.time_s; });
  std::vector<double> now = made.capacity;
  for (Event& event : made.events) {
    if (event.flow == kNoFlow) event.bytes_per_s = now[event.link] *= event.bytes_per_s;
  }
  return made;
}

/// Ends by flow.
std::vector<double> ours(const Case& made) {
  Fluid fluid(made.capacity);
  std::vector<double> end(made.flows.size(), kNever);
  std::vector<std::size_t> flow_of(made.flows.size());
  std::vector<FlowId> done;
  const auto pass = [&](double to_s) {
    while (fluid.next_s() <= to_s && fluid.next_s() < kNever) {
      fluid.advance(fluid.next_s(), done);
      for (const FlowId id : done) end[flow_of[id]] = fluid.now_s();
    }
    if (to_s < kNever) fluid.advance(to_s, done);
  };
  for (const Event& event : made.events) {
    pass(event.time_s);
    if (event.flow == kNoFlow) {
      fluid.set_capacity(event.link, event.bytes_per_s);
      continue;
    }
    const Flow& flow = made.flows[event.flow];
    std::vector<Use> uses;
    for (const std::uint32_t link : flow.links) uses.push_back({link, 1});
    flow_of[fluid.start(uses, flow.bytes, flow.limit)] = event.flow;
  }
  pass(kNever);
  return end;
}

/// The same case inside SimGrid; its actor fills `end`.
void add_to_simgrid(s4u::NetZone* root, const Case& made, const std::string& name, std::vector<double>& end) {
  auto* zone = s4u::create_full_zone(name);
  zone->set_parent(root);
  std::vector<s4u::Link*> links;
  for (std::size_t i = 0; i < made.capacity.size(); ++i) {
    links.push_back(zone->create_link(name + "-l" + std::to_string(i), made.capacity[i])->set_latency(0)->seal());
  }
  std::vector<std::pair<s4u::Host*, s4u::Host*>> hosts;
  for (std::size_t i = 0; i < made.flows.size(); ++i) {
    const std::string flow = name + "-f" + std::to_string(i);
    hosts.emplace_back(zone->create_host(flow + "a", 1e9)->seal(), zone->create_host(flow + "b", 1e9)->seal());
    std::vector<s4u::LinkInRoute> route;
    for (const std::uint32_t link : made.flows[i].links) route.emplace_back(links[link]);
    if (made.flows[i].limit < kNever)
      route.emplace_back(zone->create_link(flow + "l", made.flows[i].limit)->set_latency(0)->seal());
    zone->add_route(hosts[i].first->get_netpoint(), hosts[i].second->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
  s4u::Actor::create(name, hosts.front().first, [&made, links, hosts, &end] {
    std::vector<s4u::CommPtr> comms(made.flows.size());
    for (const Event& event : made.events) {
      s4u::this_actor::sleep_until(event.time_s);
      if (event.flow == kNoFlow) {
        links[event.link]->set_bandwidth(event.bytes_per_s);
        continue;
      }
      const Flow& flow = made.flows[event.flow];
      s4u::CommPtr comm = s4u::Comm::sendto_init();  // naming the hosts starts it, so they come last
      comm->set_payload_size(static_cast<std::uint64_t>(flow.bytes));
      comm->set_source(hosts[event.flow].first)->set_destination(hosts[event.flow].second);
      comms[event.flow] = comm;
    }
    for (std::size_t i = 0; i < comms.size(); ++i) {
      comms[i]->wait();
      end[i] = comms[i]->get_finish_time();
    }
  });
}

TEST(SimGrid, CompletionTimesAgreeWithinAThousandth) {
  int arguments = 1;
  char program[] = "simgrid_oracle";
  char* values[] = {program, nullptr};
  s4u::Engine engine(&arguments, values);
  for (const char* option : {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:1",
                             "network/crosstraffic:0", "network/TCP-gamma:0"}) {
    s4u::Engine::set_config(std::string(option));
  }
  std::vector<Case> cases;
  std::vector<std::vector<double>> theirs;
  for (unsigned seed = 0; seed < kPlatforms; ++seed) {
    cases.push_back(random_case(seed));
    theirs.emplace_back(cases.back().flows.size(), -1.0);
  }
  auto* root = s4u::create_full_zone("root");
  for (std::size_t i = 0; i < cases.size(); ++i) add_to_simgrid(root, cases[i], "p" + std::to_string(i), theirs[i]);
  root->seal();
  engine.run();

  std::size_t flows = 0;
  double worst = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> end = ours(cases[i]);
    for (std::size_t f = 0; f < end.size(); ++f) {
      const double span = theirs[i][f] - cases[i].flows[f].start_s;
      const double error = std::abs(end[f] - theirs[i][f]) / span;
      EXPECT_LE(error, kTolerance) << "platform " << i << " flow " << f << ": " << end[f] << " s, SimGrid "
                                   << theirs[i][f] << " s";
      worst = std::max(worst, error);
      ++flows;
    }
  }
  std::printf("%zu flows on %d platforms: largest difference of a flow's duration %.2g\n", flows, kPlatforms, worst);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "host_kind.hpp"

#include <algorithm>
#include <map>

namespace chokepoint::flow {

using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::PathClass;

namespace {

bool is_nvlink(LinkKind kind) { return kind == LinkKind::kNvLink || kind == LinkKind::kXgmi; }

/// Traffic spreads over several switches (or parallel links) as their bandwidths are.
void weigh(const topology::Host& host, Way& way) {
  double total = 0;
  for (const Use& use : way) total += host.links[use.link].bandwidth.effective();
  for (Use& use : way) {
    const double own = host.links[use.link].bandwidth.effective();
    use.weight = total > 0 ? own / total : 1.0 / static_cast<double>(way.size());
  }
}

}  // namespace

HostKind::HostKind(topology::Host host, int count_in, bool measured_egress)
    : count(count_in),
      host_(std::move(host)),
      measured_egress_(measured_egress),
      gpus_(host_.gpus()),
      nics_(topology::compute_nics(host_)) {
  const std::size_t slots = gpus_.size() + nics_.size();
  ways_.resize(slots * slots);
  known_.resize(slots * slots, 0);
  find_nearest_nics();
  find_switch_halves();
}

/// The NICs of the best path class; GPUs with the same choice take turns in device order.
void HostKind::find_nearest_nics() {
  std::map<std::vector<int>, std::size_t> turns;
  for (const int gpu : gpus_) {
    if (nics_.empty()) {
      nearest_.push_back(-1);
      continue;
    }
    const std::vector<PathClass> classes = topology::path_classes(host_, gpu, nics_);
    const PathClass best = *std::min_element(classes.begin(), classes.end());
    std::vector<int> choice;
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      if (classes[i] == best) choice.push_back(static_cast<int>(i));
    }
    std::size_t& turn = turns[choice];
    nearest_.push_back(choice[turn++ % choice.size()]);
  }
}

void HostKind::find_switch_halves() {
  up_.resize(gpus_.size());
  down_.resize(gpus_.size());
  std::vector<int> position(host_.devices.size(), -1);
  for (std::size_t i = 0; i < gpus_.size(); ++i) position[static_cast<std::size_t>(gpus_[i])] = static_cast<int>(i);
  const auto device = [this](int index) {
    return index >= 0 && static_cast<std::size_t>(index) < host_.devices.size();
  };
  for (std::size_t i = 0; i < host_.links.size(); ++i) {
    const Link& link = host_.links[i];
    if (!is_nvlink(link.kind) || !device(link.from) || !device(link.to)) continue;
    const int from = position[static_cast<std::size_t>(link.from)];
    const int to = position[static_cast<std::size_t>(link.to)];
    const Use use{static_cast<std::uint32_t>(i), 1};
    if (from >= 0 && host_.devices[static_cast<std::size_t>(link.to)].kind == DeviceKind::kNvSwitch)
      up_[static_cast<std::size_t>(from)].push_back(use);
    if (to >= 0 && host_.devices[static_cast<std::size_t>(link.from)].kind == DeviceKind::kNvSwitch)
      down_[static_cast<std::size_t>(to)].push_back(use);
  }
  for (Way& way : up_) weigh(host_, way);
  for (Way& way : down_) weigh(host_, way);
}

int HostKind::device_of(int slot) const {
  return slot < gpu_count() ? gpus_[static_cast<std::size_t>(slot)]
                            : nics_[static_cast<std::size_t>(slot - gpu_count())];
}

Way HostKind::find_way(int from_slot, int to_slot) const {
  const topology::Route found = topology::route(host_, device_of(from_slot), device_of(to_slot));
  Way way;
  for (const int link : found.links) way.push_back({static_cast<std::uint32_t>(link), 1});
  // Two NVLinks in a row pass a switch. Where a host has several, the traffic takes all of them.
  const bool switched = way.size() == 2 && from_slot < gpu_count() && to_slot < gpu_count() &&
                        is_nvlink(host_.links[way[0].link].kind) && is_nvlink(host_.links[way[1].link].kind);
  if (!switched) return way;
  way = up_to_switch(from_slot);
  way.insert(way.end(), down_from_switch(to_slot).begin(), down_from_switch(to_slot).end());
  return way;
}

const Way& HostKind::way(int from_slot, int to_slot) const {
  const std::size_t at =
      static_cast<std::size_t>(from_slot) * (gpus_.size() + nics_.size()) + static_cast<std::size_t>(to_slot);
  if (!known_[at]) {
    ways_[at] = find_way(from_slot, to_slot);
    known_[at] = 1;
  }
  return ways_[at];
}

bool HostKind::over_nvlink(int from, int to) const {
  const Way& found = gpu_to_gpu(from, to);
  return !found.empty() && is_nvlink(host_.links[found.front().link].kind);
}

int HostKind::gpu_next_to(int nic) const {
  const auto found = std::find(nearest_.begin(), nearest_.end(), nic);
  return found == nearest_.end() ? -1 : static_cast<int>(found - nearest_.begin());
}

Way HostKind::gpu_to_nic(int gpu, int nic, bool through_peers) const {
  const int peer = through_peers && nearest_nic(gpu) != nic ? gpu_next_to(nic) : -1;
  if (peer >= 0 && over_nvlink(gpu, peer)) {
    const Way& rest = way(peer, gpu_count() + nic);
    if (!rest.empty()) {
      Way found = gpu_to_gpu(gpu, peer);
      found.insert(found.end(), rest.begin(), rest.end());
      return found;
    }
  }
  return way(gpu, gpu_count() + nic);
}

}  // namespace chokepoint::flow

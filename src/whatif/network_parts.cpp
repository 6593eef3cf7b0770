// SPDX-License-Identifier: Apache-2.0
// Counts of a folded Clos network. Leaves split their ports by the oversubscription; two levels reach as many leaves as
// a spine has ports; beyond, spines give half of their ports to a level of cores. k-ary fat tree: Al-Fares et al.,
// SIGCOMM 2008 (k^3/4 end points, 5 k^2/4 switches).
#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <chokepoint/whatif/money.hpp>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::whatif {

namespace {

double up(double a, double b) { return std::ceil(a / b - 1e-9); }

/// The part of the least sufficient rate; the fastest there is when none suffices.
const NetworkPart* part_for(const std::vector<NetworkPart>& parts, double bytes_per_s) {
  const NetworkPart* best = nullptr;
  for (const NetworkPart& part : parts) {
    const bool enough = part.bytes_per_s >= 0.99 * bytes_per_s;
    if (!enough) continue;
    if (best == nullptr || part.bytes_per_s < best->bytes_per_s) best = &part;
  }
  return best;
}

constexpr std::string_view kHostItem = " with its share of a host";

std::string rate_name(double bytes_per_s) { return fmt::format("{:.0f} Gb/s", bytes_per_s * 8e-9); }

void add(BillOfMaterials& out, const std::string& kind, double count, double bytes_per_s, const NetworkPart* part) {
  if (count <= 0) return;
  Item item;
  item.what = bytes_per_s > 0 ? kind + " " + rate_name(bytes_per_s) : kind;
  item.count = count;
  if (part == nullptr) {
    out.missing.push_back(item.what);
  } else {
    item.usd_each = part->usd;
    item.power_w_each = part->power_w;
    item.tag = part->tag;
  }
  out.items.push_back(std::move(item));
}

double bridges_of(const topology::Host& host) {
  if (!host.of_kind(topology::DeviceKind::kNvSwitch).empty()) return 0;
  double pairs = 0;
  int most = 0;
  for (const topology::Link& link : host.links) {
    if (link.kind != topology::LinkKind::kNvLink || link.from > link.to) continue;
    ++pairs;
    const auto at = static_cast<int>(std::count_if(host.links.begin(), host.links.end(), [&](const topology::Link& l) {
      return l.kind == topology::LinkKind::kNvLink && l.from == link.from;
    }));
    most = std::max(most, at);
  }
  return most > 1 ? 0 : pairs;  // more than one neighbour: a baseboard's mesh, not a bridge
}

}  // namespace

FatTree fat_tree(double end_points, int ports, double oversubscription, int rails) {
  FatTree tree;
  if (end_points <= 1 || ports < 2) return tree;
  tree.host_links = end_points;
  if (end_points <= ports) {
    tree.levels = 1;
    tree.leaves = 1;
    return tree;
  }
  const double over = std::max(1.0, oversubscription);
  const double down = std::clamp(std::floor(ports * over / (1 + over)), 1.0, ports - 1.0);
  const double per_rail = end_points / std::max(1, rails);
  tree.leaves = std::max(1, rails) * up(per_rail, down);
  tree.leaf_links = tree.leaves * (ports - down);
  tree.levels = 2;
  if (tree.leaves <= ports) {
    tree.spines = up(tree.leaf_links, ports);
    return tree;
  }
  tree.levels = 3;
  const double half = std::floor(ports / 2.0);
  tree.spines = up(tree.leaf_links, half);
  tree.core_links = tree.spines * half;
  tree.cores = up(tree.core_links, ports);
  tree.reachable = end_points <= down * half * ports;
  return tree;
}

double BillOfMaterials::usd() const {
  double sum = 0;
  for (const Item& item : items) sum += item.count * item.usd_each.value_or(0);
  return sum;
}

double BillOfMaterials::power_w() const {
  double sum = 0;
  for (const Item& item : items) sum += item.count * item.power_w_each;
  return sum;
}

BillOfMaterials network_parts(const topology::Cluster& cluster, const hardware::Accelerator& accelerator,
                              const Prices& prices) {
  BillOfMaterials out;
  const topology::Host& host = cluster.hosts.front().host;
  const double hosts = cluster.host_count();
  NetworkPart bridge;
  if (prices.bridge) bridge = *prices.bridge;
  const double bridges = accelerator.form == "pcie" || accelerator.form == "nvl" ? hosts * bridges_of(host) : 0;
  add(out, "NVLink bridge", bridges, 0, prices.bridge ? &bridge : nullptr);
  const std::vector<int> nics = topology::compute_nics(host);
  double rate = 0;
  for (const int nic : nics) rate = std::max(rate, host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s);
  if (hosts < 2 || nics.empty() || rate <= 0 || cluster.fabric.kind == topology::FabricKind::kNone) return out;
  const double end_points = hosts * static_cast<double>(nics.size());
  add(out, "NIC", end_points, rate, part_for(prices.nics, rate));
  const NetworkPart* leaf = part_for(prices.switches, rate);
  const int rails = cluster.fabric.kind == topology::FabricKind::kRailOptimized ? static_cast<int>(nics.size()) : 1;
  const FatTree tree = fat_tree(end_points, leaf != nullptr ? leaf->ports : 64, cluster.fabric.oversubscription, rails);
  add(out, "switch", tree.switches(), rate, leaf);
  add(out, "link", tree.links(), rate, part_for(prices.links, rate));
  if (!tree.reachable) out.missing.push_back("a fourth level of switches: three do not join as many end points");
  return out;
}

BillOfMaterials all_parts(const parallel::Job& job, const Prices& prices) {
  BillOfMaterials out = network_parts(job.cluster, job.accelerator, prices);
  Item item;
  item.what = job.accelerator.name + std::string(kHostItem);
  item.count = job.cluster.gpu_count();
  for (const OwnedHost& host : prices.owned.hosts) {
    if (host.accelerator != job.accelerator.name) continue;
    item.usd_each = host.usd_per_accelerator + host.facility_usd_per_accelerator;
    item.power_w_each = host.power_w;
    item.tag = host.tag;
  }
  if (!item.usd_each) out.missing.push_back(item.what);
  out.items.insert(out.items.begin(), std::move(item));
  return out;
}

BillOfMaterials purchase(const BillOfMaterials& before, const BillOfMaterials& after) {
  BillOfMaterials out;
  double new_hosts = 0;  // share of the hosts that are bought: they come with their NICs
  for (const Item& item : after.items) {
    Item extra = item;
    for (const Item& had : before.items) {
      if (had.what == item.what) extra.count -= had.count;
    }
    if (item.what.ends_with(kHostItem) && item.count > 0) new_hosts = std::max(0.0, extra.count) / item.count;
    if (item.what.starts_with("NIC ")) extra.count -= new_hosts * item.count;
    if (extra.count <= 0) continue;
    if (!extra.usd_each) out.missing.push_back(extra.what);
    out.items.push_back(std::move(extra));
  }
  return out;
}

}  // namespace chokepoint::whatif

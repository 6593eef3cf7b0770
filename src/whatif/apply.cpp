// SPDX-License-Identifier: Apache-2.0
#include "apply.hpp"

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <fmt/format.h>

#include "amount.hpp"
#include "rewire.hpp"

namespace chokepoint::whatif {

namespace {

constexpr int kMostGpus = 1 << 20;
constexpr int kMostNics = 64;

using Handler = Result<bool> (*)(Scenario&, const Change&);
struct Entry {
  std::string_view key;
  Handler handler;
};

topology::Host& first_host(Scenario& s) { return s.job.cluster.hosts.front().host; }

// Network
// --------------------------------------------------------------------------------------------------------------

Result<bool> nic(Scenario& s, const Change& c) {
  const double now = nic_bytes_per_s(first_host(s));
  if (now <= 0)
    return fail(fmt::format("'{}': the wiring shows no NIC with a known rate", c.text), {},
                {"name the NIC in the cluster file: 'nic: connectx-7-400g'"});
  if (const auto part = hardware::find_nic(c.value)) {
    for (topology::HostGroup& group : s.job.cluster.hosts) wiring::set_nics(group.host, *part);
    return true;
  }
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value, parse_rate));
  scale_nics(s.job.cluster, amount.against(now) / now);
  return true;
}

Result<bool> nics_per_host(Scenario& s, const Change& c) {
  TRY_INTO(const int count, parse_count(c.key, c.value, 1, kMostNics));
  return set_nic_count(s.job.cluster, count);
}

Result<bool> joined(const Scenario& s, const Change& c) {
  if (s.job.cluster.fabric.kind != topology::FabricKind::kNone) return true;
  return fail(fmt::format("'{}': the hosts of this cluster are not joined by a fabric", c.text), {},
              {"give hosts=2 or fabric=single-switch too"});
}

Result<bool> network(Scenario& s, const Change& c) {
  TRY_INTO([[maybe_unused]] const bool fabric, joined(s, c));
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
  scale_nics(s.job.cluster, amount.value);
  for (const LinkClass part : {LinkClass::kNicSlots, LinkClass::kSwitchUplinks, LinkClass::kHostMemory})
    scale_class(s.job.cluster, part, amount.value);
  auto& fabric_now = s.job.cluster.fabric;
  fabric_now.oversubscription = std::max(1.0, fabric_now.oversubscription);
  return true;
}

Result<bool> transport(Scenario& s, const Change& c) {
  constexpr std::array kTransports = {topology::Transport::kInfiniBand, topology::Transport::kRoce,
                                      topology::Transport::kTcp,        topology::Transport::kOmniPath,
                                      topology::Transport::kSlingshot,  topology::Transport::kEfa};
  std::vector<std::string> names;
  for (const topology::Transport one : kTransports) {
    names.emplace_back(topology::name(one));
    if (names.back() != lower(c.value)) continue;
    s.job.cluster.fabric.transport = one;
    return true;
  }
  return fail(fmt::format("unknown transport '{}'; expected one of: {}", c.value, fmt::join(names, ", ")));
}

Result<bool> fabric(Scenario& s, const Change& c) {
  std::string word = lower(c.value);
  std::replace(word.begin(), word.end(), '_', '-');
  if (word == "rail-optimized") word = "rail-optimised";
  topology::Fabric& now = s.job.cluster.fabric;
  for (const auto kind :
       {topology::FabricKind::kSingleSwitch, topology::FabricKind::kFatTree, topology::FabricKind::kRailOptimized}) {
    if (word != topology::name(kind)) continue;
    now.kind = kind;
    if (kind == topology::FabricKind::kSingleSwitch) {
      now.oversubscription = 1;
      now.hosts_per_leaf = 0;
    }
    return true;
  }
  TRY_INTO(const hardware::FabricTemplate part, hardware::find_fabric(c.value));
  TRY_INTO(now, wiring::build_fabric(part));
  return true;
}

Result<bool> oversubscription(Scenario& s, const Change& c) {
  TRY_INTO([[maybe_unused]] const bool fabric, joined(s, c));
  topology::Fabric& now = s.job.cluster.fabric;
  const auto plain = [](std::string_view text) -> Result<double> {
    const auto value = to_number(text.ends_with(":1") ? text.substr(0, text.size() - 2) : text);
    if (!value || *value < 1 || *value > 1000) return fail("expected a ratio from 1 to 1000, such as 2 or 3:1");
    return *value;
  };
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value, plain));
  now.oversubscription = std::max(1.0, amount.against(now.oversubscription));
  if (now.oversubscription > 1 && now.hosts_per_leaf == 0) {
    constexpr int kHostsPerLeaf = 32;  // a leaf of 64 ports with half of them down
    now.hosts_per_leaf = kHostsPerLeaf;
    if (now.kind == topology::FabricKind::kSingleSwitch) now.kind = topology::FabricKind::kFatTree;
    s.notes.push_back({fmt::format("leaf switches of {} hosts assumed, as the fabric lists none", kHostsPerLeaf), {}});
  }
  return true;
}

Result<bool> hosts_per_leaf(Scenario& s, const Change& c) {
  TRY_INTO(s.job.cluster.fabric.hosts_per_leaf, parse_count(c.key, c.value, 1, kMostGpus));
  return true;
}

Result<bool> gpudirect(Scenario& s, const Change& c) {
  TRY_INTO(const bool on, parse_switch(c.key, c.value));
  for (topology::HostGroup& group : s.job.cluster.hosts) group.host.gpudirect_rdma = on;
  return true;
}

Result<bool> peer_to_peer(Scenario& s, const Change& c) {
  TRY_INTO(const bool on, parse_switch(c.key, c.value));
  for (topology::HostGroup& group : s.job.cluster.hosts) group.host.peer_to_peer = on;
  return true;
}

// Inside the host
// ------------------------------------------------------------------------------------------------------

Result<bool> nvlink(Scenario& s, const Change& c) {
  const double now = gpu_link_bytes_per_s(first_host(s));
  if (now <= 0)
    return fail(fmt::format("'{}': the GPUs of this wiring have no links to each other", c.text), {},
                {"bridges=on fits them between boards"});
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value, parse_rate));
  scale_class(s.job.cluster, LinkClass::kGpuLinks, amount.against(now) / now);
  return true;
}

Result<bool> nvlink_domain(Scenario& s, const Change& c) {
  const int per_host = std::max(1, s.job.cluster.gpus_per_host());
  TRY_INTO(const int gpus, parse_count(c.key, c.value, per_host, kMostGpus));
  if (first_host(s).of_kind(topology::DeviceKind::kNvSwitch).empty()) {
    return fail(fmt::format("'{}': the GPUs of this wiring do not hang on an NVLink switch", c.text));
  }
  if (gpus % per_host != 0) {
    return fail(fmt::format("nvlink-domain={}: expected a multiple of the {} GPUs of a host", gpus, per_host), {},
                {fmt::format("{} or {}", gpus / per_host * per_host, (gpus / per_host + 1) * per_host)});
  }
  for (topology::HostGroup& group : s.job.cluster.hosts) group.host.nvlink_domain_hosts = gpus / per_host;
  return true;
}

Result<bool> bridges(Scenario& s, const Change& c) {
  TRY_INTO(const bool on, parse_switch(c.key, c.value));
  return set_bridges(s.job.cluster, s.job.accelerator, on);
}

Result<bool> scaled_class(Scenario& s, const Change& c, LinkClass link_class) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
  if (scale_class(s.job.cluster, link_class, amount.value)) return true;
  return fail(fmt::format("'{}': the wiring shows no such links", c.text), {},
              {"chokepoint wiring draws the links it has"});
}

Result<bool> pcie(Scenario& s, const Change& c) {
  if (const auto generation = to_int(c.value)) return set_pcie(s.job.cluster, *generation);
  return scaled_class(s, c, LinkClass::kGpuSlots);
}
Result<bool> board(Scenario& s, const Change& c) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
  scale_board(s.job.cluster, amount.value);
  return true;
}
Result<bool> pcie_uplink(Scenario& s, const Change& c) { return scaled_class(s, c, LinkClass::kSwitchUplinks); }
Result<bool> nic_slot(Scenario& s, const Change& c) { return scaled_class(s, c, LinkClass::kNicSlots); }
Result<bool> host_memory(Scenario& s, const Change& c) { return scaled_class(s, c, LinkClass::kHostMemory); }
Result<bool> socket(Scenario& s, const Change& c) { return scaled_class(s, c, LinkClass::kSockets); }

/// "GPU5.pcie=x0.5", "NIC2.rate=200 Gb/s".
Result<bool> device(Scenario& s, const Change& c) {
  const std::size_t dot = c.key.rfind('.');
  const std::string name_of_device = c.key.substr(0, dot);
  const std::string what = c.key.substr(dot + 1);
  if (what == "rate") {
    for (topology::HostGroup& group : s.job.cluster.hosts) {
      for (topology::Device& d : group.host.devices) {
        if (d.kind != topology::DeviceKind::kNic || (d.name != name_of_device && d.alias != name_of_device)) continue;
        TRY_INTO(const Amount amount, parse_amount(c.key, c.value, parse_rate));
        d.line_bytes_per_s = amount.against(d.line_bytes_per_s);
        return true;
      }
    }
    return fail(fmt::format("'{}': the wiring has no NIC '{}'", c.text, name_of_device), {},
                {"chokepoint wiring lists the devices"});
  }
  for (int i = 0; i < kLinkClassCount; ++i) {
    const auto link_class = static_cast<LinkClass>(i);
    if (what != name(link_class)) continue;
    TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
    if (scale_device(s.job.cluster, name_of_device, link_class, amount.value) > 0) return true;
    return fail(fmt::format("'{}': the wiring has no device '{}' with such a link", c.text, name_of_device), {},
                {"chokepoint wiring lists the devices"});
  }
  return fail(
      fmt::format("'{}': unknown link '{}'; expected nvlink, pcie, pcie-uplink, nic-slot, host-memory, socket or rate",
                  c.text, what));
}

// Device and host
// ------------------------------------------------------------------------------------------------------

Result<bool> latency(Scenario& s, const Change& c) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
  scale_latency(s.parameters.collective, amount.value);
  return true;
}

Result<bool> accelerator(Scenario& s, const Change& c) {
  TRY_INTO(const hardware::Accelerator part, hardware::find_accelerator(c.value));
  if (s.job.cluster.hosts.size() > 1) s.notes.push_back({"every kind of host gets the new accelerators", {}});
  for (topology::HostGroup& group : s.job.cluster.hosts) {
    if (group.host.accelerator.empty()) group.host.accelerator = s.job.accelerator.name;
  }
  TRY_INTO([[maybe_unused]] const bool rewired, set_accelerator(s.job.cluster, part, s.notes));
  if (s.job.attention == job::default_attention(s.job.accelerator)) s.job.attention = job::default_attention(part);
  s.job.accelerator = part;
  s.arithmetic = 1;
  if (s.job.cluster.prices.accelerator_hour_usd) {
    s.job.cluster.prices.accelerator_hour_usd = std::nullopt;
    s.notes.push_back({"the job's own price is for the old accelerators: the price list is used for the new ones", {}});
  }
  return true;
}

Result<bool> hbm(Scenario& s, const Change& c) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value, parse_rate));
  s.job.accelerator.memory_bytes_per_s = amount.against(s.job.accelerator.memory_bytes_per_s);
  return true;
}

Result<bool> memory(Scenario& s, const Change& c) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value, parse_bytes));
  s.job.accelerator.memory_bytes = amount.against(s.job.accelerator.memory_bytes);
  return true;
}

Result<bool> clock(Scenario& s, const Change& c) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
  scale_arithmetic(s, amount.value);
  return true;
}

Result<bool> power(Scenario& s, const Change& c) {
  const auto watts = [](std::string_view text) -> Result<double> {
    const std::string_view number = text.ends_with('W') ? trim(text.substr(0, text.size() - 1)) : text;
    const auto value = to_number(number);
    if (!value || !text.ends_with('W') || *value <= 0 || *value > 1e5) return fail("expected watts, such as 500 W");
    return *value;
  };
  if (s.job.accelerator.power_w <= 0)
    return fail(fmt::format("'{}': no power limit of {} is published", c.text, s.job.accelerator.name));
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value, watts));
  s.job.accelerator.power_w = amount.against(s.job.accelerator.power_w);
  return true;
}

Result<bool> host(Scenario& s, const Change& c) {
  TRY_INTO(const Amount amount, parse_amount(c.key, c.value));
  speed_up_host(s.parameters, amount.value);
  return true;
}

// Size, model, software
// ------------------------------------------------------------------------------------------------

Result<bool> resize(Scenario& s, int gpus) {
  const int per_host = std::max(1, s.job.cluster.gpus_per_host());
  auto& groups = s.job.cluster.hosts;
  const int hosts = (gpus + per_host - 1) / per_host;
  if (groups.size() > 1 && hosts > s.job.cluster.host_count()) {
    s.notes.push_back({fmt::format("hosts added are like '{}', which sets the pace", groups.front().host.name), {}});
  }
  const int others = s.job.cluster.host_count() - groups.front().count;
  groups.front().count = std::max(1, hosts - others);
  if (hosts > 1 && s.job.cluster.fabric.kind == topology::FabricKind::kNone) {
    if (topology::compute_nics(groups.front().host).empty()) {
      return fail(fmt::format("{} accelerators need {} hosts, but a host of this cluster has no NIC", gpus, hosts), {},
                  {"name a NIC and a fabric in the cluster file (docs/formats/cluster.md)"});
    }
    s.job.cluster.fabric.kind = topology::FabricKind::kSingleSwitch;
    s.job.cluster.fabric.origin = "assumed: one non-blocking switch";
    s.notes.push_back({"one non-blocking switch between the hosts assumed", {}});
  }
  if (s.job.cluster.measured.all_reduce || s.job.cluster.measured.all_gather || s.job.cluster.measured.reduce_scatter) {
    s.notes.push_back({"collectives were measured on the present number of hosts", {}});
  }
  s.job.gpus = gpus;
  return true;
}

Result<bool> gpus(Scenario& s, const Change& c) {
  TRY_INTO(const int count, parse_count(c.key, c.value, 1, kMostGpus));
  return resize(s, count);
}

Result<bool> hosts(Scenario& s, const Change& c) {
  const int per_host = std::max(1, s.job.cluster.gpus_per_host());
  TRY_INTO(const int count, parse_count(c.key, c.value, 1, kMostGpus / per_host));
  return resize(s, count * per_host);
}

Result<bool> model(Scenario& s, const Change& c) {
  TRY_INTO(s.job.model, model::find_model(c.value));
  return true;
}

Result<bool> layers(Scenario& s, const Change& c) {
  TRY_INTO(s.job.model.layers, parse_count(c.key, c.value, 1, 100000));
  s.job.model.published_parameters = std::nullopt;
  return true;
}

Result<bool> batch(Scenario& s, const Change& c) {
  TRY_INTO(const int sequences, parse_count(c.key, c.value, 1, 1 << 30));
  s.job.global_batch = sequences;
  return true;
}

Result<bool> sequence(Scenario& s, const Change& c) {
  TRY_INTO(s.job.sequence, parse_count(c.key, c.value, 1, 1 << 26));
  return true;
}

Result<bool> accumulate(Scenario& s, const Change& c) {
  TRY_INTO(const int steps, parse_count(c.key, c.value, 1, 1 << 20));
  if (!s.strategy)
    return fail(fmt::format("'{}' needs a strategy whose micro-batch it keeps", c.text), {},
                {"give --strategy, or batch="});
  const int product = s.strategy->tensor * s.strategy->pipeline * s.strategy->context;
  const int data = std::max(1, s.job.gpus / std::max(1, product));
  s.job.global_batch = static_cast<double>(s.strategy->micro_batch) * data * steps;
  s.notes.push_back({fmt::format("batch {}: {} micro-steps of {} sequences on {} data-parallel ranks",
                                 format_count(s.job.global_batch), steps, s.strategy->micro_batch, data),
                     {}});
  return true;
}

Result<bool> precision(Scenario& s, const Change& c) {
  TRY_INTO(s.job.dtype, hardware::parse_dtype(c.value));
  return true;
}

Result<bool> framework(Scenario& s, const Change& c) {
  TRY_INTO(s.job.framework, parallel::parse_framework(c.value));
  s.job.framework_assumed = false;
  return true;
}

Result<bool> attention(Scenario& s, const Change& c) {
  TRY_INTO(s.job.attention, job::parse_attention(c.value));
  return true;
}

Result<bool> compiled(Scenario& s, const Change& c) {
  TRY_INTO(s.job.compiled, parse_switch(c.key, c.value));
  return true;
}

Result<bool> strategy(Scenario& s, const Change& c) {
  TRY_INTO(const parallel::Strategy parsed, parallel::parse_strategy(c.value));
  s.strategy = portable(parsed);
  return true;
}

constexpr std::array kEntries = {Entry{"nic", nic},
                                 Entry{"nics-per-host", nics_per_host},
                                 Entry{"network", network},
                                 Entry{"transport", transport},
                                 Entry{"fabric", fabric},
                                 Entry{"oversubscription", oversubscription},
                                 Entry{"hosts-per-leaf", hosts_per_leaf},
                                 Entry{"gpudirect", gpudirect},
                                 Entry{"p2p", peer_to_peer},
                                 Entry{"nvlink", nvlink},
                                 Entry{"nvlink-domain", nvlink_domain},
                                 Entry{"bridges", bridges},
                                 Entry{"pcie", pcie},
                                 Entry{"board", board},
                                 Entry{"pcie-uplink", pcie_uplink},
                                 Entry{"nic-slot", nic_slot},
                                 Entry{"host-memory", host_memory},
                                 Entry{"socket", socket},
                                 Entry{"latency", latency},
                                 Entry{"accelerator", accelerator},
                                 Entry{"hbm", hbm},
                                 Entry{"memory", memory},
                                 Entry{"clock", clock},
                                 Entry{"power", power},
                                 Entry{"host", host},
                                 Entry{"gpus", gpus},
                                 Entry{"hosts", hosts},
                                 Entry{"model", model},
                                 Entry{"layers", layers},
                                 Entry{"batch", batch},
                                 Entry{"sequence", sequence},
                                 Entry{"accumulate", accumulate},
                                 Entry{"precision", precision},
                                 Entry{"framework", framework},
                                 Entry{"attention", attention},
                                 Entry{"compiled", compiled},
                                 Entry{"strategy", strategy}};

}  // namespace

Result<bool> apply(Scenario& scenario, const Change& change) {
  if (is_real_word(change.key)) return apply_real(scenario, change);
  for (const Entry& entry : kEntries) {
    if (entry.key == change.key) return entry.handler(scenario, change);
  }
  return device(scenario, change);
}

void scale_latency(collective::Constants& k, double factor) {
  for (collective::ProtocolLatency* protocol : {&k.ll, &k.simple}) {
    for (double* part : {&protocol->base_s, &protocol->nvlink_hop_s, &protocol->pcie_hop_s, &protocol->network_hop_s})
      *part *= factor;
  }
  for (double* part : {&k.channel_s, &k.peer_s, &k.exchange_s, &k.efa_step_s, &k.fill_s, &k.nvls_latency_s, &k.nvls_fill_s})
    *part *= factor;
}

void speed_up_host(simulate::Parameters& parameters, double factor) {
  simulate::Constants& k = parameters.step;
  for (double* part : {&k.python_forward_s, &k.python_backward_s, &k.sequence_parallel_host_s, &k.tensor_host_s,
                       &k.sharded_unit_host_s, &k.step_fixed_s}) {
    *part /= factor;
  }
  parameters.compute.launch.eager_2021_s /= factor;
}

void scale_arithmetic(Scenario& scenario, double factor) {
  hardware::Accelerator& part = scenario.job.accelerator;
  for (double& peak : part.peak_flops_per_s) peak *= factor;
  // The share of the peak that the power limit leaves is a property of the part at its own clocks: it stays.
  part.power_w *= factor;
  scenario.arithmetic *= factor;
}

namespace {

std::string_view word_of(std::string_view item) { return item.substr(0, item.find('=')); }

bool is_sharding(std::string_view word) {
  constexpr std::array<std::string_view, 10> kSharding = {"zero", "ddp", "fsdp", "hsdp",  "zero++",
                                                          "qwz",  "qgz", "hpz",  "shard", "sharder"};
  return std::find(kSharding.begin(), kSharding.end(), word) != kSharding.end();
}

/// Whether a word of the present strategy gives way to the new one.
bool replaced_by(std::string_view old_word, std::string_view word) {
  if (old_word == word) return true;
  if (word == "overlap") return old_word == "overlap-reduce" || old_word == "overlap-gather";
  if (old_word == "overlap") return word == "overlap-reduce" || word == "overlap-gather";
  if (word == "tensor") return old_word == "sp";
  if (word == "pipeline") return old_word == "stages";
  const bool whole = word == "zero" || word == "ddp" || word == "fsdp" || word == "hsdp";
  return whole && is_sharding(old_word);
}

}  // namespace

Result<bool> apply_strategy_word(Scenario& s, const Change& c) {
  if (!s.strategy) {
    return fail(fmt::format("'{}' changes a strategy, but the job names none and none fits", c.text), {},
                {"give --strategy"});
  }
  const std::string present = parallel::to_text(portable(*s.strategy));
  std::string text;
  for (const std::string_view item : split_blanks(present)) {
    if (!replaced_by(word_of(item), c.key)) text += std::string(item) + " ";
  }
  text += c.key + (c.value.empty() ? "" : "=" + c.value);
  TRY_INTO(const parallel::Strategy parsed, parallel::parse_strategy(text));
  s.strategy = portable(parsed);
  return true;
}

void carry_measurements(const Scenario& before, Scenario& after) {
  auto& measured = after.job.cluster.measured;
  auto& node = after.job.cluster.fabric.node_measured_bytes_per_s;
  if (measured == topology::MeasuredCollectives{} && !node) return;
  if (before.job.cluster.fabric.transport != after.job.cluster.fabric.transport) {
    node = measured.all_reduce = measured.all_gather = measured.reduce_scatter = std::nullopt;
    after.notes.push_back(
        {"bandwidth measured over the old transport says nothing of the new one: the wiring's own is used", {}});
  }
  const auto plain = [](topology::Cluster cluster) {
    cluster.measured = {};
    cluster.fabric.node_measured_bytes_per_s = std::nullopt;
    return cluster;
  };
  const collective::Network old_network(plain(before.job.cluster), before.job.accelerator, {},
                                        before.parameters.collective);
  const collective::Network new_network(plain(after.job.cluster), after.job.accelerator, {},
                                        after.parameters.collective);
  const double old_egress = old_network.host_egress_bytes_per_s();
  const double outside = old_egress > 0 ? new_network.host_egress_bytes_per_s() / old_egress : 1;
  const int inside_ranks = std::max(1, after.job.cluster.gpus_per_host());
  const collective::Group host{inside_ranks, inside_ranks, 1, 1};
  const double old_ring = old_network.cost(collective::Op::kAllReduce, 1e9, host).peak_bus_bytes_per_s;
  const double inside =
      old_ring > 0 ? new_network.cost(collective::Op::kAllReduce, 1e9, host).peak_bus_bytes_per_s / old_ring : 1;
  for (std::optional<double>* value : {&measured.all_reduce, &measured.all_gather, &measured.reduce_scatter, &node}) {
    if (*value) **value *= outside;
  }
  for (std::optional<double>* value :
       {&measured.host_all_reduce, &measured.host_all_gather, &measured.host_reduce_scatter}) {
    if (*value) **value *= inside;
  }
}

}  // namespace chokepoint::whatif

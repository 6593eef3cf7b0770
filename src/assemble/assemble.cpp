// SPDX-License-Identifier: Apache-2.0
// Hosts first, the most telling file of each as its base, then what describes the job and the fabric.
#include <chokepoint/wiring/measured_network.hpp>
#include <chokepoint/assemble/assemble.hpp>

#include "enrich.hpp"

#include <chokepoint/hardware/catalogue.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace chokepoint::assemble {

using namespace topology;
using namespace wiring;

namespace {

/// Files that describe a host, the one that says most first: it becomes the graph, later ones are matched with it.
constexpr std::array<Format, 11> kHostFormats{Format::kNcclTopologyXml, Format::kTopoMatrix, Format::kHwlocXml, Format::kLspci, Format::kRocmTopology,
                                              Format::kSmiQuery, Format::kNvLinkStatus, Format::kPeerMatrix, Format::kIbPorts, Format::kIbDevices, Format::kPairTables};

struct Record {
  HostGroup group;
  std::set<Format> formats;
  std::vector<std::size_t> documents;
  std::string host_name;
};

/// PCI addresses in the form all tools agree on: "0000:07:00.0". NCCL leaves out the function, nvidia-smi lengthens the domain.
std::string short_address(std::string_view text) {
  std::string out(text);
  if (out.size() > 12) out = out.substr(out.size() - 12);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::set<std::string> addresses_of(const Host& host) {
  std::set<std::string> found;
  for (const std::string& address : gpu_addresses(host)) {
    if (!address.empty()) found.insert(short_address(address));
  }
  return found;
}

class Assembler {
 public:
  explicit Assembler(std::vector<Document> documents) { result_.documents = std::move(documents); }
  Result<Assembly> run();

 private:
  void add_hosts();
  void place(std::size_t index);
  Record* match(const Document& document, const Host& host, std::string& reason);
  void add_job();
  void use_log(const NcclLog& log, const std::string& file);
  void use_table(const MeasuredTable& table, const std::string& file);
  void hosts_from_job(const std::vector<HostGroup>& groups, std::size_t index);
  void scale_to(int hosts, int ranks, const std::string& file);
  void add_fabric();
  void add_measured_network();
  void hosts_from_fabric();
  void compare_clusters();

  Assembly result_;
  std::vector<Record> records_;
  int job_hosts_ = 0;
  std::string job_file_;     ///< that job_hosts_ comes from
  std::string hosts_file_;   ///< the benchmark or log that the hosts were taken from, where no other file describes one
};

/// The record this file belongs to, null for a new one. Names decide, then addresses, then the number of GPUs.
Record* Assembler::match(const Document& document, const Host& host, std::string& reason) {
  const std::set<std::string> own = addresses_of(host);
  std::vector<Record*> candidates;
  for (Record& record : records_) {
    if (record.formats.count(document.format) != 0 || record.group.count > 1) continue;
    if (!document.host_name.empty() && !record.host_name.empty()) {
      if (document.host_name != record.host_name) continue;
      reason = "same host name in the prompt";
      return &record;
    }
    const std::set<std::string> known = addresses_of(record.group.host);
    if (!own.empty() && !known.empty()) {
      const auto shared = std::count_if(own.begin(), own.end(), [&known](const std::string& address) { return known.count(address) != 0; });
      if (shared * 2 < static_cast<std::ptrdiff_t>(own.size())) continue;
      reason = "same PCI addresses";
      return &record;
    }
    const bool no_gpu = host.gpus().empty() || record.group.host.gpus().empty();
    const bool part = document.format == Format::kNvLinkStatus && host.gpus().size() <= record.group.host.gpus().size();
    if (no_gpu || part || host.gpus().size() == record.group.host.gpus().size()) candidates.push_back(&record);
  }
  if (candidates.size() != 1) {
    if (candidates.size() > 1) result_.cluster.notes.push_back({fmt::format("{} files could be of the same host as this one; kept apart", candidates.size()), {document.file, 0, 0}});
    return nullptr;
  }
  reason = "the only host with as many GPUs";
  return candidates.front();
}

void Assembler::place(std::size_t index) {
  const Document& document = result_.documents[index];
  const std::optional<Host> host = host_in(document);
  if (!host) return;
  std::string reason;
  if (Record* record = match(document, *host, reason)) {
    record->formats.insert(document.format);
    record->documents.push_back(index);
    if (record->host_name.empty()) record->host_name = document.host_name;
    enrich(record->group.host, document, result_);
    result_.matched.push_back(fmt::format("{} and {}: one host ({})", record->group.host.name, document.file, reason));
    return;
  }
  std::vector<HostGroup> groups{{*host, 1}};
  if (const auto* matrices = std::get_if<std::vector<HostGroup>>(&document.content)) groups = *matrices;
  for (HostGroup& group : groups) {
    group.host.name = document.file;
    records_.push_back({std::move(group), {document.format}, {index}, document.host_name});
  }
}

void Assembler::add_hosts() {
  for (const Format format : kHostFormats) {
    for (std::size_t i = 0; i < result_.documents.size(); ++i) {
      if (result_.documents[i].format == format) place(i);
    }
  }
  // The order in which the files were given is the order people expect.
  std::stable_sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) { return a.documents.front() < b.documents.front(); });
  for (Record& record : records_) {
    result_.cluster.hosts.push_back(std::move(record.group));
    result_.documents_of.push_back(std::move(record.documents));
  }
}

/// Several host names with equal device lists are several hosts of one kind.
void Assembler::hosts_from_job(const std::vector<HostGroup>& groups, std::size_t index) {
  for (const HostGroup& group : groups) {
    const auto same = std::find_if(result_.cluster.hosts.begin(), result_.cluster.hosts.end(),
                                   [&group](const HostGroup& known) { return known.host.devices == group.host.devices && known.host.accelerator == group.host.accelerator; });
    if (same != result_.cluster.hosts.end()) {
      same->count += group.count;
      continue;
    }
    result_.cluster.hosts.push_back(group);
    result_.documents_of.push_back({index});
  }
}

/// A job on `hosts` hosts over one known kind: that many of it.
void Assembler::scale_to(int hosts, int ranks, const std::string& file) {
  if (hosts < 1 || hosts > (1 << 20)) return;
  if (job_hosts_ > 0 && job_hosts_ != hosts && job_file_ != file) result_.contradictions.push_back({fmt::format("{} hosts in one job, {} in another", job_hosts_, hosts), {}, {file, 0, 0}});
  if (hosts > job_hosts_) job_file_ = file;
  job_hosts_ = std::max(job_hosts_, hosts);
  if (result_.cluster.hosts.size() == 1 && result_.cluster.hosts.front().count < hosts) {
    result_.cluster.hosts.front().count = hosts;
    result_.cluster.notes.push_back({fmt::format("{} hosts by this job; all taken to be wired alike", hosts), {file, 0, 0}});
  }
  const int gpus = result_.cluster.gpus_per_host();
  if (gpus > 0 && ranks / hosts > gpus && hosts_file_ != file) {
    result_.contradictions.push_back({fmt::format("{} GPUs a host here, {} ranks a host there", gpus, ranks / hosts), {result_.cluster.hosts.front().host.name, 0, 0}, {file, 0, 0}});
  }
}

void Assembler::use_log(const NcclLog& log, const std::string& file) {
  Fabric& fabric = result_.cluster.fabric;
  const bool socket = std::find(log.networks.begin(), log.networks.end(), "Socket") != log.networks.end();
  for (const NcclNetDevice& device : log.devices) {
    if (device.layer.substr(0, 4) == "RoCE") fabric.transport = Transport::kRoce;
    if (device.name.substr(0, 3) == "hfi") fabric.transport = Transport::kOmniPath;
  }
  for (const std::string& network : log.networks) {
    if (network == "AWS Libfabric") fabric.transport = Transport::kEfa;
  }
  if (socket) fabric.transport = Transport::kTcp;
  if (!log.networks.empty()) fabric.origin = file;
  if (log.network_connections() > 0 && log.gdr_connections() == 0 && !socket) {
    for (HostGroup& group : result_.cluster.hosts) group.host.gpudirect_rdma = false;
  }
  // Cards the log names where the host's files show none.
  for (HostGroup& group : result_.cluster.hosts) {
    if (!group.host.nics().empty() || log.devices.empty() || group.host.of_kind(DeviceKind::kCpu).empty()) continue;
    const int cpu = group.host.of_kind(DeviceKind::kCpu).front();
    Bandwidth bandwidth;
    bandwidth.specified_bytes_per_s = hardware::pcie_bytes_per_s(4, 16).value_or(0.0);
    bandwidth.origin = "assumed: NCCL's log does not say where its cards sit";
    for (const NcclNetDevice& device : log.devices) group.host.add_duplex(group.host.add_device({DeviceKind::kNic, device.name, {}, {}, {}}), cpu, LinkKind::kPcie, 16, bandwidth);
  }
  scale_to(static_cast<int>(log.hosts.size()), log.world, file);
}

void Assembler::use_table(const MeasuredTable& table, const std::string& file) {
  if (table.kind != TableKind::kNcclTests) return;
  const int hosts = static_cast<int>(table.hosts().size());
  if (hosts > 0) scale_to(hosts, table.stated_ranks(), file);
  for (const TableDevice& device : table.devices) {
    for (HostGroup& group : result_.cluster.hosts) {
      if (!group.host.accelerator.empty() || group.host.gpus().empty()) continue;
      const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(device.name);
      if (!accelerator) continue;
      Result<Host> named = with_accelerator(group.host, *accelerator);
      if (named) group.host = std::move(*named);
    }
  }
  // The bandwidth of large messages: small ones are latency. Source of the limit: nccl-tests' own advice to test up to 4 GiB.
  constexpr double kLarge = 64.0 * 1024 * 1024;
  double best = 0;
  for (const TableRow& row : table.rows) best = row.bytes >= kLarge ? std::max(best, row.bus_bytes_per_s) : best;
  if (best <= 0) return;
  const int gpus = result_.cluster.gpus_per_host();
  const int ranks = table.implied_ranks() > 0 ? table.implied_ranks() : table.stated_ranks();
  const bool inside = gpus > 0 && ranks == gpus && hosts <= 1;
  const bool whole = ranks > 0 && ranks == result_.cluster.gpu_count();
  MeasuredCollectives& measured = result_.cluster.measured;
  if (!inside && !whole) return;
  if (table.op == "all_reduce") (inside ? measured.host_all_reduce : measured.all_reduce) = best;
  if (table.op == "all_gather") (inside ? measured.host_all_gather : measured.all_gather) = best;
  if (table.op == "reduce_scatter") (inside ? measured.host_reduce_scatter : measured.reduce_scatter) = best;
}

/// Ranks of a log as hosts, where no other file describes one.
std::vector<HostGroup> hosts_of_log(const NcclLog& log, const std::string& file) {
  std::vector<HostGroup> groups;
  for (const std::string& name : log.hosts) {
    Host host;
    host.name = name;
    const int cpu = host.add_device({DeviceKind::kCpu, "NUMA 0", {}, {}, 0});
    Bandwidth bandwidth;
    bandwidth.specified_bytes_per_s = hardware::pcie_bytes_per_s(4, 16).value_or(0.0);
    bandwidth.origin = "assumed: NCCL's log has no links";
    for (const NcclRank& rank : log.ranks) {
      if (rank.host != name) continue;
      host.add_duplex(host.add_device({DeviceKind::kGpu, fmt::format("GPU{}", std::max(0, rank.device)), {}, rank.bus_id, {}}), cpu, LinkKind::kPcie, 16, bandwidth);
    }
    if (!host.gpus().empty()) groups.push_back({std::move(host), 1});
  }
  if (!groups.empty()) groups.front().host.notes.push_back({"only the ranks' devices are known from NCCL's log, not how they are joined", {file, 0, 0}});
  return groups;
}

void Assembler::add_job() {
  if (result_.cluster.hosts.empty()) {
    for (std::size_t i = 0; i < result_.documents.size() && result_.cluster.hosts.empty(); ++i) {
      const Document& document = result_.documents[i];
      if (const auto* table = std::get_if<MeasuredTable>(&document.content)) hosts_from_job(hosts_of(*table, document.file), i);
      else if (const auto* log = std::get_if<NcclLog>(&document.content)) hosts_from_job(hosts_of_log(*log, document.file), i);
      if (!result_.cluster.hosts.empty()) hosts_file_ = document.file;
    }
  }
  for (const Document& document : result_.documents) {
    if (const auto* log = std::get_if<NcclLog>(&document.content)) use_log(*log, document.file);
  }
  for (const Document& document : result_.documents) {
    if (const auto* table = std::get_if<MeasuredTable>(&document.content)) use_table(*table, document.file);
  }
}

/// Hosts of a fabric file: adapters only, by how many each host has.
void Assembler::hosts_from_fabric() {
  std::map<std::string, std::vector<std::pair<std::string, double>>> adapters;
  std::vector<double> rate(result_.fabric->nodes.size(), 0);
  for (const FabricLink& link : result_.fabric->links) {
    rate[static_cast<std::size_t>(link.a)] += link.bytes_per_s;
    rate[static_cast<std::size_t>(link.b)] += link.bytes_per_s;
  }
  for (std::size_t i = 0; i < result_.fabric->nodes.size(); ++i) {
    const FabricNode& node = result_.fabric->nodes[i];
    if (!node.is_switch && !node.in_network) adapters[node.host.empty() ? node.id : node.host].emplace_back(node.name, rate[i]);
  }
  std::map<std::vector<double>, std::size_t> kinds;
  for (const auto& [name, cards] : adapters) {
    std::vector<double> rates;
    for (const auto& card : cards) rates.push_back(card.second);
    const auto [known, fresh] = kinds.emplace(rates, result_.cluster.hosts.size());
    if (!fresh) {
      ++result_.cluster.hosts[known->second].count;
      continue;
    }
    Host host;
    host.name = name;
    const int cpu = host.add_device({DeviceKind::kCpu, "NUMA 0", {}, {}, 0});
    for (std::size_t i = 0; i < cards.size(); ++i) {
      Device nic{DeviceKind::kNic, fmt::format("NIC{}", i), cards[i].first, {}, {}};
      nic.line_bytes_per_s = cards[i].second;
      Bandwidth bandwidth;
      bandwidth.specified_bytes_per_s = hardware::pcie_bytes_per_s(4, 16).value_or(0.0);
      bandwidth.origin = "assumed: a fabric file does not look into hosts";
      host.add_duplex(host.add_device(std::move(nic)), cpu, LinkKind::kPcie, 16, bandwidth);
    }
    result_.cluster.hosts.push_back({std::move(host), 1});
    result_.documents_of.emplace_back();
  }
}

void Assembler::add_fabric() {
  for (const Document& document : result_.documents) {
    std::optional<FabricGraph> graph;
    if (const auto* listing = std::get_if<FabricListing>(&document.content)) graph = listing->graph;
    else if (const auto* slurm = std::get_if<SlurmTopology>(&document.content)) graph = graph_of(*slurm);
    if (!graph || graph->nodes.empty()) continue;
    if (result_.fabric && result_.fabric->rates_known) {
      if (shape_of(*graph).hosts != result_.shape.hosts) result_.contradictions.push_back({fmt::format("{} hosts in one fabric file, {} in another", result_.shape.hosts, shape_of(*graph).hosts), {}, {document.file, 0, 0}});
      continue;
    }
    result_.fabric = std::move(graph);
    result_.shape = shape_of(*result_.fabric);
    const Transport transport = result_.cluster.fabric.transport;
    result_.cluster.fabric = fabric_of(*result_.fabric, result_.shape);
    result_.cluster.fabric.transport = transport;
    result_.cluster.fabric.origin = document.file;
  }
  if (!result_.fabric) return;
  if (result_.cluster.hosts.empty()) return hosts_from_fabric();
  if (result_.cluster.hosts.size() == 1 && result_.cluster.hosts.front().count == 1 && job_hosts_ == 0) {
    result_.cluster.hosts.front().count = std::max(1, result_.shape.hosts);
    result_.cluster.notes.push_back({fmt::format("{} hosts by the fabric; all taken to be wired alike", result_.shape.hosts), {result_.cluster.fabric.origin, 0, 0}});
  } else if (result_.cluster.host_count() > result_.shape.hosts) {
    result_.contradictions.push_back({fmt::format("{} hosts here, {} in the fabric", result_.cluster.host_count(), result_.shape.hosts), {}, {result_.cluster.fabric.origin, 0, 0}});
  }
}

/// A probed network: its rates replace what would be assumed. Without a host file its hosts are known by name alone.
void Assembler::add_measured_network() {
  const auto* network = result_.first<MeasuredNetwork>();
  if (network == nullptr) return;
  use_network(result_.cluster, *network);
  const int hosts = static_cast<int>(network->hosts.size());
  if (result_.cluster.hosts.size() == 1 && result_.cluster.hosts.front().count == 1 && job_hosts_ == 0 && !result_.fabric) {
    result_.cluster.hosts.front().count = hosts;
    result_.cluster.notes.push_back({fmt::format("{} hosts by the measured network; all taken to be alike inside", hosts), {network->file, 0, 0}});
  }
  if (!result_.cluster.hosts.empty()) return;
  Host host;
  host.name = network->hosts.front().name;
  const int cpu = host.add_device({DeviceKind::kCpu, "NUMA 0", {}, {}, 0});
  Device nic{DeviceKind::kNic, "NIC0", {}, {}, {}};
  nic.line_bytes_per_s = result_.cluster.fabric.node_measured_bytes_per_s.value_or(0);
  Bandwidth bandwidth;
  bandwidth.specified_bytes_per_s = hardware::pcie_bytes_per_s(4, 16).value_or(0.0);
  bandwidth.origin = "assumed: a probe of the network does not look into hosts";
  host.add_duplex(host.add_device(std::move(nic)), cpu, LinkKind::kPcie, 16, bandwidth);
  result_.cluster.hosts.push_back({std::move(host), hosts});
  result_.documents_of.emplace_back();
}

/// Files of two clusters in one call: hosts of different makes, and a log none of whose hosts the fabric knows.
void Assembler::compare_clusters() {
  const std::vector<HostGroup>& hosts = result_.cluster.hosts;
  const auto words = [](const Host& host) { return fmt::format("{} has {} x {}", host.name, host.gpus().size(), host.accelerator.empty() ? "GPU" : host.accelerator); };
  for (std::size_t i = 1; i < hosts.size(); ++i) {
    const Host& first = hosts.front().host;
    const Host& other = hosts[i].host;
    const bool both = !first.gpus().empty() && !other.gpus().empty();
    const bool makes = !first.accelerator.empty() && !other.accelerator.empty() && first.accelerator != other.accelerator;
    if (!both || (first.gpus().size() == other.gpus().size() && !makes)) continue;
    result_.cluster.notes.push_back({fmt::format("{}, {}: a mixed cluster, or files of two", words(first), words(other)), {other.name, 0, 0}});
    break;  // one such pair says it
  }
  if (!result_.fabric) return;
  std::set<std::string> known;
  for (const FabricNode& node : result_.fabric->nodes) {
    if (!node.host.empty()) known.insert(node.host.substr(0, node.host.find('.')));
  }
  for (const Document& document : result_.documents) {
    const auto* log = std::get_if<NcclLog>(&document.content);
    if (log == nullptr || log->hosts.empty() || known.empty()) continue;
    if (std::any_of(log->hosts.begin(), log->hosts.end(), [&known](const std::string& name) { return known.count(name.substr(0, name.find('.'))) != 0; })) continue;
    result_.contradictions.push_back({fmt::format("none of the {} hosts of this log ({}, ...) is in the fabric: files of two clusters?", log->hosts.size(), log->hosts.front()),
                                      {result_.cluster.fabric.origin, 0, 0}, {document.file, 0, 0}});
  }
}

Result<Assembly> Assembler::run() {
  for (Document& document : result_.documents) {
    if (auto* cluster = std::get_if<Cluster>(&document.content)) {
      if (result_.documents.size() > 1) return fail("a cluster file stands alone; put the host files into it", {document.file, 0, 0});
      result_.cluster = std::move(*cluster);
      result_.documents_of.resize(result_.cluster.hosts.size());
      document.content = Cluster(result_.cluster);
      return std::move(result_);
    }
  }
  add_hosts();
  add_job();
  add_fabric();
  add_measured_network();
  compare_clusters();
  return std::move(result_);
}

}  // namespace

Result<Assembly> assemble(std::vector<Document> documents) { return Assembler(std::move(documents)).run(); }

void list_unknown(Assembly& assembly) {
  const Cluster& cluster = assembly.cluster;
  const auto say = [&assembly](std::string text) { assembly.unknown.push_back(std::move(text)); };
  if (cluster.hosts.empty()) say("the hosts: no file describes one");
  for (const HostGroup& group : cluster.hosts) {
    const Host& host = group.host;
    if (!host.gpus().empty() && host.accelerator.empty()) say(fmt::format("{}: which accelerator it has (--accelerator NAME)", host.name));
    if (host.gpus().empty()) say(fmt::format("{}: its GPUs", host.name));
    int silent = 0;
    for (const int nic : host.nics()) silent += host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s <= 0 ? 1 : 0;
    if (silent > 0) say(fmt::format("{}: line rate of {} NICs (--nic NAME, or add ibstat)", host.name, silent));
    if (host.nics().empty() && cluster.host_count() > 1) say(fmt::format("{}: its NICs", host.name));
    int assumed = 0;
    for (const Link& link : host.links) assumed += link.kind == LinkKind::kPcie && link.bandwidth.origin.substr(0, 8) == "assumed:" ? 1 : 0;
    if (assumed > 0) say(fmt::format("{}: generation and width of {} PCIe links (add lspci -vvv or nvidia-smi -q)", host.name, (assumed + 1) / 2));
  }
  if (cluster.host_count() > 1 && cluster.fabric.kind == FabricKind::kNone) say("what joins the hosts (--fabric NAME, or add ibnetdiscover)");
}

}  // namespace chokepoint::assemble

// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/wiring/measured_network.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace chokepoint::wiring {

using namespace topology;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMaxEntries = 4u << 20;  ///< of one list: a full matrix of 2,048 hosts

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"deviation", spread.deviation}, {"samples", spread.samples}};
}

/// Fields of one object; the first fault is kept, with the path to it.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::string& fault) : json_(json), where_(std::move(where)), fault_(fault) {
    if (!json.is_object()) complain("", "an object");
  }
  double number(const char* key, double low, double high, double otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    const double found = value->is_number() ? value->get<double>() : std::nan("");
    if (!(found >= low && found <= high)) {
      complain(key, fmt::format("a number from {:g} to {:g}", low, high));
      return otherwise;
    }
    return found;
  }
  int integer(const char* key, int low, int high, int otherwise) const {
    const double found = number(key, low, high, otherwise);
    if (found != std::floor(found)) complain(key, "a whole number");
    return static_cast<int>(found);
  }
  std::string text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    complain(key, "text");
    return {};
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> found;
    for_each(key, [&](const Json& entry, const std::string&) {
      if (entry.is_string()) found.push_back(entry.get<std::string>());
      else complain(key, "a list of texts");
    });
    return found;
  }
  Spread spread(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return {};
    const Fields fields(*value, where_ + key + ".", fault_);
    return {fields.number("median", 0, 1e18, 0), fields.number("deviation", 0, 1e18, 0), fields.integer("samples", 0, 1 << 30, 0)};
  }
  template <class Visitor>
  void for_each(const char* key, const Visitor& visit) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array() || value->size() > kMaxEntries) return complain(key, "a list");
    for (std::size_t i = 0; i < value->size(); ++i) visit((*value)[i], fmt::format("{}{}[{}].", where_, key, i));
  }
  bool has(const char* key) const { return find(key) != nullptr; }
  std::string& fault() const { return fault_; }

 private:
  const Json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  void complain(const std::string& key, const std::string& expected) const {
    if (fault_.empty()) fault_ = fmt::format("'{}{}' is not {}", where_, key, expected);
  }
  const Json& json_;
  std::string where_;
  std::string& fault_;
};

MeasuredHost read_host(const Fields& fields) {
  MeasuredHost host;
  host.name = fields.text("name");
  host.ranks = fields.integer("ranks", 1, 1 << 20, 1);
  host.out_bytes_per_s = fields.spread("out_bytes_per_s");
  host.in_bytes_per_s = fields.spread("in_bytes_per_s");
  host.latency_s = fields.spread("latency_s");
  if (fields.has("inside_bytes_per_s")) host.inside_bytes_per_s = fields.number("inside_bytes_per_s", 0, 1e18, 0);
  if (fields.has("inside_latency_s")) host.inside_latency_s = fields.number("inside_latency_s", 0, 1e6, 0);
  return host;
}

Json host_json(const MeasuredHost& host) {
  Json json{{"name", host.name}, {"ranks", host.ranks}, {"out_bytes_per_s", spread_json(host.out_bytes_per_s)},
            {"in_bytes_per_s", spread_json(host.in_bytes_per_s)}, {"latency_s", spread_json(host.latency_s)}};
  if (host.inside_bytes_per_s) json["inside_bytes_per_s"] = *host.inside_bytes_per_s;
  if (host.inside_latency_s) json["inside_latency_s"] = *host.inside_latency_s;
  return json;
}

void read_lists(const Fields& top, MeasuredNetwork& network) {
  const int last = static_cast<int>(network.hosts.size()) - 1;
  std::string& fault = top.fault();
  top.for_each("pairs", [&](const Json& entry, const std::string& where) {
    const Fields fields(entry, where, fault);
    network.pairs.push_back({fields.integer("from", 0, last, 0), fields.integer("to", 0, last, 0), fields.spread("alone_bytes_per_s"),
                             fields.spread("together_bytes_per_s"), fields.spread("both_ways_bytes_per_s"), fields.spread("latency_s")});
  });
  top.for_each("groups", [&](const Json& entry, const std::string& where) {
    const Fields fields(entry, where, fault);
    MeasuredGroup group;
    fields.for_each("hosts", [&](const Json& host, const std::string& at) {
      if (host.is_number_integer() && host.get<double>() >= 0 && host.get<double>() <= last) group.hosts.push_back(host.get<int>());
      else if (fault.empty()) fault = fmt::format("'{}' is no index into hosts", at);
    });
    group.out_bytes_per_s = fields.number("out_bytes_per_s", 0, 1e18, 0);
    group.in_bytes_per_s = fields.number("in_bytes_per_s", 0, 1e18, 0);
    group.out_oversubscription = fields.number("out_oversubscription", 1, 1e9, 1);
    group.in_oversubscription = fields.number("in_oversubscription", 1, 1e9, 1);
    network.groups.push_back(std::move(group));
  });
  top.for_each("messages", [&](const Json& entry, const std::string& where) {
    const Fields fields(entry, where, fault);
    network.messages.push_back({fields.integer("from", 0, last, 0), fields.integer("to", 0, last, 0), fields.number("bytes", 0, 1e18, 0),
                                fields.spread("time_s")});
  });
  top.for_each("collectives", [&](const Json& entry, const std::string& where) {
    const Fields fields(entry, where, fault);
    network.collectives.push_back({fields.text("op"), fields.integer("ranks", 1, 1 << 24, 1), fields.number("bytes", 0, 1e18, 0), fields.spread("time_s")});
  });
}

}  // namespace

Result<MeasuredNetwork> read_measured_network(std::string_view text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  const std::vector<std::string> advice{"expected what 'chokepoint measure --network --out FILE' writes (docs/formats/measure-network.md)"};
  if (json.is_discarded() || !json.is_object()) return fail("this is no JSON object", {file, 1, 1}, advice);
  std::string fault;
  const Fields top(json, "", fault);
  const std::string schema = top.text("schema");
  if (schema != kMeasuredNetworkSchema) {
    return fail(fmt::format("'schema' is '{}', expected '{}'", schema, kMeasuredNetworkSchema), {file, 1, 1}, advice);
  }
  MeasuredNetwork network;
  network.file = file;
  network.transport = top.text("transport");
  network.mtu = top.integer("mtu", 0, 1 << 20, 0);
  network.wall_s = top.number("wall_s", 0, 1e9, 0);
  network.groups_given = top.integer("groups_given", 0, 1, 0) == 1;
  top.for_each("hosts", [&](const Json& entry, const std::string& where) { network.hosts.push_back(read_host(Fields(entry, where, fault))); });
  if (network.hosts.empty() && fault.empty()) fault = "'hosts' is missing or empty";
  if (!network.hosts.empty()) read_lists(top, network);
  network.slow = top.texts("slow");
  network.unknown = top.texts("unknown");
  for (std::string& note : top.texts("notes")) network.notes.push_back({std::move(note), {}});
  if (!fault.empty()) return fail(fault, {file, 1, 1}, advice);
  return network;
}

std::string to_json(const MeasuredNetwork& network) {
  Json json{{"schema", kMeasuredNetworkSchema}, {"transport", network.transport}, {"mtu", network.mtu}, {"wall_s", network.wall_s},
            {"groups_given", network.groups_given ? 1 : 0}, {"frame_bytes_per_byte", network.frame_bytes_per_byte()}};
  for (const char* list : {"hosts", "groups", "slow", "unknown", "notes", "pairs", "messages", "collectives"}) json[list] = Json::array();
  for (const MeasuredHost& host : network.hosts) json["hosts"].push_back(host_json(host));
  for (const MeasuredGroup& group : network.groups) {
    json["groups"].push_back({{"hosts", group.hosts}, {"out_bytes_per_s", group.out_bytes_per_s}, {"in_bytes_per_s", group.in_bytes_per_s},
                              {"out_oversubscription", group.out_oversubscription}, {"in_oversubscription", group.in_oversubscription}});
  }
  json["slow"] = network.slow;
  json["unknown"] = network.unknown;
  for (const Note& note : network.notes) json["notes"].push_back(note.text);
  for (const MeasuredPair& pair : network.pairs) {
    json["pairs"].push_back({{"from", pair.from}, {"to", pair.to}, {"alone_bytes_per_s", spread_json(pair.alone_bytes_per_s)},
                             {"together_bytes_per_s", spread_json(pair.together_bytes_per_s)},
                             {"both_ways_bytes_per_s", spread_json(pair.both_ways_bytes_per_s)}, {"latency_s", spread_json(pair.latency_s)}});
  }
  for (const MeasuredMessage& m : network.messages) {
    json["messages"].push_back({{"from", m.from}, {"to", m.to}, {"bytes", m.bytes}, {"time_s", spread_json(m.time_s)}});
  }
  for (const MeasuredCollective& c : network.collectives) {
    json["collectives"].push_back({{"op", c.op}, {"ranks", c.ranks}, {"bytes", c.bytes}, {"time_s", spread_json(c.time_s)}});
  }
  return json.dump(1) + "\n";
}

Fabric fabric_of(const MeasuredNetwork& network) {
  Fabric fabric;
  fabric.kind = network.groups.size() > 1 ? FabricKind::kFatTree : FabricKind::kSingleSwitch;
  fabric.transport = network.transport == "tcp" ? Transport::kTcp : Transport::kInfiniBand;
  fabric.origin = "measured: " + network.file;
  double slowest = 0;
  for (const MeasuredHost& host : network.hosts) {
    for (const Spread* rate : {&host.out_bytes_per_s, &host.in_bytes_per_s}) {
      if (rate->samples > 0 && rate->median > 0 && (slowest == 0 || rate->median < slowest)) slowest = rate->median;
    }
  }
  if (slowest > 0) fabric.node_measured_bytes_per_s = slowest;
  for (const MeasuredGroup& group : network.groups) {
    fabric.hosts_per_leaf = std::max(fabric.hosts_per_leaf, static_cast<int>(group.hosts.size()));
    fabric.oversubscription = std::max({fabric.oversubscription, group.out_oversubscription, group.in_oversubscription});
  }
  return fabric;
}

void use_network(Cluster& cluster, const MeasuredNetwork& network) {
  const Fabric measured = fabric_of(network);
  Fabric& fabric = cluster.fabric;
  if (fabric.kind == FabricKind::kNone) fabric = measured;
  fabric.node_measured_bytes_per_s = measured.node_measured_bytes_per_s;
  if (!network.transport.empty()) fabric.transport = measured.transport;
  if (measured.oversubscription > 1) {
    fabric.kind = fabric.kind == FabricKind::kSingleSwitch ? FabricKind::kFatTree : fabric.kind;
    fabric.oversubscription = measured.oversubscription;
    fabric.hosts_per_leaf = measured.hosts_per_leaf;
  }
  const int probed = static_cast<int>(network.hosts.size());
  if (const int hosts = cluster.host_count(); hosts > 1 && hosts != probed) {
    cluster.notes.push_back({fmt::format("{} hosts were probed, the cluster has {}: all are taken to be as the slowest of those probed", probed, hosts), {network.file, 0, 0}});
  }
  for (const std::string& line : network.slow) cluster.notes.push_back({"measured: " + line, {network.file, 0, 0}});
}

}  // namespace chokepoint::wiring

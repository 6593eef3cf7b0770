// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces (MLCommons): a stream of protobuf messages, each behind its length; first the file's attributes,
// then a node each. The few fields that are needed are read from the wire format itself (protobuf's encoding guide); field
// numbers: schema/protobuf/et_def.proto of mlcommons/chakra. Nodes have durations but mostly no times: a node begins when all
// it depends on is over and what does its kind of work is free, as an ideal executor would run it.
#include <chokepoint/trace/trace.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "finish.hpp"
#include "source.hpp"
#include "wire_format.hpp"

namespace chokepoint::trace {

namespace {

constexpr std::size_t kMostBytes = std::size_t{2} << 30;
constexpr std::int64_t kMost_us = std::int64_t{7} * 24 * 3600 * 1'000'000;  // as for other traces

enum class NodeType { kOther, kCompute, kSend, kReceive, kCollective };

struct Node {
  std::uint64_t id = 0;
  std::string_view name;
  NodeType type = NodeType::kOther;
  std::vector<std::uint64_t> waits_for;
  std::int64_t start_us = -1;
  std::int64_t duration_us = 0;
  std::int64_t bytes = -1;
  std::int64_t peer = -1;
  std::uint64_t comm_type = 0;
  bool on_host = false;
  bool has_comm_type = false;
  std::string_view group;
};

/// As the schema numbers them.
std::string_view collective_name(std::uint64_t comm_type) {
  constexpr std::string_view kNames[] = {"allreduce", "reduce", "_allgather_base", "gather", "scatter", "broadcast", "all_to_all", "_reduce_scatter_base", "_reduce_scatter_base", "barrier"};
  return comm_type < std::size(kNames) ? kNames[comm_type] : std::string_view("unknown");
}

NodeType node_type(std::uint64_t number) {
  switch (number) {
    case 4: return NodeType::kCompute;
    case 5: return NodeType::kSend;
    case 6: return NodeType::kReceive;
    case 7: return NodeType::kCollective;
    default: return NodeType::kOther;
  }
}

/// An attribute's number, whichever of the integer kinds it was written as (fields 7 to 17 odd, bool 27).
void read_attribute(std::string_view text, Node& node) {
  std::string_view name;
  std::string_view words;
  std::uint64_t number = 0;
  WireReader reader(text);
  for (WireField f; reader.next(f);) {
    if (f.number == 1) name = f.bytes;
    if (f.kind == WireField::Kind::kNumber) number = f.value;
    if (f.number == 29) words = f.bytes;
  }
  const auto limited = static_cast<std::int64_t>(std::min<std::uint64_t>(number, std::uint64_t{1} << 50));
  if (name == "comm_type") {
    node.comm_type = number;
    node.has_comm_type = true;
  }
  if (name == "comm_size") node.bytes = limited;
  if (name == "comm_src" || name == "comm_dst") node.peer = limited;
  if (name == "is_cpu_op") node.on_host = number != 0;
  if (name == "pg_name") node.group = words;
}

/// Lists of numbers stand packed in one field, or one to a field.
void read_dependencies(const WireField& f, std::vector<std::uint64_t>& out) {
  if (f.kind == WireField::Kind::kNumber) {
    out.push_back(f.value);
    return;
  }
  std::size_t at = 0;
  for (std::uint64_t value = 0; read_varint(f.bytes, at, value);) out.push_back(value);
}

Node read_node(std::string_view text, bool& whole) {
  Node node;
  WireReader reader(text);
  for (WireField f; reader.next(f);) {
    switch (f.number) {
      case 1: node.id = f.value; break;
      case 2: node.name = f.bytes; break;
      case 3: node.type = node_type(f.value); break;
      case 4:
      case 5: read_dependencies(f, node.waits_for); break;
      case 6: node.start_us = static_cast<std::int64_t>(std::min<std::uint64_t>(f.value, std::uint64_t{1} << 52)); break;
      case 7: node.duration_us = static_cast<std::int64_t>(std::min<std::uint64_t>(f.value, kMost_us)); break;
      case 10: read_attribute(f.bytes, node); break;
      default: break;
    }
  }
  whole = reader.whole();
  return node;
}

/// Attributes of the file: "version" as text in 1, or a list of attributes in 2; a node has its type in 3.
bool is_file_head(std::string_view text) {
  WireReader reader(text);
  for (WireField f; reader.next(f);) {
    if (f.number == 1 && f.kind == WireField::Kind::kBytes) return true;
    if (f.number == 3 || f.number == 7) return false;
  }
  return true;
}

class ChakraReader {
 public:
  ChakraReader(std::string text, const std::string& file) : text_(std::move(text)) { trace_.file = file; }

  Result<RankTrace> read() {
    read_nodes();
    if (nodes_.empty()) return fail("the execution trace holds no nodes", {trace_.file, 0, 0});
    const bool timed = std::any_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.duration_us > 0; });
    if (!timed) {
      return fail("the execution trace holds no durations, so there is nothing to diagnose", {trace_.file, 0, 0},
                  {"link it with a Kineto trace (chakra_trace_link), or diagnose the Kineto trace itself"});
    }
    schedule();
    store();
    trace_.bytes_read = text_.size();
    trace_.events_seen = nodes_.size();
    finish(trace_, kFirst_ns);
    if (!trace_.rank_known) rank_from_ending();
    return std::move(trace_);
  }

 private:
  static constexpr std::int64_t kFirst_ns = 1'000'000'000;

  void read_nodes() {
    std::size_t at = 0;
    bool first = true;
    while (at < text_.size()) {
      std::uint64_t length = 0;
      const std::size_t begin = at;
      if (!read_varint(text_, at, length) || length > text_.size() - at) {
        trace_.defects.add(Defect::kCutOff, begin);
        return;
      }
      const std::string_view message = std::string_view(text_).substr(at, length);
      at += length;
      if (first && is_file_head(message)) {
        first = false;
        continue;
      }
      first = false;
      bool whole = true;
      Node node = read_node(message, whole);
      if (!whole) {
        trace_.defects.add(Defect::kSyntax, begin);
        continue;
      }
      nodes_.push_back(std::move(node));
    }
  }

  /// Lanes: computing on the device, on the host, communicating.
  static std::size_t lane_of(const Node& n) { return n.type == NodeType::kCompute || n.type == NodeType::kOther ? (n.on_host ? 1 : 0) : 2; }

  /// Nodes in an order that respects what each waits for; what a file lacks is not waited for, and cycles are cut.
  void schedule() {
    std::unordered_map<std::uint64_t, std::uint32_t> place;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) place.try_emplace(nodes_[i].id, i);
    std::vector<std::vector<std::uint32_t>> followers(nodes_.size());
    std::vector<std::uint32_t> open(nodes_.size(), 0);
    std::uint64_t dangling = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      for (const std::uint64_t id : nodes_[i].waits_for) {
        const auto at = place.find(id);
        if (at == place.end()) {
          ++dangling;
        } else if (at->second != i) {
          followers[at->second].push_back(i);
          ++open[i];
        }
      }
    }
    if (dangling > 0) trace_.notes.push_back(std::to_string(dangling) + " dependencies lead to nodes that the file does not hold");
    begin_us_.assign(nodes_.size(), 0);
    using Ready = std::pair<std::int64_t, std::uint32_t>;  // earliest first, then as the file has them
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (open[i] == 0) ready.emplace(0, i);
    }
    std::int64_t free_us[3] = {0, 0, 0};
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      const std::uint32_t i = ready.top().second;
      ready.pop();
      Node& n = nodes_[i];
      std::int64_t& lane = free_us[lane_of(n)];
      if (n.start_us >= 0) begin_us_[i] = n.start_us;
      else begin_us_[i] = std::max(begin_us_[i], lane);
      const std::int64_t end = begin_us_[i] + n.duration_us;
      lane = std::max(lane, end);
      for (const std::uint32_t f : followers[i]) {
        begin_us_[f] = std::max(begin_us_[f], end);
        if (--open[f] == 0) ready.emplace(begin_us_[f], f);
      }
    }
    if (done < nodes_.size()) trace_.notes.push_back(std::to_string(nodes_.size() - done) + " nodes wait for each other in a circle and begin at once");
    const bool placed = std::any_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.start_us >= 0; });
    if (!placed) trace_.notes.emplace_back("the file holds durations without times: nodes are placed as their dependencies allow");
  }

  void store() {
    const bool all_on_host = std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.on_host || n.type != NodeType::kCompute; });
    std::uint64_t untimed = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = nodes_[i];
      if (n.type == NodeType::kOther) continue;
      const bool transfers = n.type != NodeType::kCompute;
      untimed += transfers && n.duration_us == 0 ? 1 : 0;
      if (!transfers && n.on_host && !all_on_host) {
        store_host(n, begin_us_[i]);
      } else {
        store_device(n, begin_us_[i], transfers);
      }
    }
    if (untimed > 0) trace_.notes.push_back(std::to_string(untimed) + " transfers have no duration: what they cost cannot be said");
  }

  void store_host(const Node& n, std::int64_t begin_us) {
    HostEvents& h = trace_.host_events;
    if (trace_.threads.empty()) trace_.threads.push_back(trace_.names.intern("host"));
    h.start_ns.push_back(begin_us * 1000);
    h.end_ns.push_back((begin_us + n.duration_us) * 1000);
    h.name.push_back(trace_.names.intern(n.name));
    h.thread.push_back(0);
    h.correlation.push_back(0);
    h.kind.push_back(HostKind::kOperator);
  }

  void store_device(const Node& n, std::int64_t begin_us, bool transfers) {
    DeviceEvents& d = trace_.device;
    d.start_ns.push_back(begin_us * 1000);
    d.end_ns.push_back((begin_us + n.duration_us) * 1000);
    d.name.push_back(trace_.names.intern(n.name));
    d.correlation.push_back(0);
    d.stream.push_back(transfers ? 20 : 7);
    d.device.push_back(0);
    d.work.push_back(transfers ? Work::kCommunication : Work::kCompute);
    d.collective.push_back(transfers ? keep_collective(n) : -1);
  }

  std::int32_t keep_collective(const Node& n) {
    CollectiveInfo info;
    const std::string_view op = n.type == NodeType::kSend ? "send" : n.type == NodeType::kReceive ? "recv" : n.has_comm_type ? collective_name(n.comm_type) : "unknown";
    info.op = trace_.names.intern(op);
    info.group = trace_.names.intern(n.group);
    info.dtype = trace_.names.intern("Byte");
    info.in_elements = n.bytes;
    info.out_elements = n.bytes;
    info.peer = n.peer;
    trace_.collectives.push_back(info);
    return static_cast<std::int32_t>(trace_.collectives.size() - 1);
  }

  /// "workload.12.et", "chakra.0.et.gz": the number before the ending is the rank, by the tools' own habit.
  void rank_from_ending() {
    std::string_view name = trace_.file;
    const std::size_t slash = name.rfind('/');
    if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
    const std::size_t ending = name.rfind(".et");
    if (ending == std::string_view::npos) return;
    std::size_t begin = ending;
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
    if (begin == ending || begin == 0 || name[begin - 1] != '.' || ending - begin > 8) return;
    int rank = 0;
    for (std::size_t i = begin; i < ending; ++i) rank = rank * 10 + (name[i] - '0');
    trace_.rank = rank;
    trace_.rank_known = true;
    trace_.notes.emplace_back("rank taken from the file name");
  }

  std::string text_;
  RankTrace trace_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> begin_us_;
};

}  // namespace

bool looks_like_chakra(std::string_view head) {
  std::size_t at = 0;
  std::uint64_t length = 0;
  if (!read_varint(head, at, length) || length < 2 || length > (std::uint64_t{64} << 20)) return false;
  const std::string_view message = head.substr(at, length);
  // The first message is the file's head (a version or attributes named by text) or a node with a printable name.
  WireReader reader(message);
  WireField f;
  if (!reader.next(f)) return false;
  if (f.number == 1 && f.kind == WireField::Kind::kNumber && !reader.next(f)) return false;
  if ((f.number != 1 && f.number != 2) || f.kind != WireField::Kind::kBytes || f.bytes.empty()) return false;
  std::string_view text = f.bytes;
  if (text.size() > 2 && text[0] == '\n') text = text.substr(2, std::min<std::size_t>(static_cast<unsigned char>(text[1]), text.size() - 2));
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != '\x7F'; });
}

Result<RankTrace> read_chakra(const std::string& path) {
  TRY_INTO(std::string text, read_whole(path, kMostBytes));
  return ChakraReader(std::move(text), path).read();
}

Result<RankTrace> read_chakra_text(std::string text, const std::string& file) { return ChakraReader(std::move(text), file).read(); }

}  // namespace chokepoint::trace

// SPDX-License-Identifier: Apache-2.0
// A simulated step as a Chakra execution trace (MLCommons, schema/protobuf/et_def.proto): GlobalMetadata, then a Node for
// each operation of the rank, each message preceded by its length as a varint. Messages from other stages are receive
// nodes of their own. What the data needs is data_deps, the order of a lane ctrl_deps. Times are those of the simulation.
#include <chokepoint/report/simulate_view.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace chokepoint::report {

using engine::Meet;
using engine::Op;
using engine::OpTime;
using engine::Simulated;
using engine::StageGraph;
using engine::Work;

namespace {

/// NodeType and CollectiveCommType of et_def.proto.
enum Node : std::uint64_t { kComputation = 4, kSend = 5, kReceive = 6, kCollective = 7 };
std::uint64_t comm_type(collective::Op op) {
  switch (op) {
    case collective::Op::kAllReduce:
      return 0;
    case collective::Op::kReduce:
      return 1;
    case collective::Op::kAllGather:
      return 2;
    case collective::Op::kBroadcast:
      return 5;
    case collective::Op::kAllToAll:
      return 6;
    case collective::Op::kReduceScatter:
      return 7;
    case collective::Op::kSendRecv:
      break;
  }
  return 0;
}

std::string_view group_name(Meet meet) {
  switch (meet) {
    case Meet::kTensor:
      return "tensor";
    case Meet::kContext:
      return "context";
    case Meet::kExpert:
      return "expert";
    case Meet::kData:
      return "data";
    case Meet::kShard:
      return "shard";
    case Meet::kReplicate:
      return "replicate";
    case Meet::kTied:
      return "embedding";
    case Meet::kWorld:
      return "world";
    case Meet::kNobody:
      break;
  }
  return "none";
}

/// Protocol buffers by hand: tags, varints and length-delimited fields are all that the schema needs.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  /// A packed list of numbers; none when it is empty.
  Message& list(std::uint32_t field, const std::vector<std::uint64_t>& values) {
    if (values.empty()) return *this;
    Message packed;
    for (const std::uint64_t value : values) packed.varint(value);
    return text(field, packed.bytes_);
  }
  // AttributeProto: name 1, int64_val 9, bool_val 27, string_val 29; attributes are field 10 of a Node.
  Message& attribute(std::string_view name, std::int64_t value) {
    return text(10, Message().text(1, name).number(9, static_cast<std::uint64_t>(value)).bytes_);
  }
  Message& attribute(std::string_view name, bool value) {
    return text(10, Message().text(1, name).number(27, value ? 1 : 0).bytes_);
  }
  Message& attribute(std::string_view name, std::string_view value) {
    return text(10, Message().text(1, name).text(29, value).bytes_);
  }
  std::string delimited() const {
    Message out;
    out.varint(bytes_.size());
    out.bytes_ += bytes_;
    return out.bytes_;
  }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>((value & 0x7F) | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

std::uint64_t micros(double seconds) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, seconds) * 1e6)); }
std::int64_t whole(double bytes) { return static_cast<std::int64_t>(std::llround(std::clamp(bytes, 0.0, 9e18))); }

class Writer {
 public:
  Writer(const Simulated& s, int rank)
      : s_(s),
        rank_(rank),
        class_(static_cast<std::size_t>(s.fold.class_of[static_cast<std::size_t>(rank)])),
        stage_(s.graph.stages[static_cast<std::size_t>(s.fold.classes[class_].stage)]),
        waits_(stage_.ops.size()),
        before_(stage_.ops.size(), 0) {
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      for (std::uint32_t k = stage_.successor_begin[i]; k < stage_.successor_begin[i + 1]; ++k)
        waits_[stage_.successors[k]].push_back(i + 1);
    }
    for (const auto& lane : stage_.lanes) {
      for (std::size_t k = 1; k < lane.size(); ++k) before_[lane[k]] = lane[k - 1] + 1;
    }
  }

  std::string write() {
    std::string out = Message().text(1, "0.0.4").delimited();
    receive(out);
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) operation(i, out);
    return out;
  }

 private:
  int peer(int stage) const {
    return s_.layout.stage_ranks() * stage + rank_ % s_.layout.stage_ranks();
  }
  /// Sender and receiver give a message the same tag: the sender's operation.
  static std::int64_t tag(std::size_t op) { return static_cast<std::int64_t>(op); }

  void receive(std::string& out) {
    std::uint64_t id = stage_.ops.size();
    const int own = s_.fold.classes[class_].stage;
    for (std::size_t from = 0; from < s_.graph.stages.size(); ++from) {
      const StageGraph& other = s_.graph.stages[from];
      for (std::size_t i = 0; i < other.ops.size(); ++i) {
        const Op& op = other.ops[i];
        if (op.peer_stage != own || static_cast<int>(from) == own) continue;
        const int sender = peer(static_cast<int>(from));
        const OpTime& t =
            s_.run.times[static_cast<std::size_t>(s_.fold.class_of[static_cast<std::size_t>(sender)])][i];
        waits_[op.peer_op].push_back(++id);
        Message node;
        node.number(1, id).text(2, op.work == Work::kSendForward ? "receive activation" : "receive gradient");
        node.number(3, kReceive).number(6, micros(t.start_s)).number(7, micros(t.end_s - t.start_s));
        node.attribute("is_cpu_op", false).attribute("comm_size", whole(op.bytes));
        node.attribute("comm_src", std::int64_t{sender}).attribute("comm_dst", std::int64_t{rank_});
        node.attribute("comm_tag", tag(i));
        out += node.delimited();
      }
    }
  }

  void operation(std::size_t i, std::string& out) const {
    const Op& op = stage_.ops[i];
    const OpTime& t = s_.run.times[class_][i];
    const bool send = op.work == Work::kSendForward || op.work == Work::kSendBackward;
    Message node;
    node.number(1, i + 1).text(2, op.micro_batch >= 0 ? fmt::format("{} {}", engine::name(op.work), op.micro_batch)
                                                      : std::string(engine::name(op.work)));
    node.number(3, send ? kSend : op.meet != Meet::kNobody ? kCollective : kComputation);
    if (before_[i] > 0) node.list(4, {before_[i]});
    node.list(5, waits_[i]);
    node.number(6, micros(t.start_s)).number(7, micros(t.end_s - t.start_s));
    node.attribute("is_cpu_op", false);
    node.attribute("runtime_ns", whole((t.end_s - t.start_s) * 1e9));
    if (send) {
      node.attribute("comm_size", whole(op.bytes)).attribute("comm_src", std::int64_t{rank_});
      node.attribute("comm_dst", std::int64_t{peer(op.peer_stage)}).attribute("comm_tag", tag(i));
    } else if (op.meet != Meet::kNobody) {
      node.attribute("comm_type", static_cast<std::int64_t>(comm_type(op.collective)));
      node.attribute("comm_size", whole(op.bytes));
      node.attribute("pg_name", std::string_view(fmt::format("{} {}", group_name(op.meet),
                                                             op.meet == Meet::kWorld ? 0 : s_.layout.group_of(op.meet, rank_))));
    }
    out += node.delimited();
  }

  const Simulated& s_;
  int rank_;
  std::size_t class_;
  const StageGraph& stage_;
  std::vector<std::vector<std::uint64_t>> waits_;  ///< by operation: nodes it needs
  std::vector<std::uint64_t> before_;              ///< node before it on its lane, 0: none
};

}  // namespace

std::string chakra_trace(const Simulated& s, int rank) {
  return Writer(s, std::clamp(rank, 0, s.layout.ranks() - 1)).write();
}

}  // namespace chokepoint::report

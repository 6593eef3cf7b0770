// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/collective/collective.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "paths.hpp"
#include "timing.hpp"

namespace chokepoint::collective {
namespace {

struct NamedOp {
  std::string_view name;
  Op op;
};
constexpr std::array<NamedOp, 7> kOps{{{"all_reduce", Op::kAllReduce}, {"all_gather", Op::kAllGather},
                                       {"reduce_scatter", Op::kReduceScatter}, {"broadcast", Op::kBroadcast},
                                       {"reduce", Op::kReduce}, {"all_to_all", Op::kAllToAll},
                                       {"send_recv", Op::kSendRecv}}};

}  // namespace

std::string_view name(Op op) {
  for (const NamedOp& entry : kOps) {
    if (entry.op == op) return entry.name;
  }
  return "unknown";
}

Result<Op> parse_op(std::string_view text) {
  std::string word = lower(trim(text));
  std::erase(word, '_');
  std::erase(word, '-');
  std::vector<std::string> names;
  for (const NamedOp& entry : kOps) {
    std::string plain(entry.name);
    names.push_back(plain);
    std::erase(plain, '_');
    if (plain == word) return entry.op;
  }
  std::vector<std::string> notes;
  if (const auto guess = nearest(text, names)) notes.push_back("did you mean '" + *guess + "'?");
  return fail("unknown collective '" + std::string(text) + "', expected all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_recv", {}, notes);
}

double bus_factor(Op op, int ranks) {
  const double n = std::max(1, ranks);
  switch (op) {
    case Op::kAllReduce: return 2 * (n - 1) / n;
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll: return (n - 1) / n;
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kSendRecv: break;
  }
  return 1;
}

std::string_view name(LimitKind kind) {
  switch (kind) {
    case LimitKind::kNone: return "none";
    case LimitKind::kLatency: return "latency";
    case LimitKind::kNvLink: return "nvlink";
    case LimitKind::kPcie: return "pcie";
    case LimitKind::kHostMemory: return "host memory";
    case LimitKind::kSocket: return "socket link";
    case LimitKind::kNic: return "nic";
    case LimitKind::kFabric: return "fabric";
    case LimitKind::kMeasured: return "measured";
  }
  return "unknown";
}

NcclVersion usual_nccl(hardware::Architecture architecture) {
  using hardware::Architecture;
  switch (architecture) {
    case Architecture::kVolta:
    case Architecture::kTuring: return 2800;
    case Architecture::kAmpere: return 21200;
    case Architecture::kBlackwell: return 22600;
    default: return 21900;
  }
}

NcclVersion parse_nccl(std::string_view text) {
  const std::string words = lower(text);
  std::size_t at = words.find("nccl 2.");
  if (at != std::string::npos) at += 5;
  else if (words.starts_with("2.")) at = 0;
  else if (words.starts_with("v2.")) at = 1;
  else return 0;
  at += 2;
  const auto number = [&]() -> std::optional<int> {
    const std::size_t end = std::min(words.find_first_not_of("0123456789", at), words.size());
    const std::optional<int> value = end - at <= 2 ? to_int(std::string_view(words).substr(at, end - at)) : std::nullopt;
    at = end;
    return value;
  };
  const std::optional<int> minor = number();
  if (!minor) return 0;
  int patch = 0;
  if (at < words.size() && words[at] == '.') {
    ++at;
    patch = number().value_or(0);
  }
  return *minor >= 9 ? 20000 + *minor * 100 + patch : 2000 + *minor * 100 + patch;
}

struct Network::State {
  topology::Cluster cluster;
  hardware::Accelerator accelerator;
  Context context;
  Limit egress;
  std::map<Group, Path> paths;

  const Path& path(const Group& group) {
    const auto found = paths.find(group);
    if (found != paths.end()) return found->second;
    Path path = make_path(cluster, accelerator, context, egress, group);
    set_peaks(path, context);
    return paths.emplace(group, std::move(path)).first->second;
  }
};

Network::Network(const topology::Cluster& cluster, const hardware::Accelerator& accelerator, const Scale& scale, const Constants& constants, NcclVersion nccl)
    : state_(std::make_unique<State>(State{cluster, accelerator, {scale, constants, nccl > 0 ? nccl : usual_nccl(accelerator.architecture), nvlink_shares(constants, accelerator)}, {}, {}})) {
  state_->egress = host_egress(cluster, state_->context);
}
Network::~Network() = default;
Network::Network(const Network& other) : state_(std::make_unique<State>(*other.state_)) {}
Network& Network::operator=(const Network& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}

Cost Network::cost(Op op, double bytes, const Group& group) const {
  return time_of(op, bytes, state_->path(group), state_->context);
}

Cost Network::exchange(double bytes, double network_share, const Group& group) const {
  return exchange_time(bytes, std::clamp(network_share, 0.0, 1.0), state_->path(group), state_->context);
}

Cost Network::send(double bytes, int rank_distance, int ranks) const {
  const int gpus = std::max(1, state_->cluster.gpus_per_host());
  const int distance = std::max(1, rank_distance);
  // Neighbours `distance` apart leave the host when the distance is not a proper part of it, or at its edge.
  const bool crosses = distance >= gpus || gpus < 2 || ranks > gpus;
  const Group pair = crosses ? Group{.ranks = 2, .ranks_per_host = 1, .local_stride = 1, .host_stride = std::max(1, distance / gpus)}
                             : Group{.ranks = 2, .ranks_per_host = 2, .local_stride = distance};
  if (crosses && distance < gpus) {
    // The path is that of all GPUs of a host sending at once; here one stage does, over the NICs they share.
    const int nics = std::max(1, static_cast<int>(topology::compute_nics(state_->cluster.hosts.front().host).size()));
    bytes *= std::max(1.0, static_cast<double>(distance) / nics) / std::max(1.0, static_cast<double>(gpus) / nics);
  }
  return time_of(Op::kSendRecv, bytes, state_->path(pair), state_->context);
}

std::pair<std::string_view, std::string_view> Network::tuned(Op op, double bytes, const Group& group) const {
  TunerInput input = state_->path(group).tuner;
  input.op = op;
  const Selection selection = select(input, std::max(0.0, bytes));
  return {selection.algorithm, selection.protocol};
}

double Network::host_egress_bytes_per_s() const { return state_->egress.bytes_per_s; }

std::vector<Parameter> parameters() {
  Constants constants;
  std::vector<Parameter> list;
  for (ParameterRef& ref : refs(constants)) list.push_back(std::move(ref.info));
  return list;
}

}  // namespace chokepoint::collective

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time of one collective on a group of ranks over a wiring: the algorithm and protocol NCCL would take, the links its
// rings or trees load, and what shares those links at the same time.
//
//   Network network(cluster, accelerator);
//   Cost cost = network.cost(Op::kAllReduce, 64e6, Group{.ranks = 16, .ranks_per_host = 8});
#include <chokepoint/base/parameter.hpp>
#include <chokepoint/collective/constants.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/topology/topology.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chokepoint::collective {

enum class Op { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kAllToAll, kSendRecv };
inline constexpr std::size_t kOpCount = 7;
std::string_view name(Op op);
Result<Op> parse_op(std::string_view text);
/// nccl-tests: bus bandwidth = algorithm bandwidth x factor (2(n-1)/n for all_reduce, (n-1)/n for gather, scatter and
/// all-to-all, 1 for broadcast, reduce and send). Source: nccl-tests doc/PERFORMANCE.md.
double bus_factor(Op op, int ranks);

/// A process group, laid regularly over hosts: member j of a host is GPU base + j x local_stride. All groups of the kind
/// (gpus_per_host / ranks_per_host per host) run the same operation at the same time and share the host's links.
struct Group {
  int ranks = 1;
  int ranks_per_host = 1;  ///< members inside one host; ranks / ranks_per_host hosts take part
  int local_stride = 1;    ///< distance between members inside a host, in GPUs
  int host_stride = 1;     ///< distance between member hosts; the hosts between belong to sibling groups
  auto operator<=>(const Group&) const = default;
  int hosts() const { return ranks / ranks_per_host; }
};

/// What bounds a collective, for messages and the choke point.
enum class LimitKind { kNone, kLatency, kNvLink, kPcie, kHostMemory, kSocket, kNic, kFabric, kMeasured };
std::string_view name(LimitKind kind);

struct Cost {
  double time_s = 0;
  double latency_s = 0;             ///< the part that does not shrink with bandwidth
  double bus_bytes_per_s = 0;       ///< nccl-tests' bus bandwidth at this size
  double peak_bus_bytes_per_s = 0;  ///< bus bandwidth towards infinite size
  double call_s = 0;                ///< host time of the call, where start-up measurements show that calls are not free
  double floor_s = 0;               ///< max over directed links of bytes / capacity: no algorithm can be faster
  std::string_view algorithm;       ///< "ring", "tree", "nvls", "direct"
  std::string_view protocol;        ///< "ll", "simple"
  LimitKind limit = LimitKind::kNone;
  /// The limiting link in words: "PCIe 4.0 x16 of GPU3", "4 x 200 Gb/s NICs of each host". Lives as long as the Network.
  std::string_view where;
};

/// Multipliers that a what-if or the choke-point search applies to classes of links (1 = as it is).
struct Scale {
  double nvlink = 1;
  double pcie = 1;
  double nic = 1;
  double fabric = 1;
  double latency = 1;
};

/// NCCL's own way to write a version: major x 10000 + minor x 100 + patch from 2.9 on; 0: not known.
using NcclVersion = int;
/// The release usual when machines of this generation were new and being trained on: Volta 2.8, Ampere 2.12, Hopper 2.19,
/// Blackwell 2.26.
NcclVersion usual_nccl(hardware::Architecture architecture);
/// "2.18.5", "NCCL 2.12.12+cuda11.6", "v2.27": the version; 0 when the text names none.
NcclVersion parse_nccl(std::string_view text);

/// Bandwidths of one group shape on one cluster, worked out once from the graph and cached: the first cost() of a group
/// walks the host graph (up to 5,040 ring orders), later ones are a map lookup and some ten formulas. Because of the
/// cache a Network must not be used from several threads at once; copies are independent.
class Network {
 public:
  Network(const topology::Cluster& cluster, const hardware::Accelerator& accelerator, const Scale& scale = {},
          const Constants& constants = {}, NcclVersion nccl = 0);
  ~Network();
  Network(const Network& other);
  Network& operator=(const Network& other);

  /// `bytes`: nccl-tests' size, i.e. the full payload (all_gather: the gathered buffer; reduce_scatter: the buffer
  /// before; all_to_all: the send buffer of one rank; send_recv: the message).
  Cost cost(Op op, double bytes, const Group& group) const;
  /// Tokens to the ranks of their experts and back again the same way: `bytes` is the send buffer of one rank with a copy
  /// for every expert, as in all_to_all. A dispatcher that sends a token once to each host and copies it there over NVLink
  /// (DeepEP, HybridEP) passes only `network_share` of the copies for other hosts through the NICs; 1: a plain all_to_all.
  Cost exchange(double bytes, double network_share, const Group& group) const;
  /// Point-to-point between neighbouring pipeline stages `rank_distance` ranks apart (in GPU numbering), every rank of
  /// the stage sending at once. `ranks` of the whole pipeline: where they fill more than a host, the slowest boundary is
  /// the one between hosts. 0: only the distance decides.
  Cost send(double bytes, int rank_distance, int ranks = 0) const;
  /// Algorithm and protocol that NCCL's tuner of this release takes ("tree", "ll"), which need not be the fastest.
  std::pair<std::string_view, std::string_view> tuned(Op op, double bytes, const Group& group) const;
  /// Bandwidth of one host into the fabric, all NICs together, as NCCL reaches it. 0 with a single host.
  double host_egress_bytes_per_s() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The default constants, from refs().
std::vector<Parameter> parameters();

}  // namespace chokepoint::collective

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives as coupled flows: which links an operation loads, and how much, for an algorithm that the caller chose.
//
//   Result<FlowSet> ring = lower(platform, Pattern::kAllReduce, Algorithm::kRing, 1e9, gpus, {.channels = 8});
//   for (std::size_t i = 0; i < ring->size(); ++i) fluid.start(ring->uses(i), ring->bytes(i));
//
// A channel of a ring or tree is ONE flow: data moves through it at one rate, that of its slowest link. Bytes are split
// over channels in advance, so the operation takes as long as its slowest channel. Latency is not part of it.
#include <chokepoint/base/result.hpp>
#include <chokepoint/flow/fluid.hpp>
#include <chokepoint/flow/platform.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chokepoint::flow {

enum class Pattern { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kAllToAll, kSendRecv };
enum class Algorithm {
  kRing,    ///< broadcast and reduce: the ring left open, a chain
  kTree,    ///< all_reduce: double binary tree over hosts (channels take turns), chains inside
  kNvls,    ///< all_reduce: the NVSwitch adds and copies; over hosts each GPU's part through a tree
  kDirect,  ///< all_to_all, send_recv
};
/// What of an all_to_all shares one rate.
enum class Coupling {
  kPairs,  ///< nothing: a flow for each pair
  kRanks,  ///< what one rank sends
  kGroup,  ///< everything: one flow, as slow as its most loaded link
};

struct LowerOptions {
  int channels = 1;  ///< rings or trees; over hosts they take the NICs in turn
  Coupling coupling = Coupling::kPairs;
  std::uint64_t seed = 0;        ///< of the hashes of its messages
  const Fluid* fluid = nullptr;  ///< for adaptive routes
};

/// Flows of one operation, flat.
class FlowSet {
 public:
  std::size_t size() const { return bytes_.size(); }
  std::span<const Use> uses(std::size_t flow) const {
    return std::span<const Use>(uses_).subspan(first_[flow], first_[flow + 1] - first_[flow]);
  }
  double bytes(std::size_t flow) const { return bytes_[flow]; }

  std::vector<Use>& open() { return uses_; }  ///< uses of the next flow are appended here
  void close(double bytes) {
    first_.push_back(uses_.size());
    bytes_.push_back(bytes);
  }

 private:
  std::vector<Use> uses_;
  std::vector<std::size_t> first_{0};
  std::vector<double> bytes_;
};

/// `bytes`: nccl-tests' size: the full payload (all_gather: the gathered buffer; reduce_scatter: the buffer before;
/// all_to_all: the send buffer of one rank; send_recv: the message, between each two neighbours of `gpus`, as a pair
/// for two). `gpus`: global numbers in ring order, members of one host together. One member or no bytes: no flows.
/// Errors: an algorithm that the pattern has not, numbers out of range or twice, no route.
Result<FlowSet> lower(const Platform& platform, Pattern pattern, Algorithm algorithm, double bytes,
                      std::span<const int> gpus, const LowerOptions& options = {});

}  // namespace chokepoint::flow

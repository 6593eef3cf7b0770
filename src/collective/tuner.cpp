// SPDX-License-Identifier: Apache-2.0
// Numbers: NVIDIA/nccl, src/graph/tuning.cc (src/include/tuning.h) of 2.8, 2.10, 2.12, 2.18 and 2.28. Between releases the
// older table is taken until one with other numbers is known. Microseconds and GB/s, as there.
#include "tuner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace chokepoint::collective {
namespace {

using hardware::Architecture;

enum Algorithm : std::size_t { kTree, kRing, kAlgorithms };
enum Protocol : std::size_t { kLl, kLl128, kSimple, kProtocols };
enum Way : std::size_t { kNvLinkWay, kPciWay, kNetWay, kWays };
constexpr std::array<std::string_view, kAlgorithms> kAlgorithmNames{"tree", "ring"};
constexpr std::array<std::string_view, kProtocols> kProtocolNames{"ll", "ll128", "simple"};

using PerProtocol = std::array<double, kProtocols>;
struct LatencyTable {
  NcclVersion from;
  std::array<PerProtocol, kAlgorithms> base;                      ///< tree, ring
  std::array<std::array<PerProtocol, kAlgorithms>, kWays> hop;    ///< NVLink, PCI, network
  double nvls_us;
};
constexpr std::array<LatencyTable, 4> kLatencies{{
    {0,
     {{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
     {{{{{.52, 1.25, 28}, {.47, 1.9, 3.4}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 28}, {2.7, 4.0, 9.6}}}}},
     0},
    {21200,
     {{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
     {{{{{.52, 1.25, 28}, {.47, 1.9, 3.4}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 28}, {2.7, 4.0, 28}}}}},
     0},
    {21400,
     {{{6.8, 14.0, 0}, {6.6, 14.0, 8.4}}},
     {{{{{.6, 1.25, 28}, {.6, 1.9, 3.4}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 28}, {2.7, 4.0, 14}}}}},
     23},
    {22000,
     {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}}},
     {{{{{.6, 1.25, 4.0}, {.6, 1.9, 3.4}}}, {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 14}, {2.7, 4.0, 14}}}}},
     25},
}};

/// One host, two, more; rows Volta, Ampere, Hopper, Blackwell.
using ByHosts = std::array<double, 3>;
using ByGeneration = std::array<ByHosts, 4>;
constexpr ByGeneration kLlMax{{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
constexpr ByGeneration kRingLl128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 73.4, 73.4}}};
constexpr ByGeneration kTreeLl128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr ByGeneration kTreeMax{{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
constexpr ByGeneration kNvlsTreeMax{{{0, 0, 0}, {0, 0, 0}, {0, 57.7, 45.5}, {0, 96.0, 43.1}}};
constexpr std::array<double, 4> kNvlsEfficiency{0, 0, 0.85, 0.74};

/// How much of a tree's bandwidth sizes of 64 B, 128 B ... reach.
constexpr std::size_t kCorrected = 23;
constexpr std::array<std::array<double, kCorrected>, kProtocols> kTreeCorrection{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

constexpr NcclVersion kNvlsFrom = 21700;
constexpr NcclVersion kHalfForLl = 21800;      ///< ring LL counts half of the bandwidth, before a quarter or a third
constexpr NcclVersion kLl128OnHopper = 21400;

std::size_t generation(Architecture architecture) {
  switch (architecture) {
    case Architecture::kVolta:
    case Architecture::kTuring: return 0;
    case Architecture::kHopper: return 2;
    case Architecture::kBlackwell: return 3;
    default: return 1;
  }
}

const LatencyTable& latencies(NcclVersion nccl) {
  const LatencyTable* table = &kLatencies.front();
  for (const LatencyTable& candidate : kLatencies) {
    if (candidate.from <= nccl) table = &candidate;
  }
  return *table;
}

struct Model {
  const TunerInput& in;
  std::size_t gen = generation(in.architecture);
  std::size_t at = static_cast<std::size_t>(std::clamp(in.hosts, 1, 3) - 1);
  double per_host = static_cast<double>(in.ranks) / std::max(1, in.hosts);
  bool two_way = in.op == Op::kAllReduce;
  bool rooted = in.op == Op::kBroadcast || in.op == Op::kReduce;
  double steps = two_way ? 2.0 * (in.ranks - 1) : rooted ? in.ranks : in.ranks - 1;
  double bus = std::min(in.bus_bytes_per_s / 1e9,
                        in.architecture == Architecture::kAmpere && in.nccl < 22000 ? 235.0 : std::numeric_limits<double>::max());

  bool has(Protocol protocol) const {
    if (protocol != kLl128) return true;
    return in.nvlink && (gen < 2 || in.nccl >= kLl128OnHopper);
  }

  /// Bus bandwidth of all channels, GB/s.
  double bandwidth(Algorithm algorithm, Protocol protocol) const {
    const double channels = in.channels;
    // One host: by the GPU; more: by the maker of the processors.
    const double ll_max = in.nccl < 20900 ? std::numeric_limits<double>::max() : kLlMax[in.hosts == 1 ? gen : in.amd_host ? 1 : 0][at];
    if (algorithm == kRing) {
      if (protocol == kSimple) return bus;
      if (protocol == kLl128) return std::min(bus * (in.nccl < kHalfForLl && per_host < 2 ? 0.7 : 0.92), channels * kRingLl128[gen][at]);
      const bool quarter = in.hosts > 1 || two_way || in.op == Op::kReduce;
      return std::min(ll_max, bus * (in.nccl >= kHalfForLl ? 0.5 : quarter ? 1.0 / 4 : 1.0 / 3));
    }
    const double tree = std::min(bus * 0.92, channels * kTreeMax[gen][at]);
    if (protocol == kSimple) return tree;
    if (protocol == kLl) return std::min(tree / 3.8, ll_max);
    return std::min(tree * (in.hosts == 1 ? 7.0 / 9 : 120.0 / 128), channels * kTreeLl128[gen][at]);
  }

  double latency_us(Algorithm algorithm, Protocol protocol) const {
    const LatencyTable& table = latencies(in.nccl);
    const Way inside = in.nvlink ? kNvLinkWay : kPciWay;
    double intra = table.hop[inside][algorithm][protocol];
    const double inter = table.hop[kNetWay][algorithm][protocol];
    if (in.hosts > 1 && protocol == kLl && in.nccl < kHalfForLl) intra *= 1.8;
    double latency = table.base[algorithm][protocol];
    if (algorithm == kTree) {
      return latency + 2 * ((per_host - 1) * intra + std::floor(std::log2(std::max(1, in.hosts))) * inter);
    }
    if (rooted) return latency + table.hop[in.hosts > 1 ? kNetWay : inside][kRing][protocol];
    const double borders = in.hosts > 1 ? (two_way ? 2.0 : 1.0) * (in.hosts - 1) : 0;
    if (in.hosts > 1 && in.nccl >= kHalfForLl) intra = std::max(intra, (in.amd_host ? 2.0 : 1.0) * (protocol == kSimple ? 3 : 1));
    return latency + (steps - borders) * intra + borders * inter;
  }

  double time_us(Algorithm algorithm, Protocol protocol, double bytes) const {
    double rate = bandwidth(algorithm, protocol) * (algorithm == kRing ? in.ranks / steps : 0.5);
    double latency = latency_us(algorithm, protocol);
    if (algorithm == kTree) {
      const double doublings = bytes >= 64 ? std::floor(std::log2(bytes / 64)) : 0;
      if (doublings < kCorrected) rate *= kTreeCorrection[protocol][static_cast<std::size_t>(doublings)];
    }
    // A ring over hosts reaches its plateau late.
    const bool plateau = in.nccl < 21300 ? bytes >= in.ranks / 16.0 * 65536 : bytes / (static_cast<double>(in.channels) * in.ranks) >= 64;
    if (algorithm == kRing && protocol == kSimple && in.hosts > 1 && two_way && plateau) latency *= in.nccl >= 22700 && gen > 0 ? 1.4 : 1.9;
    return latency + bytes / (1e3 * rate);
  }

  /// NVLS inside a host, its trees over hosts.
  double nvls_us(double bytes) const {
    const double channels = std::max(2, in.channels);
    const double inside = bus / channels * kNvlsEfficiency[gen] * (channels - 1) / channels * 2;
    double rate = inside;
    if (in.hosts > 1) rate = std::min({inside, bus / channels * (in.hosts == 2 ? 2 : 1), kNvlsTreeMax[gen][at]});
    constexpr double kNvlsNetworkHop = 18;
    const double latency = latencies(in.nccl).nvls_us + (in.hosts > 1 ? 2 * std::floor(std::log2(in.hosts)) * kNvlsNetworkHop : 0);
    return latency + bytes / (1e3 * rate * channels * in.ranks / steps);
  }
};

}  // namespace

Selection select(const TunerInput& input, double bytes) {
  constexpr double kMicrosecond = 1e-6;
  if (input.ranks < 2) return {"none", "simple", 0};
  if (input.op == Op::kAllToAll || input.op == Op::kSendRecv) return {"direct", "simple", 0};
  const Model model{input};
  Selection best;
  double best_us = std::numeric_limits<double>::infinity();
  const auto offer = [&](std::string_view algorithm, std::string_view protocol, double time_us) {
    if (!(time_us < best_us)) return;
    best_us = time_us;
    best = {algorithm, protocol, time_us * kMicrosecond};
  };
  for (const Algorithm algorithm : {kTree, kRing}) {
    if (algorithm == kTree && input.op != Op::kAllReduce) continue;
    for (const Protocol protocol : {kLl, kLl128, kSimple}) {
      if (model.has(protocol)) offer(kAlgorithmNames[algorithm], kProtocolNames[protocol], model.time_us(algorithm, protocol, bytes));
    }
  }
  if (input.nvls && input.op == Op::kAllReduce && input.nccl >= kNvlsFrom && model.gen >= 2) offer("nvls", "simple", model.nvls_us(bytes));
  return best;
}

}  // namespace chokepoint::collective

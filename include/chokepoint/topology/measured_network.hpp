// SPDX-License-Identifier: Apache-2.0
#pragma once
// A network as probing it found it: what each host sends and takes, which hosts share a way to others, how long a message
// takes. Bandwidths are payload in one direction. Hosts and groups are indices into the lists here.
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::topology {

/// Median of repeats, and the median absolute deviation from it. `samples` 0: not measured.
struct Spread {
  double median = 0;
  double deviation = 0;
  int samples = 0;
  bool operator==(const Spread&) const = default;
};
/// Robust centre and spread of some values; all zero for none.
Spread spread_of(std::vector<double> values);

struct MeasuredHost {
  std::string name;
  int ranks = 1;
  Spread out_bytes_per_s;       ///< most that any experiment saw it send
  Spread in_bytes_per_s;
  Spread latency_s;             ///< one way, short messages, over its partners
  std::optional<double> inside_bytes_per_s;  ///< between two ranks of the host
  std::optional<double> inside_latency_s;
};

/// What one host sent to another; `together` while other pairs were busy too.
struct MeasuredPair {
  int from = 0;
  int to = 0;
  Spread alone_bytes_per_s;     ///< no sample: never measured alone
  Spread together_bytes_per_s;
  Spread both_ways_bytes_per_s; ///< while the other way was busy too
  Spread latency_s;
};

/// Hosts that share a way to the others (a rack's uplinks). A rate of 0: never seen as a limit.
struct MeasuredGroup {
  std::vector<int> hosts;
  double out_bytes_per_s = 0;
  double in_bytes_per_s = 0;
  double out_oversubscription = 1;  ///< what its hosts send alone, taken together, over `out_bytes_per_s`
  double in_oversubscription = 1;
};

/// One collective over one rank of each host, by MPI's own algorithm.
struct MeasuredCollective {
  std::string op;               ///< "all_reduce", "all_gather", "reduce_scatter"; sizes as nccl-tests counts them
  int ranks = 0;
  double bytes = 0;
  Spread time_s;
};

/// A message of this size between two hosts, one way.
struct MeasuredMessage {
  int from = 0;
  int to = 0;
  double bytes = 0;
  Spread time_s;
};

struct MeasuredNetwork {
  std::string file;             ///< where it was read from; empty when fresh
  std::string transport;        ///< as the library that carried it says: "tcp", "ucx", "ofi"; empty when it does not
  int mtu = 0;                  ///< of the interface that carried it; 0: not known
  double wall_s = 0;            ///< how long probing took
  std::vector<MeasuredHost> hosts;
  std::vector<MeasuredPair> pairs;
  std::vector<MeasuredGroup> groups;
  bool groups_given = false;    ///< the user named them; else found by probing
  std::vector<MeasuredMessage> messages;
  std::vector<MeasuredCollective> collectives;
  std::vector<std::string> slow;     ///< hosts and ways far below the others, in words
  std::vector<std::string> unknown;  ///< what these experiments cannot tell apart
  std::vector<Note> notes;

  /// Group of a host; -1 for none.
  int group_of(int host) const;
  /// Bytes of Ethernet frames (as Linux's shapers count them: with the 14-byte header, without preamble and checksum)
  /// for each byte of TCP payload: (MTU + 14) / (MTU - 52), 52 = IPv4 20, TCP 20, timestamps 12. 1 when no TCP or no MTU.
  double frame_bytes_per_byte() const;
};

}  // namespace chokepoint::topology

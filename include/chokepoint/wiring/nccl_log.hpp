// SPDX-License-Identifier: Apache-2.0
#pragma once
// NCCL_DEBUG=INFO logs of one or many ranks, with whatever launchers put before each line: what the library found, what
// it chose and what it complained about.
//
//   Result<NcclLog> log = read_nccl_log(text, "job.out");
//   log->via["NET/IB/n/GDRDMA"];   // connections of that kind, sender and receiver counted
#include <chokepoint/base/result.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// "NET/IB : Using [0]mlx5_0:1/RoCE": one port NCCL opened.
struct NcclNetDevice {
  std::string name;
  int port = 0;
  std::string layer;  ///< "IB", "RoCE", "IB/SHARP"; empty when not said
  bool operator==(const NcclNetDevice&) const = default;
};

struct NcclRank {
  int rank = 0;
  std::string host;
  int device = -1;      ///< CUDA device
  std::string bus_id;   ///< "0000:07:00.0"; empty when not said
};

struct NcclMessage {
  std::string text;
  std::string host;
  int line = 0;
};

struct NcclSetting {
  std::string name;   ///< "NCCL_IB_DISABLE"
  std::string value;
  int line = 0;
};

/// "1048576 Bytes -> Algo 1 proto 2 time 85.3", in the words of the log ("RING", "0").
struct NcclTunerChoice {
  double bytes = 0;
  std::string algorithm;
  std::string protocol;
  double time_s = 0;  ///< the library's own estimate; 0 when not said
  int count = 1;
};

/// "Pattern 4, crossNic 0, nChannels 2, bw 24.0/12.0, type NVL/PXB": what the graph search settled on.
struct NcclGraphLine {
  int pattern = 0;
  int channels = 0;
  double intra_bytes_per_s = 0;
  double inter_bytes_per_s = 0;
  std::string intra_type;
  std::string inter_type;
  int line = 0;
};

struct NcclLog {
  std::vector<std::string> versions;
  std::vector<std::string> networks;              ///< "IB", "Socket", "AWS Libfabric"
  std::vector<std::string> plugins;               ///< what was said about network plugins, each once
  std::vector<std::string> hosts;                 ///< in order of appearance
  std::vector<std::string> bootstrap_interfaces;  ///< "ib0", "eth0"
  std::vector<NcclNetDevice> devices;             ///< of all hosts, each once
  std::map<std::string, int> devices_per_host;    ///< ports opened by the first rank of a host
  std::map<std::string, int> via;                 ///< "P2P/IPC", "NET/IB/n/GDRDMA", "SHM/direct/direct"
  std::map<std::string, int> net_devices_used;    ///< "host/index" of NET connections
  std::map<int, int> collective_channels;         ///< "n coll channels" -> lines
  std::vector<NcclRank> ranks;                    ///< of the largest communicator, by rank
  int world = 0;                                  ///< largest nranks
  int communicators = 0;
  int ring_channels = 0;                          ///< channels of the largest ring list
  std::vector<std::vector<int>> rings;            ///< rank order per channel where the log lists it whole
  int trees = 0;                                  ///< channels of the longest tree line
  int gdr_enabled = 0;                            ///< "GPU Direct RDMA Enabled" lines
  int gdr_disabled = 0;
  std::vector<NcclMessage> gdr_lines;             ///< first of each
  std::vector<NcclMessage> warnings;              ///< NCCL WARN
  std::vector<NcclMessage> net_lines;             ///< lines about choosing the network
  std::vector<NcclSetting> settings;              ///< each name and value once
  std::vector<NcclTunerChoice> tuner;
  std::vector<NcclGraphLine> graphs;
  std::vector<NcclMessage> topology_lines;        ///< "+ PCI[12.0] - ..." as printed
  std::map<std::string, int> first_line;          ///< first line of each kind of connection and network
  int lines = 0;                                  ///< with NCCL's prefix
  std::vector<Note> notes;

  bool over_network() const;
  int network_connections() const;
  int gdr_connections() const;
};

Result<NcclLog> read_nccl_log(std::string_view text, const std::string& file);

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Other descriptions of one host or one job: hwloc's XML (lstopo), NCCL's graph XML, training logs (only what says
// how long an iteration took; the trace importers read the rest).
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/topology.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

struct HwlocOsDevice {
  std::string name;       ///< "mlx5_0", "ib0", "nvml3", "enp1s0"
  int pci = -1;           ///< index into pci_devices, -1 outside PCI
};

struct HwlocPci {
  std::string bus_id;
  std::string ids;        ///< "10de:1db8"
  int class_id = 0;       ///< 0x0302
  double link_bytes_per_s = 0;  ///< 0 when not known
  std::string name;
  int numa = -1;          ///< NUMA node or package it hangs on
  std::vector<std::string> bridges;  ///< PCI bridges above, from the host bridge down
  bool virtual_function = false;
  int line = 0;
};

/// One hwloc distances matrix, row by row.
struct HwlocDistances {
  std::string name;       ///< "NUMALatency", "NVLinkBandwidth"
  std::vector<std::string> objects;   ///< "NUMANode 0", "nvml3", bus address of a bridge
  std::vector<double> values;
};

struct HwlocTopology {
  std::string version;
  std::string product;    ///< DMIProductName; empty when not said
  std::map<std::string, int> counts;  ///< objects by type: Package, NUMANode, Core, PU, PCIDev, Bridge, OSDev
  std::map<std::string, int> os_devices;  ///< by name with numbers replaced: "mlxN_N"
  std::vector<HwlocPci> pci_devices;
  std::vector<HwlocOsDevice> devices;
  std::vector<HwlocDistances> distances;
  std::vector<Note> notes;
};
Result<HwlocTopology> read_hwloc_xml(std::string_view text, const std::string& file);
topology::Host host_of(const HwlocTopology& found, const std::string& file);

/// One graph of NCCL_GRAPH_DUMP_FILE.
struct NcclGraph {
  int id = 0;
  int pattern = 0;
  int cross_nic = 0;
  int stated_channels = 0;
  double intra_bytes_per_s = 0;
  double inter_bytes_per_s = 0;
  std::string intra_type;
  std::string inter_type;
  struct Channel {
    std::vector<std::string> steps;   ///< "net 0", "gpu 3", in order
    std::vector<int> gpus;
    std::vector<int> nets;
  };
  std::vector<Channel> channels;
  int line = 0;
};
struct NcclGraphs {
  std::vector<NcclGraph> graphs;
  bool truncated = false;
  std::vector<Note> notes;
};
Result<NcclGraphs> read_nccl_graph_xml(std::string_view text, const std::string& file);

struct TrainingLog {
  int iterations = 0;             ///< iteration lines
  double shortest_s = 0;
  double longest_s = 0;
  double median_s = 0;
  int world_size = 0;             ///< 0 when not said
  bool milliseconds = true;       ///< unit the log prints
  std::vector<std::string> hosts; ///< prefixes of the lines
  std::vector<Note> notes;
};
Result<TrainingLog> read_training_log(std::string_view text, const std::string& file);

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an InfiniBand fabric's own tools print (ibnetdiscover with and without -p, iblinkinfo with and without -l, ibsim
// net files, ibstat, ibstatus, ibv_devinfo, perfquery, lists of GUIDs per host), and how Slurm and topograph describe a fabric.
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/fabric_graph.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// One port of `ibstat`.
struct IbPort {
  std::string adapter;       ///< "mlx5_0"
  std::string type;          ///< "MT4129"
  std::string guid;
  int port = 0;
  std::string state;         ///< "Active", "Down", "Initializing"
  std::string physical;      ///< "LinkUp", "Disabled", "Polling"
  double bytes_per_s = 0;
  std::string link_layer;    ///< "InfiniBand", "Ethernet"
  int mtu = 0;               ///< bytes of a packet; 0: not said
  int mtu_max = 0;
  std::string firmware;
  std::vector<std::string> gids;  ///< "0: fe80:... IB/RoCE v1", those in use
  int line = 0;
};

struct IbPorts {
  std::string tool = "ibstat";  ///< that printed it
  std::vector<IbPort> ports;
  std::vector<Note> notes;
};
Result<IbPorts> read_ibstat(std::string_view text, const std::string& file);
/// `ibv_devinfo`, with and without -v, and `ibstatus`.
Result<IbPorts> read_ib_devices(std::string_view text, const std::string& file);
topology::Host host_of(const IbPorts& ports, const std::string& file);
/// Adds to `ports` what another list of the same machine's ports says beyond it, and ports it lacks; where both differ, a
/// sentence about it.
std::vector<std::string> add_ports(IbPorts& ports, const IbPorts& more);

enum class FabricForm { kNetDiscover, kNetDiscoverPorts, kLinkInfo, kSimulator };

struct FabricListing {
  FabricForm form = FabricForm::kNetDiscover;
  topology::FabricGraph graph;
  int open_ports = 0;        ///< listed without a far end
  int switch_blocks = 0;     ///< as the file counts them
  int adapter_blocks = 0;
  std::vector<Note> notes;
};
/// Any of the forms that list cables.
Result<FabricListing> read_fabric(std::string_view text, const std::string& file);

/// perfquery: counters by name, one set per port.
struct PortCounters {
  std::string title;
  std::map<std::string, double> values;
  std::map<std::string, int> lines;
};
struct CounterFile {
  std::vector<PortCounters> ports;
  std::vector<Note> notes;
};
Result<CounterFile> read_perfquery(std::string_view text, const std::string& file);

/// "VM_hostname NAME" followed by GUIDs.
struct GuidList {
  std::vector<std::pair<std::string, std::vector<std::string>>> hosts;
  std::vector<Note> notes;
};
Result<GuidList> read_guid_list(std::string_view text, const std::string& file);

struct SlurmSwitch {
  std::string name;
  std::vector<std::string> switches;
  std::vector<std::string> nodes;
  double link_speed = 0;     ///< LinkSpeed as written, without unit; 0 when not said
  std::string domain;        ///< accelerator domain of a block; empty when not said
  int line = 0;
};

/// topology.conf, topology.yaml, or a topograph model.
struct SlurmTopology {
  std::vector<SlurmSwitch> switches;   ///< trees
  std::vector<SlurmSwitch> blocks;     ///< blocks and rings: groups of nodes without a switch
  bool rings = false;
  std::string form;                    ///< "topology.conf", "topology.yaml", "topograph"
  std::vector<Note> notes;

  int with_nodes() const;              ///< switches that list nodes
  int node_count() const;              ///< different node names
};
Result<SlurmTopology> read_slurm_topology(std::string_view text, const std::string& file);
topology::FabricGraph graph_of(const SlurmTopology& found);

/// Data rate of one lane by its name, bytes per second; 0 for an unknown name.
double infiniband_lane_bytes_per_s(std::string_view rate);

}  // namespace chokepoint::wiring

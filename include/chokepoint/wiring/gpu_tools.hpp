// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the vendors' management tools say about GPUs and their links: nvidia-smi -q, nvidia-smi nvlink -s / -e,
// nvidia-smi topo -p2p, rocm-smi --showtopo. Each reader gives the plain content; host_of() makes a host of it.
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/topology.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// One GPU of `nvidia-smi -q`. Generations and widths are 0 where the file says nothing.
struct SmiGpu {
  std::string bus_id;             ///< "0000:06:00.0"
  std::string name;
  std::string uuid;
  std::string pci_device;         ///< "10de:2bb5"
  int generation_max = 0;         ///< of the pair slot and card
  int generation_current = 0;
  int generation_device_max = 0;
  int generation_host_max = 0;
  int width_max = 0;
  int width_current = 0;
  std::string performance_state;  ///< "P8" at rest, "P0" at work
  std::optional<double> utilization;  ///< per cent
  std::string fabric_state;       ///< NVSwitch fabric: "Completed", "In Progress"; empty when not said
  std::string fabric_status;      ///< "Success", or what failed
  std::vector<std::string> active_slowdowns;   ///< clocks event reasons that are active, idle left out
  double replays = 0;             ///< PCIe replays since reset
  int line = 0;
};

struct SmiQuery {
  std::string driver;
  std::string cuda;
  int attached = 0;               ///< "Attached GPUs"; 0 when not said
  std::vector<SmiGpu> gpus;
  std::vector<Note> notes;
};
/// The outline of -q, the XML of -q -x, or a table of --query-gpu=... --format=csv.
Result<SmiQuery> read_smi_query(std::string_view text, const std::string& file);
topology::Host host_of(const SmiQuery& query, const std::string& file);

struct NvLinkState {
  int link = 0;
  std::optional<double> bytes_per_s;  ///< one direction; no value when inactive
  std::string far;                ///< PCI address of the other end, "NVSwitch", or empty; NVML says it, nvidia-smi does not
  int line = 0;
};
struct NvLinkGpu {
  int index = 0;
  std::string name;
  std::string uuid;
  std::vector<NvLinkState> links;
  bool elided = false;            ///< "[...]": the paste leaves links out
  std::map<std::string, double> errors;  ///< error counter -> sum over links (nvlink -e)
  int line = 0;

  int up() const;
  int inactive() const;
  int stated_links() const;       ///< highest link number + 1
};
/// `nvidia-smi nvlink -s` or `-e`; an empty text is a host without NVLink.
struct NvLinkStatus {
  std::vector<NvLinkGpu> gpus;
  bool counters = false;          ///< the -e form
  std::vector<Note> notes;
};
Result<NvLinkStatus> read_nvlink_status(std::string_view text, const std::string& file);
topology::Host host_of(const NvLinkStatus& status, const std::string& file);

/// `nvidia-smi topo -p2p r|w|n|a|p`: which GPUs may access which. Cells are the tool's words.
struct PeerMatrix {
  std::vector<std::string> devices;
  std::vector<std::vector<std::string>> cells;  ///< "X", "OK", "NS", "CNS", "GNS", "TNS", "U"
  int line = 0;
  std::vector<Note> notes;

  /// Pairs with this word, each once.
  std::map<std::string, int> pairs() const;
};
Result<PeerMatrix> read_peer_matrix(std::string_view text, const std::string& file);
topology::Host host_of(const PeerMatrix& matrix, const std::string& file);

/// rocm-smi --showtopo, its parts and the plain table. Matrices are empty where the file has none.
struct RocmTopology {
  int gpus = 0;
  std::vector<std::string> names;              ///< by GPU; empty when not said
  std::vector<std::vector<int>> weights;
  std::vector<std::vector<int>> hops;
  std::vector<std::vector<std::string>> links;  ///< "XGMI", "PCIE"
  std::map<int, int> numa;                     ///< GPU -> NUMA node
  std::vector<std::string> bus_ids;            ///< by GPU; empty when not said
  std::vector<Note> notes;

  std::map<std::string, int> link_pairs() const;
};
/// rocm-smi --showtopo or amd-smi topology, as tables or JSON.
Result<RocmTopology> read_rocm_topology(std::string_view text, const std::string& file);
topology::Host host_of(const RocmTopology& found, const std::string& file);

}  // namespace chokepoint::wiring

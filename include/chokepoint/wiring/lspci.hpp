// SPDX-License-Identifier: Apache-2.0
#pragma once
// lspci in its usual forms: -vvv (link capability and state, access control), -nn (ids), -tv (tree), plain.
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// "Speed 2.5GT/s (downgraded), Width x16".
struct PciLinkState {
  double transfers_per_s = 0;
  int width = 0;
  bool speed_downgraded = false;
  bool width_downgraded = false;
  int line = 0;
};

/// ACSCtl of a port: what it does with requests between the devices below it.
struct PciAccessControl {
  bool request_redirect = false;     ///< peer requests go up to the root complex
  bool completion_redirect = false;
  bool upstream_forward = false;
  int line = 0;
};

enum class PciRole { kOther, kGpu, kNic, kNvSwitch, kBridge };

struct PciFunction {
  std::string bus_id;         ///< "0000:06:00.0"
  std::string class_text;     ///< "3D controller"; empty in a tree listing
  std::string text;           ///< vendor and device as printed
  std::string ids;            ///< "10de:20b2"; empty without -nn
  PciRole role = PciRole::kOther;
  std::string port_type;      ///< "Root Port", "Upstream Port", "Downstream Port"; empty when not said
  std::optional<int> secondary_bus;
  std::optional<int> subordinate_bus;
  std::optional<PciLinkState> capability;
  std::optional<PciLinkState> state;
  std::optional<PciAccessControl> access;
  std::optional<int> numa;
  std::string slot;
  int parent = -1;            ///< bridge above, index into functions
  int line = 0;
  std::string alias = {};     ///< name the system gives the device: "mlx5_0", "eth0"; lspci does not say it
  double line_bytes_per_s = 0;  ///< of a NIC's ports, where the system says it

  int domain() const;
  int bus() const;
};

struct PciListing {
  std::vector<PciFunction> functions;
  bool tree = false;          ///< -tv
  bool verbose = false;       ///< link states are present
  std::vector<Note> notes;

  int count(PciRole role) const;
};

Result<PciListing> read_lspci(std::string_view text, const std::string& file);
topology::Host host_of(const PciListing& listing, const std::string& file);

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cluster as directed links with capacities, and the links between any two accelerators.
//
//   Result<Platform> platform = Platform::make(cluster);
//   Fluid fluid(platform->capacities());
//   std::vector<Use> uses;
//   if (auto error = platform->route(0, 9, {.hash = 42}, uses); !error) return error;
//   fluid.start(uses, 1e9);
//
// Links, in this order: of every host its own (those of topology::Host, in their order), each compute NIC's line out
// and in, and where a host's bandwidth was measured that of the host out and in; then the fabric's. Nothing is stored
// per host: numbers of links are computed, only capacities() writes one number per link.
#include <chokepoint/base/result.hpp>
#include <chokepoint/flow/fluid.hpp>
#include <chokepoint/topology/fabric_graph.hpp>
#include <chokepoint/topology/topology.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chokepoint::flow {

/// How packets choose among equally short ways.
enum class Spread {
  kHash,      ///< ECMP: one way for a flow, by its hash
  kAdaptive,  ///< one way, the one with the fewest flows for its capacity when the flow starts
  kSpray,     ///< packets of a flow over all ways equally: parallel links are one trunk
};

enum class LinkClass {
  kNvLink,
  kPcie,
  kMemory,
  kSocket,
  kNicOut,
  kNicIn,
  kHostOut,
  kHostIn,
  kLeafUp,
  kLeafDown,
  kSpineUp,
  kSpineDown,
  kCable
};
std::string_view name(LinkClass kind);

struct PlatformOptions {
  Spread spread = Spread::kHash;
  /// Ports of a switch: a tree with more leaves than a spine has ports gets a core layer, of pods with half as many
  /// leaves. 64: NVIDIA QM9700 (NDR) and Broadcom Tomahawk 4 data sheets.
  int switch_ports = 64;
  /// Messages to a NIC that another GPU sits next to go through that GPU over NVLink where there is one (NCCL's PXN).
  bool through_peers = true;
  /// Attained share of the capacities, by class (protocol overheads; what-if).
  double nvlink_share = 1;
  double pcie_share = 1;  ///< also memory and socket links
  double nic_share = 1;   ///< also a measured host bandwidth
  double fabric_share = 1;
};

struct RouteChoice {
  std::uint64_t hash = 0;        ///< of the flow: the same hash takes the same way
  int from_nic = -1;             ///< compute NIC of the sender's host, by position; -1: chosen
  int to_nic = -1;               ///< the receiver's; -1: the nearest of its GPU
  const Fluid* fluid = nullptr;  ///< whose flows Spread::kAdaptive looks at; without one the hash decides
};

/// Cost of a route: O(links on it), for discovered fabrics also one walk of the fabric for each new destination switch.
/// Not for several threads at once (ways inside hosts are remembered when first asked for); copies are independent.
class Platform {
 public:
  static Result<Platform> make(const topology::Cluster& cluster, const PlatformOptions& options = {});
  /// With the fabric as a listing shows it. Hosts are matched by name where the cluster names each host, else in order;
  /// NICs to the adapters of a host in the order of their names.
  static Result<Platform> make(const topology::Cluster& cluster, const topology::FabricGraph& graph,
                               const PlatformOptions& options = {});
  ~Platform();
  Platform(const Platform& other);
  Platform& operator=(const Platform& other);
  Platform(Platform&& other) noexcept;
  Platform& operator=(Platform&& other) noexcept;

  int gpus() const;
  int hosts() const;
  int host_of(int gpu) const;
  /// Position of the GPU inside its host.
  int local_of(int gpu) const;
  /// Compute NICs of a host, and the nearest one of a GPU by position among them (-1 without any). GPUs that are
  /// equally near to several NICs take turns.
  int nics_of(int host) const;
  int nearest_nic(int gpu) const;
  /// Both under one NVSwitch or joined by direct links, be it over hosts of one NVLink domain.
  bool share_nvlink(int from_gpu, int to_gpu) const;

  std::uint32_t links() const;
  /// Bytes per second by link. Links of unknown bandwidth have kNever (see notes()).
  std::vector<double> capacities() const;
  LinkClass class_of(std::uint32_t link) const;
  /// Host that the link lies in or leaves; -1: the fabric's.
  int host_of_link(std::uint32_t link) const;
  /// "host 3: GPU0 -> NVSwitch0", "leaf 2 -> spine 5".
  std::string name_of(std::uint32_t link) const;
  /// What had to be assumed.
  const std::vector<Note>& notes() const;

  /// Appends the links from one GPU to another; none for a GPU to itself. An error when there is no way.
  Result<void> route(int from_gpu, int to_gpu, const RouteChoice& choice, std::vector<Use>& uses) const;

 private:
  struct State;
  explicit Platform(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace chokepoint::flow

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One graph for the inside of a host, and a description of the fabric that joins hosts. No file formats here.
//
// Links are directed: a PCIe x16 slot is two links. Every bandwidth is payload direction by direction (never the
// vendors' bidirectional sums) and comes in up to three values, each with its origin: what the part is specified for,
// what it trained at, what was measured.
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::topology {

enum class DeviceKind {
  kGpu,
  kNic,
  kNvSwitch,    ///< NVSwitch (or another switch that only GPUs attach to)
  kPcieSwitch,
  kHostBridge,  ///< PCIe root complex; `topo -m` calls a path through one PHB
  kCpu,         ///< NUMA node with its memory
};
std::string_view name(DeviceKind kind);

enum class LinkKind {
  kNvLink,
  kXgmi,     ///< AMD Infinity Fabric between GPUs
  kPcie,
  kMemory,   ///< host bridge <-> its NUMA node
  kSocket,   ///< NUMA node <-> NUMA node (UPI, xGMI, on-die)
};
std::string_view name(LinkKind kind);

/// Bytes per second in one direction. `effective()` prefers measured over negotiated over specified.
struct Bandwidth {
  std::optional<double> specified_bytes_per_s;
  std::optional<double> negotiated_bytes_per_s;
  std::optional<double> measured_bytes_per_s;
  std::string origin;  ///< file or catalogue entry the best value came from; "assumed: ..." when nothing said so

  double effective() const;  ///< 0 when nothing is known
  bool operator==(const Bandwidth&) const = default;
};

struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  std::string name;         ///< "GPU0", "mlx5_0", "NVSwitch0"
  std::string model;        ///< catalogue name or the text found; empty when unknown
  std::string bus_id;       ///< PCI address, empty when unknown
  std::optional<int> numa;  ///< NUMA node
  double line_bytes_per_s = 0;  ///< NICs: line rate of all ports into the fabric, one direction; 0 when unknown
  std::string alias = {};       ///< second name an input gives: "mlx5_0" for NIC0; empty for none
  bool operator==(const Device&) const = default;
};

/// One direction of one connection (possibly several parallel lanes or NVLinks taken together).
struct Link {
  int from = 0;  ///< index into Host::devices
  int to = 0;
  LinkKind kind = LinkKind::kPcie;
  int width = 1;  ///< PCIe lanes or number of NVLinks
  Bandwidth bandwidth;
  bool operator==(const Link&) const = default;
};

/// Path classes in nvidia-smi's words, nearest first.
enum class PathClass { kSelf, kNvLink, kPix, kPxb, kPhb, kNode, kSys, kUnknown };
/// "X", "NV12" (with `nvlinks`), "PIX", ...
std::string path_class_name(PathClass path, int nvlinks = 0);

/// Path class between two devices as an importer read it (it can be finer than the graph can show).
struct DeclaredPath {
  int a = 0;
  int b = 0;
  PathClass path = PathClass::kUnknown;
  int nvlinks = 0;
  bool operator==(const DeclaredPath&) const = default;
};

/// The inside of one host.
struct Host {
  std::string name;
  std::string accelerator;        ///< catalogue name of its GPUs; empty when the input does not say
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<DeclaredPath> declared;
  bool peer_to_peer = true;       ///< GPUs copy to each other over PCIe; false: through host memory (GeForce)
  bool gpudirect_rdma = true;     ///< NICs read GPU memory; false: through host memory
  int nvlink_domain_hosts = 1;    ///< hosts that share one NVSwitch domain (GB200 NVL72: 18)
  int torus_dimensions = 0;       ///< the domain is a torus whose links are drawn as one switch (TPU); 0: no torus
  std::vector<Note> notes;        ///< what the input could not say, and what was assumed instead

  int add_device(Device device);
  /// Adds both directions with the same bandwidth.
  void add_duplex(int a, int b, LinkKind kind, int width, const Bandwidth& bandwidth);
  std::vector<int> of_kind(DeviceKind kind) const;
  std::vector<int> gpus() const { return of_kind(DeviceKind::kGpu); }
  std::vector<int> nics() const { return of_kind(DeviceKind::kNic); }
};

/// Links from one device to another, in order; empty when there is no way.
struct Route {
  std::vector<int> links;     ///< indices into Host::links
  double bytes_per_s = 0;     ///< narrowest link
  bool operator==(const Route&) const = default;
};

/// The way NCCL would take: direct NVLink/xGMI or NVSwitch when there is one, else PCIe by the fewest hops, host memory
/// last. GPUs are end points only: a route never passes through a third GPU.
Route route(const Host& host, int from, int to);

/// Declared class when the importer read one, else derived from the graph.
DeclaredPath path_between(const Host& host, int a, int b);
/// The classes of the paths from one device to several, in their order; cheaper than one after the other.
std::vector<PathClass> path_classes(const Host& host, int from, const std::vector<int>& to);

/// NICs that carry collectives, in device order: those nearest to some GPU as long as one is nearer than across the
/// sockets, else all. Software interfaces (no PCI link) only when there is nothing else.
std::vector<int> compute_nics(const Host& host);

enum class FabricKind { kNone, kSingleSwitch, kFatTree, kRailOptimized };
std::string_view name(FabricKind kind);
enum class Transport { kInfiniBand, kRoce, kTcp, kOmniPath, kSlingshot, kEfa };
std::string_view name(Transport transport);

/// What joins the hosts.
struct Fabric {
  FabricKind kind = FabricKind::kNone;
  Transport transport = Transport::kInfiniBand;
  int hosts_per_leaf = 0;           ///< 0: all hosts under one leaf
  double oversubscription = 1.0;    ///< leaf down-link sum over up-link sum, >= 1
  std::optional<double> node_measured_bytes_per_s;  ///< measured bandwidth of one host into the fabric, all NICs
  std::string origin;
  bool operator==(const Fabric&) const = default;
};

/// Collective bandwidth that was measured on this very cluster, as nccl-tests' bus bandwidth in bytes per second.
/// Where present it replaces what the wiring would give for large messages.
struct MeasuredCollectives {
  std::optional<double> all_reduce, all_gather, reduce_scatter;                    ///< over the whole allocation
  std::optional<double> host_all_reduce, host_all_gather, host_reduce_scatter;     ///< inside one host
  bool operator==(const MeasuredCollectives&) const = default;
};

/// `count` hosts of one kind.
struct HostGroup {
  Host host;
  int count = 1;
};

struct Prices {
  std::optional<double> accelerator_hour_usd;
  std::string date;
};

struct Cluster {
  std::string name;
  std::vector<HostGroup> hosts;   ///< at least one; the first kind sets the pace when kinds differ
  Fabric fabric;
  MeasuredCollectives measured;
  Prices prices;
  std::vector<Note> notes;

  int host_count() const;
  int gpus_per_host() const;      ///< of the first kind
  int gpu_count() const;
};

}  // namespace chokepoint::topology

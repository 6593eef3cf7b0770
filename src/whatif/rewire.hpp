// SPDX-License-Identifier: Apache-2.0
#pragma once
// Edits of a cluster's graph. Each works on every kind of host alike; what was measured on the old wires is scaled with
// them or, where that cannot be told, dropped with a note.
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::whatif {

/// Links by what they join: finer than the kinds, as each can be bought on its own.
enum class LinkClass { kGpuLinks, kGpuSlots, kSwitchUplinks, kNicSlots, kHostMemory, kSockets };
inline constexpr int kLinkClassCount = 6;
std::string_view name(LinkClass link_class);
std::optional<LinkClass> class_of(const topology::Host& host, const topology::Link& link);

void scale(topology::Bandwidth& bandwidth, double factor);
/// Scales all links of a class; false when no host has one.
bool scale_class(topology::Cluster& cluster, LinkClass link_class, double factor);
/// Scales the links of one class at one device; `name` may lead with "HOST/". Number of links touched (both
/// directions).
int scale_device(topology::Cluster& cluster, const std::string& device, LinkClass link_class, double factor);
/// Everything inside the host but the GPUs' own links: a board that much faster.
void scale_board(topology::Cluster& cluster, double factor);
/// Line rate of the NICs that carry collectives.
void scale_nics(topology::Cluster& cluster, double factor);
/// Bytes per second of one such NIC; 0 when none is known.
double nic_bytes_per_s(const topology::Host& host);
/// Bytes per second out of one GPU over NVLink or Infinity Fabric; 0 without.
double gpu_link_bytes_per_s(const topology::Host& host);
/// PCIe slots of another generation, with the memory that sockets of its time have.
Result<bool> set_pcie(topology::Cluster& cluster, int generation);
/// So many NICs per host: further ones sit beside those there are, in turn.
Result<bool> set_nic_count(topology::Cluster& cluster, int count);
/// NVLink bridges between neighbours 0-1, 2-3, ..., or none between any.
Result<bool> set_bridges(topology::Cluster& cluster, const hardware::Accelerator& accelerator, bool fitted);
/// Other accelerators on the same boards: GPU links at the new part's rate, slots at what both sides can.
Result<bool> set_accelerator(topology::Cluster& cluster, const hardware::Accelerator& part, std::vector<Note>& notes);
/// Links that trained or measured below what they are specified for run at their specification. Number mended.
int mend_links(topology::Cluster& cluster);
topology::Host without_devices(const topology::Host& host, const std::vector<int>& devices);

}  // namespace chokepoint::whatif

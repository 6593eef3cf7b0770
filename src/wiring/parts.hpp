// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces that every importer and builder puts into a host.
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/topology/topology.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// Origins of values that nothing in the input supports start so; with_accelerator() replaces them.
inline constexpr std::string_view kAssumed = "assumed: ";
bool is_assumed(const topology::Bandwidth& bandwidth);

topology::Bandwidth specified(double bytes_per_s, std::string origin);
topology::Bandwidth pcie(int generation, int lanes, std::string origin);

/// Between the NUMA nodes of two sockets, for traffic of PCIe devices. Source: the estimates in NCCL's topo.h
/// (Skylake 10, AMD 16, Sapphire Rapids 22 GB/s), by the PCIe generation such hosts have.
double socket_bytes_per_s(int pcie_generation);
/// Adds a NUMA node.
int add_cpu(topology::Host& host, int numa);
/// Adds a host bridge on a NUMA node, joined by the socket's memory bandwidth.
int add_bridge(topology::Host& host, int cpu, int pcie_generation);
int add_switch(topology::Host& host, std::string name, std::optional<int> numa);
/// Joins every pair of NUMA nodes.
void join_sockets(topology::Host& host, const std::vector<int>& cpus, double bytes_per_s, const std::string& origin);
/// NVLink or xGMI, by the vendor of the accelerator.
topology::LinkKind gpu_link_kind(const hardware::Accelerator& accelerator);

Result<topology::FabricKind> parse_fabric_kind(std::string_view text);
Result<topology::Transport> parse_transport(std::string_view text);

}  // namespace chokepoint::wiring

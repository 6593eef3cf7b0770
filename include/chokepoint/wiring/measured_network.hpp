// SPDX-License-Identifier: Apache-2.0
#pragma once
// The JSON that `chokepoint measure --network` writes: docs/formats/measure-network.md.
#include <chokepoint/topology/measured_network.hpp>
#include <chokepoint/topology/topology.hpp>
#include <string>
#include <string_view>

namespace chokepoint::wiring {

inline constexpr std::string_view kMeasuredNetworkSchema = "chokepoint.network/1";

Result<topology::MeasuredNetwork> read_measured_network(std::string_view text, const std::string& file);
std::string to_json(const topology::MeasuredNetwork& network);

/// Cluster of these hosts for the time models: the slowest host's bandwidth, the worst group's oversubscription.
/// The hosts come without devices: what is inside them no network probe sees.
topology::Fabric fabric_of(const topology::MeasuredNetwork& network);

/// Puts what was measured in the place of what the cluster's fabric would give: rate of a host, hosts under one leaf,
/// oversubscription, transport. Notes say where the two know different numbers of hosts, and which hosts are slow.
void use_network(topology::Cluster& cluster, const topology::MeasuredNetwork& network);

}  // namespace chokepoint::wiring

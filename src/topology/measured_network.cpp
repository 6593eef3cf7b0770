// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/topology/measured_network.hpp>

#include <algorithm>
#include <cmath>

namespace chokepoint::topology {
namespace {

double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread spread;
  if (values.empty()) return spread;
  spread.samples = static_cast<int>(values.size());
  spread.median = median_of(values);
  for (double& value : values) value = std::abs(value - spread.median);
  spread.deviation = median_of(values);
  return spread;
}

int MeasuredNetwork::group_of(int host) const {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (std::find(groups[g].hosts.begin(), groups[g].hosts.end(), host) != groups[g].hosts.end()) return static_cast<int>(g);
  }
  return -1;
}

double MeasuredNetwork::frame_bytes_per_byte() const {
  constexpr double kEthernetHeader = 14;
  constexpr double kTcpIpHeaders = 52;
  if (transport != "tcp" || mtu < 576) return 1;
  return (mtu + kEthernetHeader) / (mtu - kTcpIpHeaders);
}

}  // namespace chokepoint::topology

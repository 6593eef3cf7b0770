// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which algorithm and protocol NCCL's own tuner takes, by version. It compares estimates latency + bytes / bandwidth that
// it makes from tables of its source; as a prediction of time these are poor, so only the choice is used.
#include <chokepoint/collective/collective.hpp>
#include <string_view>

namespace chokepoint::collective {

/// What NCCL's topology search hands to its tuner.
struct TunerInput {
  Op op = Op::kAllReduce;
  int ranks = 2;
  int hosts = 1;
  int channels = 2;
  double bus_bytes_per_s = 0;   ///< all channels together, by NCCL's table of link rates; over hosts the narrower of links and NICs
  bool nvlink = false;          ///< ranks of a host reach each other over NVLink alone
  bool nvls = false;            ///< the NVSwitch multicasts and reduces
  bool amd_host = false;        ///< processors of the hosts
  hardware::Architecture architecture = hardware::Architecture::kAmpere;
  NcclVersion nccl = 0;
};

struct Selection {
  std::string_view algorithm;   ///< "ring", "tree", "nvls"
  std::string_view protocol;    ///< "ll", "ll128", "simple"
  double estimate_s = 0;        ///< NCCL's own estimate
};

/// all_to_all and send_recv have no choice to make: "direct".
Selection select(const TunerInput& input, double bytes);

}  // namespace chokepoint::collective

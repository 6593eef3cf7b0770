// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the libraries of this machine know: hwloc, libibverbs, libibnetdisc, NVML, ROCm SMI. Each is opened when it is asked, so the
// program needs none of them, and answers in the words of its own tool, so one importer serves file and machine.
//
//   TRY_INTO(const std::string text, read_library("nvml", {}));   // as `nvidia-smi -q` and `nvidia-smi nvlink -s` say it
//
// A sick driver can hang or crash inside these calls: ask from a process of its own where that must not matter.
#include <chokepoint/base/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

/// "hwloc", "ibverbs", "ibnetdisc", "nvml", "rocm-smi".
const std::vector<std::string_view>& library_names();

/// hwloc: its XML. ibverbs: as `ibv_devinfo -v`. ibnetdisc: as `ibnetdiscover`, from each of `ports` ("mlx5_0:1") that no earlier one reached; from the
/// first active port without any. nvml: as `nvidia-smi -q`, then `nvidia-smi nvlink -s` with each link's far end added.
/// rocm-smi: as `rocm-smi --showtopo`. An error says which library or function is missing and what brings it.
Result<std::string> read_library(std::string_view name, const std::vector<std::string>& ports);

}  // namespace chokepoint::wiring

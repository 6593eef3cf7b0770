// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <fmt/format.h>

namespace chokepoint::hardware {

namespace {
/// One lane, one direction: transfers per second times the share of payload bits of the line code, in bytes. 8b/10b for
/// generations 1 and 2, 128b/130b for 3 to 5, 242 payload bytes in each 256-byte flit for 6.
constexpr double kLaneBytesPerS[] = {
    2.5e9 / 8 * 8 / 10,  5e9 / 8 * 8 / 10,     8e9 / 8 * 128 / 130,
    16e9 / 8 * 128 / 130, 32e9 / 8 * 128 / 130, 64e9 / 8 * 242 / 256,
};
}  // namespace

Result<double> pcie_bytes_per_s(int generation, int lanes) {
  if (generation < 1 || generation > 6) return fail(fmt::format("PCIe generation {} is unknown, expected 1 to 6", generation));
  switch (lanes) {
    case 1:
    case 2:
    case 4:
    case 8:
    case 12:
    case 16:
    case 32: return kLaneBytesPerS[generation - 1] * lanes;
    default: return fail(fmt::format("a PCIe link has 1, 2, 4, 8, 12, 16 or 32 lanes, not {}", lanes));
  }
}

Result<double> nvlink_bytes_per_s(int generation) {
  switch (generation) {
    case 1: return gbyte(20);
    case 2:
    case 3:
    case 4: return gbyte(25);
    case 5: return gbyte(50);
    default: return fail(fmt::format("NVLink generation {} is unknown, expected 1 to 5", generation));
  }
}

double socket_memory_bytes_per_s(int pcie_generation) {
  constexpr double kBytesPerTransfer = 8;
  if (pcie_generation <= 3) return 6 * 2666e6 * kBytesPerTransfer;
  return 8 * (pcie_generation == 4 ? 3200e6 : 4800e6) * kBytesPerTransfer;
}

}  // namespace chokepoint::hardware

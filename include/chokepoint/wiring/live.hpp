// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine this runs on, as Linux shows it under /sys: PCI devices with what their links trained at, NUMA nodes, network
// and InfiniBand ports. No root, no library, nothing changed.
//
//   TRY_INTO(LiveReading reading, read_live("/sys", "node7"));
//   assemble::assemble(std::move(reading.documents));
#include <chokepoint/wiring/document.hpp>
#include <string>
#include <vector>

namespace chokepoint::wiring {

struct LiveReading {
  std::vector<Document> documents;   ///< PCI devices; InfiniBand ports where there are any
  std::vector<std::string> unseen;   ///< what could not be read, and what would show it
  bool infiniband = false;           ///< a port with link layer InfiniBand is active
};

/// `root` stands for /sys; `host_name` marks the documents as those of one host. Cost: a few small files for each device.
Result<LiveReading> read_live(const std::string& root, const std::string& host_name);

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a second file adds to a host that another file already describes.
#include <chokepoint/assemble/assemble.hpp>

namespace chokepoint::assemble {

/// Adds what `document` knows; contradictions go into `assembly`.
void enrich(topology::Host& host, const wiring::Document& document, Assembly& assembly);

/// GPUs of a host by PCI address; entries are empty where the file does not say it.
std::vector<std::string> gpu_addresses(const topology::Host& host);

}  // namespace chokepoint::assemble

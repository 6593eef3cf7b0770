// SPDX-License-Identifier: Apache-2.0
#include "accelerator_name.hpp"
#include "embedded.hpp"

#include <chokepoint/base/lazy_entries.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::hardware {

namespace {

const CatalogueText& catalogue() { return embedded::accelerators; }

Result<bool> read_peaks(const YamlMap& entry, Accelerator& part) {
  TRY_INTO(const YamlMap peak, entry.required_map("peak"));
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto index = static_cast<std::size_t>(i);
    TRY_INTO(const std::optional<double> rate, peak.flop_rate(std::string(name(static_cast<Dtype>(i)))));
    part.peak_flops_per_s[index] = rate.value_or(0);
  }
  return peak.finish();
}

Result<bool> read_links(const YamlMap& entry, Accelerator& part) {
  TRY_INTO(const std::optional<YamlMap> nvlink, entry.map("nvlink"));
  if (nvlink) {
    TRY_INTO(part.nvlinks, nvlink->required_int("links", 1, 64));
    TRY_INTO(part.nvlink_bytes_per_s, nvlink->required_rate("rate"));
    TRY_INTO([[maybe_unused]] const bool ok, nvlink->finish());
  }
  TRY_INTO(const YamlMap pcie, entry.required_map("pcie"));
  TRY_INTO(part.pcie_generation, pcie.required_int("generation", 1, 6));
  TRY_INTO(part.pcie_lanes, pcie.required_int("lanes", 1, 32));
  TRY_INTO(const std::optional<bool> peer, pcie.boolean("peer_to_peer"));
  part.pcie_peer_to_peer = peer.value_or(true);
  return pcie.finish();
}

Result<Accelerator> read_accelerator(std::size_t index) {
  TRY_INTO(const YamlMap entry, catalogue().parse(index));
  Accelerator part;
  TRY_INTO(part.name, entry.required_text("name"));
  TRY_INTO(part.aliases, entry.texts("aliases"));
  TRY_INTO(part.families, entry.texts("family"));
  TRY_INTO(part.form, entry.required_text("form"));
  TRY_INTO(part.vendor, entry.required_text("vendor"));
  TRY_INTO(const std::string architecture, entry.required_text("architecture"));
  TRY_INTO(part.architecture, parse_architecture(architecture));
  TRY_INTO(part.compute_units, entry.required_int("units", 1, 10000));
  TRY_INTO(part.memory_bytes, entry.required_bytes("memory"));
  TRY_INTO(part.memory_bytes_per_s, entry.required_rate("memory_bandwidth"));
  TRY_INTO([[maybe_unused]] const bool peaks, read_peaks(entry, part));
  TRY_INTO(const std::optional<double> power, entry.number("power_w", 1, 10000));
  part.power_w = power.value_or(0);
  TRY_INTO([[maybe_unused]] const bool links, read_links(entry, part));
  TRY_INTO(const std::optional<double> host_link, entry.rate("host_link"));
  part.host_link_bytes_per_s = host_link.value_or(0);
  TRY_INTO(part.source, entry.required_text("source"));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return part;
}

Accelerator made_or_abort(std::size_t index) {
  auto part = read_accelerator(index);
  if (!part) broken_catalogue(part.error());
  return *std::move(part);
}

const Accelerator& entry_or_abort(std::size_t index) {
  static LazyEntries<Accelerator> entries(catalogue().size(), made_or_abort);
  return entries.at(index);
}

/// First member of the family that fits the stated form and has the stated memory: vendors round capacity by a few per
/// cent ("H100-95GB" is a 94 or 96 GB board), so the nearest within a tenth is meant.
std::optional<std::size_t> find_by_family(const SpelledAccelerator& spelled) {
  constexpr double kMemoryTolerance = 0.1;
  std::optional<std::size_t> best;
  double best_distance = kMemoryTolerance;
  for (std::size_t i = 0; i < catalogue().size(); ++i) {
    const std::vector<std::string> families = catalogue().header(i, "family");
    if (std::find(families.begin(), families.end(), spelled.family) == families.end()) continue;
    if (spelled.form && catalogue().header(i, "form").front() != *spelled.form) continue;
    if (!spelled.memory_gb) return i;
    const double memory_gib = parse_bytes(catalogue().header(i, "memory").front()).value_or(0) / kGiB;
    const double distance = std::abs(*spelled.memory_gb / memory_gib - 1);
    if (distance < best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace

Result<Accelerator> find_accelerator(std::string_view name) {
  if (const auto exact = catalogue().find(name)) return entry_or_abort(*exact);
  const SpelledAccelerator spelled = read_spelling(name);
  if (const auto plain = catalogue().find(spelled.plain)) return entry_or_abort(*plain);
  if (const auto member = find_by_family(spelled)) return entry_or_abort(*member);
  return catalogue().unknown("accelerator", name, "accelerators");
}

const std::vector<Accelerator>& accelerators() {
  static const std::vector<Accelerator> kAll = [] {
    std::vector<Accelerator> all;
    for (std::size_t i = 0; i < catalogue().size(); ++i) all.push_back(entry_or_abort(i));
    return all;
  }();
  return kAll;
}

}  // namespace chokepoint::hardware

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prices: a dated list that users edit (docs/formats/prices.md), and what an hour of a cluster costs by it.
#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::whatif {

/// Where a figure comes from and how old it is.
struct PriceTag {
  std::string date;  ///< "2026-05-22"
  std::string source;
  bool estimate = false;  ///< no public price was found
};

struct Rent {
  std::string accelerator;     ///< catalogue name
  std::string provider_class;  ///< "hyperscaler", "specialist", "marketplace", or the user's own word
  double usd_per_hour = 0;
  PriceTag tag;
};

struct OwnedHost {
  std::string accelerator;
  double usd_per_accelerator = 0;
  double facility_usd_per_accelerator = 0;
  double power_w = 0;  ///< at the wall, per accelerator with its share of the host
  PriceTag tag;
};

struct Owned {
  double amortisation_years = 4;
  double pue = 1.5;
  double usd_per_kwh = 0.1;
  double cooling_usd_per_kwh = 0;
  double power_over_board = 1.8;
  std::string source;
  std::vector<OwnedHost> hosts;
};

/// A part of the network by the rate of its port.
struct NetworkPart {
  double bytes_per_s = 0;
  int ports = 1;  ///< switches
  double usd = 0;
  double power_w = 0;
  PriceTag tag;
};

struct Prices {
  std::string file;  ///< empty: the shipped list
  std::string date;
  std::vector<Rent> rent;
  Owned owned;
  std::vector<NetworkPart> nics, switches, links;
  std::optional<NetworkPart> bridge;
  double egress_usd_per_gb = 0;      ///< for taking the last checkpoint of a run out; 0 leaves it out
  double engineer_usd_per_hour = 0;  ///< of the people who mind the job, per hour that it runs; 0 leaves it out
};

/// The list compiled into the library.
const Prices& shipped_prices();
Result<Prices> read_prices(std::string_view text, const std::string& file);

/// Days from one date to another; no value when either is not YYYY-MM-DD (or YYYY-MM).
std::optional<long> days_between(std::string_view from, std::string_view to);

/// How an hour is paid.
struct Basis {
  enum class Kind { kRent, kOwned, kGiven } kind = Kind::kRent;
  std::string provider_class = "specialist";
  double usd_per_hour = 0;  ///< kGiven
};

/// Price of an hour of one accelerator with everything it needs.
struct HourlyPrice {
  double usd = 0;
  double running_usd = 0;  ///< owned: electricity alone; else the same as usd
  std::string what;        ///< "rented from a specialist", "owned: 4 years, ..."
  PriceTag tag;
};

}  // namespace chokepoint::whatif

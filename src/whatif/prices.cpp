// SPDX-License-Identifier: Apache-2.0
// Reads a price list: strict keys, every figure with a date and a source.
#include <chokepoint/whatif/prices.hpp>

#include <array>
#include <chokepoint/base/catalogue_text.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <fmt/format.h>
#include <tuple>

namespace chokepoint::embedded {
extern const CatalogueText prices;
}

namespace chokepoint::whatif {

namespace {

constexpr double kMostUsd = 1e9;
constexpr double kMostWatts = 1e6;
constexpr int kMostPorts = 4096;

struct Date {
  int year = 0, month = 1, day = 1;
};

std::optional<Date> parse_date(std::string_view text) {
  const std::vector<std::string_view> parts = split(trim(text), '-');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  const auto year = to_int(parts[0]);
  const auto month = to_int(parts[1]);
  const auto day = parts.size() == 3 ? to_int(parts[2]) : std::optional<int>(1);
  if (!year || !month || !day || *year < 1900 || *year > 9999 || *month < 1 || *month > 12 || *day < 1 || *day > 31)
    return std::nullopt;
  return Date{*year, *month, *day};
}

/// Days since 0000-03-01 in the proleptic Gregorian calendar: years of 365.2425 days that begin in March.
long day_number(const Date& date) {
  const long year = date.month > 2 ? date.year : date.year - 1;
  const long month = (date.month + 9) % 12;
  return 365 * year + year / 4 - year / 100 + year / 400 + (306 * month + 5) / 10 + date.day - 1;
}

Result<PriceTag> read_tag(const YamlMap& map) {
  PriceTag tag;
  TRY_INTO(tag.date, map.required_text("date"));
  if (!parse_date(tag.date))
    return fail(fmt::format("date is '{}', expected a day such as 2026-05-22", tag.date), map.position("date"));
  TRY_INTO(tag.source, map.required_text("source"));
  TRY_INTO(const auto estimate, map.boolean("estimate"));
  tag.estimate = estimate.value_or(false);
  return tag;
}

Result<std::string> read_accelerator(const YamlMap& map) {
  TRY_INTO(const std::string text, map.required_text("accelerator"));
  Result<hardware::Accelerator> part = hardware::find_accelerator(text);
  if (part) return part->name;
  part.error().pos = map.position("accelerator");
  return tl::make_unexpected(part.error());
}

Result<bool> read_rent(const YamlMap& map, Prices& out) {
  TRY_INTO(const auto entries, map.maps("rent"));
  for (const YamlMap& entry : entries) {
    Rent rent;
    TRY_INTO(rent.accelerator, read_accelerator(entry));
    TRY_INTO(rent.provider_class, entry.required_text("class"));
    TRY_INTO(rent.usd_per_hour, entry.required_number("usd_per_hour", 0, 1e5));
    TRY_INTO(rent.tag, read_tag(entry));
    TRY_INTO([[maybe_unused]] const bool done, entry.finish());
    for (const Rent& other : out.rent) {
      if (other.accelerator != rent.accelerator || other.provider_class != rent.provider_class) continue;
      return fail(fmt::format("{} has two prices in class '{}'", rent.accelerator, rent.provider_class),
                  entry.position(), {"keep one, or give the other a class of its own"});
    }
    out.rent.push_back(std::move(rent));
  }
  return true;
}

Result<bool> read_owned_hosts(const YamlMap& map, Owned& out) {
  TRY_INTO(const auto entries, map.maps("hosts"));
  for (const YamlMap& entry : entries) {
    OwnedHost host;
    TRY_INTO(host.accelerator, read_accelerator(entry));
    TRY_INTO(host.usd_per_accelerator, entry.required_number("usd_per_accelerator", 0, kMostUsd));
    TRY_INTO(const auto facility, entry.number("facility_usd_per_accelerator", 0, kMostUsd));
    host.facility_usd_per_accelerator = facility.value_or(0);
    TRY_INTO(host.power_w, entry.required_number("power_w", 0, kMostWatts));
    TRY_INTO(host.tag, read_tag(entry));
    TRY_INTO([[maybe_unused]] const bool done, entry.finish());
    out.hosts.push_back(std::move(host));
  }
  return true;
}

Result<bool> read_owned(const YamlMap& map, Owned& out) {
  TRY_INTO(const auto owned, map.map("owned"));
  if (!owned) return true;
  const std::array<std::tuple<const char*, double*, double, double>, 5> fields = {
      {{"amortisation_years", &out.amortisation_years, 0.1, 50},
       {"pue", &out.pue, 1, 10},
       {"usd_per_kwh", &out.usd_per_kwh, 0, 100},
       {"cooling_usd_per_kwh", &out.cooling_usd_per_kwh, 0, 100},
       {"power_over_board", &out.power_over_board, 1, 10}}};
  for (const auto& [key, field, low, high] : fields) {
    TRY_INTO(const auto value, owned->number(key, low, high));
    if (value) *field = *value;
  }
  TRY_INTO(const auto source, owned->text("source"));
  out.source = source.value_or("");
  TRY_INTO([[maybe_unused]] const bool hosts, read_owned_hosts(*owned, out));
  return owned->finish();
}

Result<NetworkPart> read_part(const YamlMap& entry, bool rated, bool ports) {
  NetworkPart part;
  if (rated) {
    TRY_INTO(part.bytes_per_s, entry.required_rate("rate"));
  }
  if (ports) {
    TRY_INTO(part.ports, entry.required_int("ports", 2, kMostPorts));
  }
  TRY_INTO(part.usd, entry.required_number("usd", 0, kMostUsd));
  TRY_INTO(const auto power, entry.number("power_w", 0, kMostWatts));
  part.power_w = power.value_or(0);
  TRY_INTO(part.tag, read_tag(entry));
  TRY_INTO([[maybe_unused]] const bool done, entry.finish());
  return part;
}

Result<bool> read_network(const YamlMap& map, Prices& out) {
  TRY_INTO(const auto network, map.map("network"));
  if (!network) return true;
  for (const auto& [key, list] :
       {std::pair{"nics", &out.nics}, std::pair{"switches", &out.switches}, std::pair{"links", &out.links}}) {
    TRY_INTO(const auto entries, network->maps(key));
    for (const YamlMap& entry : entries) {
      TRY_INTO(NetworkPart part, read_part(entry, true, list == &out.switches));
      if (!(part.bytes_per_s > 0)) return fail("rate is 0, expected the rate of a port", entry.position("rate"));
      list->push_back(std::move(part));
    }
  }
  TRY_INTO(const auto bridge, network->map("bridge"));
  if (bridge) {
    TRY_INTO(out.bridge, read_part(*bridge, false, false));
  }
  return network->finish();
}

Result<Prices> read_map(const YamlMap& map) {
  Prices out;
  TRY_INTO(out.date, map.required_text("date"));
  if (!parse_date(out.date))
    return fail(fmt::format("date is '{}', expected a day such as 2026-05-22", out.date), map.position("date"));
  TRY_INTO([[maybe_unused]] const bool rent, read_rent(map, out));
  TRY_INTO([[maybe_unused]] const bool owned, read_owned(map, out.owned));
  TRY_INTO([[maybe_unused]] const bool network, read_network(map, out));
  TRY_INTO(const auto egress, map.number("egress_usd_per_gb", 0, kMostUsd));
  TRY_INTO(const auto engineer, map.number("engineer_usd_per_hour", 0, kMostUsd));
  out.egress_usd_per_gb = egress.value_or(0);
  out.engineer_usd_per_hour = engineer.value_or(0);
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return out;
}

}  // namespace

std::optional<long> days_between(std::string_view from, std::string_view to) {
  const auto a = parse_date(from);
  const auto b = parse_date(to);
  if (!a || !b) return std::nullopt;
  return day_number(*b) - day_number(*a);
}

Result<Prices> read_prices(std::string_view text, const std::string& file) {
  TRY_INTO(const YamlMap map, YamlMap::parse(text, file));
  TRY_INTO(Prices prices, read_map(map));
  prices.file = file;
  return prices;
}

const Prices& shipped_prices() {
  static const Prices kPrices = [] {
    Result<YamlMap> map = embedded::prices.parse(0);
    if (!map) broken_catalogue(map.error());
    Result<Prices> prices = read_map(*map);
    if (!prices) broken_catalogue(prices.error());
    return *prices;
  }();
  return kPrices;
}

}  // namespace chokepoint::whatif

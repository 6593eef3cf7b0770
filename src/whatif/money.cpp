// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/whatif/money.hpp>

#include <algorithm>
#include <chokepoint/base/units.hpp>
#include <fmt/format.h>

namespace chokepoint::whatif {

using simulate::Bill;
using simulate::Prediction;

namespace {

constexpr double kHour = 3600;
constexpr double kDay = 86400;
constexpr double kHoursPerYear = 8766;  ///< of 365.25 days

std::optional<HourlyPrice> owned_price(const parallel::Job& job, const Prices& prices, std::string& why) {
  const Owned& owned = prices.owned;
  const auto host = std::find_if(owned.hosts.begin(), owned.hosts.end(),
                                 [&](const OwnedHost& h) { return h.accelerator == job.accelerator.name; });
  if (host == owned.hosts.end()) {
    why = fmt::format("the price list has no owned host for {}", job.accelerator.name);
    return std::nullopt;
  }
  const BillOfMaterials network = network_parts(job.cluster, job.accelerator, prices);
  const double count = std::max(1, job.cluster.gpu_count());
  // Hosts are priced with their NICs: only what joins them comes on top.
  double joining_usd = 0;
  for (const Item& item : network.items) {
    if (!item.what.starts_with("NIC")) joining_usd += item.count * item.usd_each.value_or(0);
  }
  const double capital = host->usd_per_accelerator + host->facility_usd_per_accelerator + joining_usd / count;
  // A changed power limit moves the board's share of what the host draws at the wall.
  double limit_moved_w = 0;
  if (const auto shipped = hardware::find_accelerator(job.accelerator.name); shipped && shipped->power_w > 0)
    limit_moved_w = (job.accelerator.power_w - shipped->power_w) * owned.power_over_board;
  const double power = std::max(0.0, host->power_w + limit_moved_w) + network.power_w() / count;
  HourlyPrice price;
  price.running_usd = power / 1000 * (owned.pue * owned.usd_per_kwh + owned.cooling_usd_per_kwh);
  price.usd = capital / (owned.amortisation_years * kHoursPerYear) + price.running_usd;
  price.what = fmt::format("owned: {:.0f} USD an accelerator over {:g} years, {:.0f} W at PUE {:g} and {:g} USD/kWh",
                           capital, owned.amortisation_years, power, owned.pue, owned.usd_per_kwh);
  price.tag = host->tag;
  return price;
}

std::optional<HourlyPrice> given_price(double usd, std::string what, PriceTag tag) {
  HourlyPrice price;
  price.usd = price.running_usd = usd;
  price.what = std::move(what);
  price.tag = std::move(tag);
  return price;
}

}  // namespace

std::optional<HourlyPrice> hourly_price(const parallel::Job& job, const Prices& prices, const Basis& basis,
                                        std::string& why) {
  why.clear();
  if (basis.kind == Basis::Kind::kGiven)
    return given_price(basis.usd_per_hour, "given with --price", {"", "your own", false});
  if (basis.kind == Basis::Kind::kOwned) return owned_price(job, prices, why);
  const topology::Prices& own = job.cluster.prices;
  if (own.accelerator_hour_usd)
    return given_price(*own.accelerator_hour_usd, "the job's own price", {own.date, "job or cluster file", false});
  for (const Rent& rent : prices.rent) {
    if (rent.accelerator != job.accelerator.name || rent.provider_class != basis.provider_class) continue;
    return given_price(rent.usd_per_hour, "rented, " + rent.provider_class, rent.tag);
  }
  why =
      fmt::format("the price list has no rented hour of {} in class '{}'", job.accelerator.name, basis.provider_class);
  return std::nullopt;
}

Money money_of(const parallel::Job& job, const Prediction& p, const HourlyPrice& price, double goodput, double tokens) {
  Money out;
  out.price = price;
  const double per_second = price.usd * job.gpus / kHour;
  out.usd_per_day = per_second * kDay;
  out.usd_per_step = per_second * p.step_time_s / goodput;
  out.usd_per_billion_tokens = out.usd_per_step / tokens_per_step(job) * 1e9;
  if (tokens > 0) {
    out.run_s = tokens / tokens_per_step(job) * p.step_time_s / goodput;
    out.run_usd = *out.run_s * per_second;
  }
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const auto item = static_cast<Bill>(i);
    if (item == Bill::kCompute || p.item(item) <= 0) continue;
    out.idle.push_back({std::string(simulate::name(item)), out.usd_per_day * goodput * p.item(item) / p.step_time_s});
  }
  if (goodput < 1) out.idle.push_back({"failures and checkpoints", out.usd_per_day * (1 - goodput)});
  std::stable_sort(out.idle.begin(), out.idle.end(),
                   [](const IdleMoney& a, const IdleMoney& b) { return a.usd_per_day > b.usd_per_day; });
  return out;
}

void add_spares(Money& money, const parallel::Job& job, int spare_hosts) {
  const double spares = static_cast<double>(spare_hosts) * std::max(1, job.cluster.gpus_per_host());
  if (spares <= 0 || job.gpus <= 0) return;
  const double factor = 1 + spares / job.gpus;
  money.spares_usd_per_day = money.usd_per_day * (factor - 1);
  for (double* usd : {&money.usd_per_step, &money.usd_per_billion_tokens, &money.usd_per_day}) *usd *= factor;
  if (money.run_usd) *money.run_usd *= factor;
  const IdleMoney standing_by{"spare hosts", money.spares_usd_per_day};
  const auto place = std::find_if(money.idle.begin(), money.idle.end(),
                                  [&](const IdleMoney& one) { return one.usd_per_day < standing_by.usd_per_day; });
  money.idle.insert(place, standing_by);
}

void add_surcharges(Money& money, const parallel::Job& job, const Prices& prices, double checkpoint_bytes) {
  const double accelerators_per_hour = money.price.usd * job.gpus;
  if (prices.engineer_usd_per_hour > 0 && accelerators_per_hour > 0) {
    const double factor = 1 + prices.engineer_usd_per_hour / accelerators_per_hour;
    for (double* usd : {&money.usd_per_step, &money.usd_per_billion_tokens, &money.usd_per_day}) *usd *= factor;
    if (money.run_usd) *money.run_usd *= factor;
    for (IdleMoney& one : money.idle) one.usd_per_day *= factor;
  }
  if (money.run_usd) *money.run_usd += checkpoint_bytes * 1e-9 * prices.egress_usd_per_gb;
}

double usd_per_hour(const parallel::Job& job, double accelerator_hour_usd, const Footing& footing) {
  return (accelerator_hour_usd * job.gpus + footing.people_usd_per_hour) * footing.spares;
}

Payback payback(const parallel::Job& before, const Prediction& a, const HourlyPrice& price_before,
                const parallel::Job& after, const Prediction& b, const HourlyPrice& price_after, double purchase_usd,
                const Footing& footing_before, const Footing& footing_after) {
  Payback out;
  out.purchase_usd = purchase_usd;
  // The same tokens a day as before take `busy` of a day after; parts bought are counted in the purchase, so the hour
  // of the accelerators that were there keeps its price. A changed accelerator has the price of its own hour to run.
  const double rate_before = tokens_per_step(before) / a.step_time_s * footing_before.goodput;
  const double rate_after = tokens_per_step(after) / b.step_time_s * footing_after.goodput;
  const double busy = rate_after > 0 ? rate_before / rate_after : 1;
  const bool same_part = before.accelerator.name == after.accelerator.name;
  const double hour_after = same_part ? price_before.usd : price_after.running_usd;
  out.saved_usd_per_day = 24 * (usd_per_hour(before, price_before.usd, footing_before) -
                                busy * usd_per_hour(after, hour_after, footing_after));
  if (out.saved_usd_per_day > 0) out.days = purchase_usd / out.saved_usd_per_day;
  return out;
}

}  // namespace chokepoint::whatif

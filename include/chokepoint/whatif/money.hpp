// SPDX-License-Identifier: Apache-2.0
#pragma once
// Step times as money: per step, per token, per run; what idle classes of the bill cost a day; what a purchase costs,
// from the parts of the network up, and how soon it pays for itself.
#include <chokepoint/whatif/evaluate.hpp>
#include <chokepoint/whatif/prices.hpp>
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::whatif {

/// Switches and links of a folded Clos network for so many end points. Three levels at most.
struct FatTree {
  int levels = 0;  ///< 0: nothing to join, 1: one switch
  double leaves = 0, spines = 0, cores = 0;
  double host_links = 0, leaf_links = 0, core_links = 0;  ///< down to hosts, leaf to spine, spine to core
  bool reachable = true;                                  ///< false: more end points than three levels join
  double switches() const { return leaves + spines + cores; }
  double links() const { return host_links + leaf_links + core_links; }
};
/// `oversubscription`: down-links of a leaf over its up-links. `rails`: NICs of a host that each have their own leaves;
/// 1 for leaves that take all NICs of a host.
FatTree fat_tree(double end_points, int ports, double oversubscription, int rails = 1);

struct Item {
  std::string what;  ///< "NIC 400 Gb/s"
  double count = 0;
  std::optional<double> usd_each;
  double power_w_each = 0;
  PriceTag tag;
};
struct BillOfMaterials {
  std::vector<Item> items;
  std::vector<std::string> missing;  ///< parts without a price
  double usd() const;
  double power_w() const;
};
/// NICs, switches, links and bridges of a cluster.
BillOfMaterials network_parts(const topology::Cluster& cluster, const hardware::Accelerator& accelerator,
                              const Prices& prices);
/// Hosts and network.
BillOfMaterials all_parts(const parallel::Job& job, const Prices& prices);
/// What `after` has that `before` has not: the purchase that the change stands for.
BillOfMaterials purchase(const BillOfMaterials& before, const BillOfMaterials& after);

/// No value where the list has no price; `why` then says how to give one.
std::optional<HourlyPrice> hourly_price(const parallel::Job& job, const Prices& prices, const Basis& basis,
                                        std::string& why);

struct IdleMoney {
  std::string name;  ///< class of the bill, or "failures and checkpoints"
  double usd_per_day = 0;
};

struct Money {
  HourlyPrice price;
  double usd_per_step = 0;
  double usd_per_billion_tokens = 0;
  double usd_per_day = 0;       ///< of all accelerators, spare hosts included
  double spares_usd_per_day = 0;
  std::optional<double> run_s;  ///< to the tokens asked for, goodput counted
  std::optional<double> run_usd;
  std::vector<IdleMoney> idle;  ///< classes that compute nothing new, dearest first
};
/// `goodput`: share of the time that trains (1: no failures). `tokens`: length of the run, 0 when not asked.
Money money_of(const parallel::Job& job, const simulate::Prediction& prediction, const HourlyPrice& price,
               double goodput, double tokens);
/// Adds hosts that stand by for those that fail: they cost the same hour and train nothing.
void add_spares(Money& money, const parallel::Job& job, int spare_hosts);
/// Adds what the list charges beside the accelerators: people to every hour, egress of the last checkpoint to a run.
void add_surcharges(Money& money, const parallel::Job& job, const Prices& prices, double checkpoint_bytes);

/// On what footing an hour of a job is counted: what of it trains, and what is paid beside its accelerators.
struct Footing {
  double goodput = 1;              ///< share of the time that trains
  double spares = 1;               ///< hosts paid for over hosts used
  double people_usd_per_hour = 0;
};
/// What an hour of the job costs at this price, on its footing.
double usd_per_hour(const parallel::Job& job, double accelerator_hour_usd, const Footing& footing);

/// What a change saves on the same useful work, and how soon that pays for the parts bought.
struct Payback {
  double purchase_usd = 0;
  double saved_usd_per_day = 0;  ///< at the running price of the accelerators before
  std::optional<double> days;    ///< none when nothing is saved
};
Payback payback(const parallel::Job& before, const simulate::Prediction& a, const HourlyPrice& price_before,
                const parallel::Job& after, const simulate::Prediction& b, const HourlyPrice& price_after,
                double purchase_usd, const Footing& footing_before = {}, const Footing& footing_after = {});

}  // namespace chokepoint::whatif

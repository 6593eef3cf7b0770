// SPDX-License-Identifier: Apache-2.0
#include "shapley.hpp"

#include <bit>

namespace chokepoint::diagnose {

std::vector<double> shapley(int players, const std::function<double(unsigned)>& time_without) {
  const unsigned all = 1u << players;
  std::vector<double> time(all);
  for (unsigned mask = 0; mask < all; ++mask) time[mask] = time_without(mask);
  // Weight of a coalition of k others among n players: k! (n-1-k)! / n!.
  std::vector<double> weight(static_cast<std::size_t>(players), 1.0 / players);
  for (int k = 1; k < players; ++k) {
    weight[static_cast<std::size_t>(k)] = weight[static_cast<std::size_t>(k) - 1] * k / (players - k);
  }
  std::vector<double> value(static_cast<std::size_t>(players), 0);
  for (int p = 0; p < players; ++p) {
    const unsigned bit = 1u << p;
    for (unsigned mask = 0; mask < all; ++mask) {
      if ((mask & bit) != 0) continue;
      value[static_cast<std::size_t>(p)] += weight[static_cast<std::size_t>(std::popcount(mask))] * (time[mask] - time[mask | bit]);
    }
  }
  return value;
}

}  // namespace chokepoint::diagnose

// SPDX-License-Identifier: Apache-2.0
#pragma once
// `predict --timed PLAN --network NET`: steps whose computations take given times, on a measured network.
#include <string>

#include "commands.hpp"

namespace chokepoint::commands {

struct TimedOptions {
  std::string plan;
  std::string network;   ///< the job options' --network
};
void add_timed_options(CLI::App& command, TimedOptions& options);
int predict_timed(const TimedOptions& options, const CommonOptions& common);

}  // namespace chokepoint::commands

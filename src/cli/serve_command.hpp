// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chokepoint/commands/run.hpp>

namespace chokepoint::cli {

/// `serve`, and the hidden command that its processes run.
void add_serve(CLI::App& app, commands::Action& action);

}  // namespace chokepoint::cli

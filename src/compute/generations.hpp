// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the constants of each accelerator generation come from; their values are default_generations().
#include <chokepoint/compute/constants.hpp>

namespace chokepoint::compute {

const char* generation_source(hardware::Architecture architecture);

}  // namespace chokepoint::compute

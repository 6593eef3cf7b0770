// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the constants of each family and generation come from; their values are default_families() and
// default_sustained().
#include <chokepoint/compute/constants.hpp>

namespace chokepoint::compute {

struct Origin {
  const char* source;
  ParameterKind kind;
};

Origin sustained_origin(hardware::Architecture architecture);

}  // namespace chokepoint::compute

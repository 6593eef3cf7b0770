// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fitted or published constant of the model, as `chokepoint validate --parameters` lists it.
#include <string>

namespace chokepoint {

struct Parameter {
  std::string name;    ///< dotted, e.g. "collective.nvlink_efficiency"
  double value = 0;
  std::string unit;    ///< "" for a plain ratio
  std::string source;  ///< data sheet, paper and table, or the microbenchmark it was fitted on
};

}  // namespace chokepoint

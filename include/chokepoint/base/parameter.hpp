// SPDX-License-Identifier: Apache-2.0
#pragma once
// A constant of the model, as `chokepoint validate --parameters` lists it and as fits and calibration vary it.
#include <string>

namespace chokepoint {

/// Where a value comes from, which says who may change it.
enum class ParameterKind {
  kFitted,     ///< free: set by a fit on measurements
  kPublished,  ///< read from a data sheet, a paper's table or a library's source
  kCounted,    ///< counted from operators or code
  kEstimate,   ///< nobody measured it yet
  kMachine,    ///< 1 for the model; only a calibration of one machine moves it
};

inline constexpr const char* name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kFitted: return "fitted";
    case ParameterKind::kPublished: return "published";
    case ParameterKind::kCounted: return "counted";
    case ParameterKind::kEstimate: return "estimate";
    case ParameterKind::kMachine: return "machine";
  }
  return "?";
}

struct Parameter {
  std::string name;    ///< dotted, e.g. "collective.nvlink_efficiency"
  double value = 0;
  std::string unit;    ///< "" for a plain ratio
  std::string source;  ///< data sheet, paper and table, or the microbenchmark it was fitted on
  ParameterKind kind = ParameterKind::kFitted;
  /// Prior standard deviation of the logarithm: how far a machine or a fit may move the value. 0: fixed.
  double log_sigma = 0;
};

/// A parameter inside a set of constants that a fit or a profile may write. Valid as long as that set.
struct ParameterRef {
  Parameter info;  ///< `info.value` is the value when the reference was made
  double* value = nullptr;
};

}  // namespace chokepoint

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors as values, for callers that do not print them.
#include <chokepoint/base/result.hpp>
#include <optional>

namespace chokepoint::commands {

/// While it lives, report_error on this thread puts the error into `into` and prints nothing.
class KeepError {
 public:
  explicit KeepError(std::optional<Error>& into);
  ~KeepError();
  KeepError(const KeepError&) = delete;
  KeepError& operator=(const KeepError&) = delete;

 private:
  std::optional<Error>* before_;
};

}  // namespace chokepoint::commands

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which branch of an `if` a script takes, where its own variables say so: [ $AC = sel ], [[ $N -gt 8 ]], test, true.
#include <optional>
#include <string>
#include <vector>

namespace chokepoint::frameworks {

/// Words of a condition, variables replaced where they are set. No value where an unknown variable or a command decides.
std::optional<bool> condition(const std::vector<std::string>& words);

/// The branch an assignment or a command stands in.
enum class Branch { kTaken, kOpen, kSkipped };

/// Nested `if ... elif ... else ... fi`, and `[ ... ] && command`.
class Branches {
 public:
  /// Of what comes next: skipped if any level is, open if any is, else taken.
  Branch now() const;
  void begin(std::optional<bool> truth) { levels_.push_back({state_of(truth), truth == true, !truth}); }
  void begin_open() { levels_.push_back({Branch::kOpen, false, true}); }
  void next(std::optional<bool> truth);
  void otherwise() { next(true); }
  void end();
  /// The next command alone depends on this.
  void guard(std::optional<bool> truth) { guard_ = state_of(truth); }
  void drop_guard() { guard_ = Branch::kTaken; }

 private:
  struct Level {
    Branch state;
    bool done;  ///< an earlier branch was taken
    bool open;  ///< an earlier condition was not known
  };
  static Branch state_of(std::optional<bool> truth) { return !truth ? Branch::kOpen : *truth ? Branch::kTaken : Branch::kSkipped; }
  std::vector<Level> levels_;
  Branch guard_ = Branch::kTaken;
};

}  // namespace chokepoint::frameworks

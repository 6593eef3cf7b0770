// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ctrl-C as a wish for what is done so far.

namespace chokepoint::commands {

/// While it lives, the first Ctrl-C is noted and the second ends the program. Not inside a request to the service, whose
/// caller has its own ways.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool watching() const { return watching_; }
  static bool asked();

 private:
  bool watching_ = false;
};

/// A line of progress on standard error that overwrites itself.
bool progress_shows(bool quiet);

}  // namespace chokepoint::commands

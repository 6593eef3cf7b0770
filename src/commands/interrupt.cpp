// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <chokepoint/base/memory_files.hpp>

#include <csignal>
#include <unistd.h>

namespace chokepoint::commands {

namespace {

/// The one thing a signal handler may touch.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends the program
}

}  // namespace

Interrupt::Interrupt() {
  if (memory_files() != nullptr) return;
  interrupted = 0;
  watching_ = true;
  std::signal(SIGINT, note_interrupt);
}

Interrupt::~Interrupt() {
  if (watching_) std::signal(SIGINT, SIG_DFL);
}

bool Interrupt::asked() { return interrupted != 0; }

bool progress_shows(bool quiet) { return !quiet && isatty(STDERR_FILENO) == 1; }

}  // namespace chokepoint::commands

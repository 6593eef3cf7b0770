// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/progress.hpp>

#include <algorithm>

namespace chokepoint {
namespace {

/// What the innermost round of this thread stands for, and who listens.
struct Current {
  std::function<void(double)> listener;
  std::function<bool()> stop;
  double low = 0;
  double high = 1;
};
thread_local Current current;

}  // namespace

ProgressListener::ProgressListener(std::function<void(double)> listener, std::function<bool()> stop)
    : before_(std::move(current.listener)), stop_before_(std::move(current.stop)), low_(current.low), high_(current.high) {
  current = {std::move(listener), std::move(stop), 0, 1};
}
ProgressListener::~ProgressListener() { current = {std::move(before_), std::move(stop_before_), low_, high_}; }

bool stop_requested() { return current.stop && current.stop(); }

ProgressLoop::ProgressLoop(std::size_t rounds) : rounds_(std::max<std::size_t>(1, rounds)), low_(current.low), high_(current.high) {}
ProgressLoop::~ProgressLoop() {
  current.low = low_;
  current.high = high_;
}

ProgressLoop::Round::Round(ProgressLoop& loop) : loop_(loop) {
  const double part = (loop.high_ - loop.low_) / static_cast<double>(loop.rounds_);
  current.low = loop.low_ + part * static_cast<double>(std::min(loop.done_, loop.rounds_ - 1));
  current.high = current.low + part;
}

ProgressLoop::Round::~Round() {
  ++loop_.done_;
  current.low = current.high;
  if (current.listener) current.listener(current.high);
}

}  // namespace chokepoint

// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a long work is, for whoever waits for it. A loop says how many rounds it has; loops inside a round share out the
// round's part. Without a listener, or on another thread than the listener's, all of it does nothing.
//
//   ProgressLoop progress(sizes.size());
//   for (...) {
//     const ProgressLoop::Round round(progress);
//     ...
//   }
#include <cstddef>
#include <functional>

namespace chokepoint {

/// Listens on the current thread while it lives; gets shares from 0 to 1, never smaller than the one before. `stop`: asked
/// between rounds whether whoever waits wants what is done so far.
class ProgressListener {
 public:
  explicit ProgressListener(std::function<void(double share)> listener, std::function<bool()> stop = {});
  ~ProgressListener();
  ProgressListener(const ProgressListener&) = delete;
  ProgressListener& operator=(const ProgressListener&) = delete;

 private:
  std::function<void(double)> before_;
  std::function<bool()> stop_before_;
  double low_;
  double high_;
};

/// Whether the listener of this thread wants the work to end early.
bool stop_requested();

class ProgressLoop {
 public:
  explicit ProgressLoop(std::size_t rounds);
  ~ProgressLoop();
  ProgressLoop(const ProgressLoop&) = delete;
  ProgressLoop& operator=(const ProgressLoop&) = delete;

  /// One round, for the time it lives.
  class Round {
   public:
    explicit Round(ProgressLoop& loop);
    ~Round();
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

   private:
    ProgressLoop& loop_;
  };

 private:
  std::size_t rounds_;
  std::size_t done_ = 0;
  double low_;   ///< of the share that the whole loop stands for
  double high_;
};

}  // namespace chokepoint

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes that answer requests. A request that takes too long, wants too much memory, or is not wanted any more ends with
// its process, whatever it was doing; the next one gets a new process. Lives on one thread, that of its io_context.
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chokepoint/service/serve.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chokepoint::service {

struct Ended {
  enum class How { kAnswered, kTimedOut, kDied, kCancelled };
  How how = How::kAnswered;
  int code = 0;
  std::string json;
};

struct PoolJob {
  std::string operation;
  std::string body;
  double timeout_s = 30;
  std::function<void()> started;
  std::function<void(double share)> progress;
  std::function<void(Ended)> done;  ///< called once, never from within submit or cancel
};

class Pool {
 public:
  Pool(boost::asio::io_context& io, Spawn spawn, std::size_t processes, std::size_t longest_queue);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Starts all processes; without it they start as they are needed.
  Result<bool> warm();
  /// A ticket for cancel; 0 when the queue is full.
  std::uint64_t submit(PoolJob job);
  /// Takes the job out of the queue, or ends its process. Its `done` gets kCancelled. An ended job's ticket does nothing.
  void cancel(std::uint64_t ticket);
  std::size_t waiting() const { return queue_.size(); }
  bool idle() const;

 private:
  struct Slot;
  struct Waiting {
    std::uint64_t ticket = 0;
    PoolJob job;
  };

  Result<bool> add_slot();
  void assign();
  void send(const std::shared_ptr<Slot>& slot);
  void receive(const std::shared_ptr<Slot>& slot);
  void finish(const std::shared_ptr<Slot>& slot, Ended ended);
  void end(std::shared_ptr<Slot> slot, Ended::How how);
  void reap();

  boost::asio::io_context& io_;
  Spawn spawn_;
  std::size_t processes_;
  std::size_t longest_queue_;
  std::uint64_t next_ticket_ = 1;
  std::deque<Waiting> queue_;
  std::vector<std::shared_ptr<Slot>> slots_;
  std::vector<pid_t> ending_;  ///< killed, not yet gone
  boost::asio::steady_timer reaper_;
};

}  // namespace chokepoint::service

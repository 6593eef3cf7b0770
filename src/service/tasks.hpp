// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests that outlive the connection they came on: asked after by their id, cancelled, kept for a while when done.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "pool.hpp"

namespace chokepoint::service {

struct Task {
  enum class State { kQueued, kRunning, kDone, kFailed, kCancelled };
  std::string id;
  std::string operation;
  State state = State::kQueued;
  std::uint64_t ticket = 0;
  std::optional<double> share;  ///< done, where it is known
  std::chrono::steady_clock::time_point begun;
  std::chrono::steady_clock::time_point ended;
  Ended result;
};

class Tasks {
 public:
  /// `instance`: what tells this server's tasks from those of one that ran before it.
  Tasks(boost::asio::io_context& io, Spawn spawn, std::size_t processes, double timeout_s, std::string instance);

  /// The id; none when too many are waiting.
  std::optional<std::string> start(const std::string& operation, std::string body);
  /// Whether there was one to cancel. A task that has ended is forgotten.
  bool remove(const std::string& id);
  /// The task as JSON; none when this server has no such task.
  std::optional<std::string> json(const std::string& id) const;
  bool idle() const { return pool_.idle(); }
  const std::string& instance() const { return instance_; }

 private:
  void ended(const std::shared_ptr<Task>& task, Ended result);
  void forget_old();

  Pool pool_;
  double timeout_s_;
  std::string instance_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Task>> tasks_;  ///< by the number in the id
  std::shared_ptr<Task> find(const std::string& id) const;
};

/// Some letters and digits that no earlier server has had.
std::string new_instance();
/// What a client is told of a process that did not answer.
Error failure_of(Ended::How how, double timeout_s);

}  // namespace chokepoint::service

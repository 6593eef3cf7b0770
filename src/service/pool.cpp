// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>

#include "frames.hpp"

namespace chokepoint::service {

namespace asio = boost::asio;
using boost::system::error_code;

struct Pool::Slot {
  explicit Slot(asio::io_context& io, Worker worker) : pid(worker.pid), socket(io), timer(io) {
    socket.assign(asio::local::stream_protocol(), worker.socket);
  }
  pid_t pid;
  asio::local::stream_protocol::socket socket;
  asio::steady_timer timer;
  std::uint64_t ticket = 0;  ///< 0: free
  PoolJob job;
  RequestFrame head{};
  AnswerFrame answer_head{};
  std::string json;
};

namespace {
std::chrono::milliseconds milliseconds(double seconds) { return std::chrono::milliseconds(static_cast<long long>(seconds * 1000)); }
}  // namespace

Pool::Pool(asio::io_context& io, Spawn spawn, std::size_t processes, std::size_t longest_queue)
    : io_(io), spawn_(std::move(spawn)), processes_(processes), longest_queue_(longest_queue), reaper_(io) {}

Pool::~Pool() {
  for (const std::shared_ptr<Slot>& slot : slots_) {
    error_code ignored;
    slot->socket.close(ignored);
    ::kill(slot->pid, SIGKILL);
    ending_.push_back(slot->pid);
  }
  for (const pid_t pid : ending_) ::waitpid(pid, nullptr, 0);
}

Result<bool> Pool::add_slot() {
  TRY_INTO(const Worker worker, spawn_());
  slots_.push_back(std::make_shared<Slot>(io_, worker));
  return true;
}

Result<bool> Pool::warm() {
  while (slots_.size() < processes_) {
    TRY_INTO([[maybe_unused]] const bool added, add_slot());
  }
  return true;
}

bool Pool::idle() const {
  return queue_.empty() && std::all_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->ticket == 0; });
}

std::uint64_t Pool::submit(PoolJob job) {
  if (queue_.size() >= longest_queue_) return 0;
  queue_.push_back({next_ticket_, std::move(job)});
  asio::post(io_, [this] { assign(); });
  return next_ticket_++;
}

void Pool::cancel(std::uint64_t ticket) {
  const auto waiting = std::find_if(queue_.begin(), queue_.end(), [ticket](const Waiting& w) { return w.ticket == ticket; });
  if (waiting != queue_.end()) {
    asio::post(io_, [done = std::move(waiting->job.done)] { done({Ended::How::kCancelled, 0, {}}); });
    queue_.erase(waiting);
    return;
  }
  const auto running = std::find_if(slots_.begin(), slots_.end(), [ticket](const auto& slot) { return slot->ticket == ticket; });
  if (ticket != 0 && running != slots_.end()) end(*running, Ended::How::kCancelled);
}

/// Gives waiting jobs to free processes, in the order they came.
void Pool::assign() {
  while (!queue_.empty()) {
    auto free = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->ticket == 0; });
    if (free == slots_.end()) {
      if (slots_.size() >= processes_) return;
      if (!add_slot()) {
        if (!slots_.empty()) return;  // one of them will be free
        Waiting first = std::move(queue_.front());
        queue_.pop_front();
        first.job.done({Ended::How::kDied, 0, {}});
        continue;
      }
      free = slots_.end() - 1;
    }
    const std::shared_ptr<Slot> slot = *free;
    slot->ticket = queue_.front().ticket;
    slot->job = std::move(queue_.front().job);
    queue_.pop_front();
    if (slot->job.started) slot->job.started();
    slot->timer.expires_after(milliseconds(slot->job.timeout_s));
    slot->timer.async_wait([this, slot, ticket = slot->ticket](error_code code) {
      if (!code && slot->ticket == ticket) end(slot, Ended::How::kTimedOut);
    });
    send(slot);
  }
}

void Pool::send(const std::shared_ptr<Slot>& slot) {
  slot->head = {slot->job.operation.size(), slot->job.body.size()};
  const std::array<asio::const_buffer, 3> parts{asio::buffer(&slot->head, sizeof slot->head), asio::buffer(slot->job.operation),
                                                asio::buffer(slot->job.body)};
  asio::async_write(slot->socket, parts, [this, slot, ticket = slot->ticket](error_code code, std::size_t) {
    if (slot->ticket != ticket) return;
    if (code) return end(slot, Ended::How::kDied);
    slot->job.body = {};
    receive(slot);
  });
}

void Pool::receive(const std::shared_ptr<Slot>& slot) {
  const std::uint64_t ticket = slot->ticket;
  asio::async_read(slot->socket, asio::buffer(&slot->answer_head, sizeof slot->answer_head), [this, slot, ticket](error_code code, std::size_t) {
    if (slot->ticket != ticket) return;
    if (!code && slot->answer_head.code == kProgress) {
      if (slot->job.progress) slot->job.progress(static_cast<double>(slot->answer_head.size) / 1000);
      return receive(slot);
    }
    if (code || slot->answer_head.size > kLargestAnswer_bytes) return end(slot, Ended::How::kDied);
    slot->json.resize(slot->answer_head.size);
    asio::async_read(slot->socket, asio::buffer(slot->json), [this, slot, ticket](error_code read, std::size_t) {
      if (slot->ticket != ticket) return;
      if (read) return end(slot, Ended::How::kDied);
      finish(slot, {Ended::How::kAnswered, static_cast<int>(slot->answer_head.code), std::move(slot->json)});
    });
  });
}

void Pool::finish(const std::shared_ptr<Slot>& slot, Ended ended) {
  slot->ticket = 0;
  slot->timer.cancel();
  const auto done = std::move(slot->job.done);
  slot->job = {};
  slot->json = {};
  assign();
  if (done) done(std::move(ended));
}

/// Takes a copy: a reference into slots_ would be the next one's after the removal.
void Pool::end(std::shared_ptr<Slot> slot, Ended::How how) {
  slots_.erase(std::remove(slots_.begin(), slots_.end(), slot), slots_.end());
  slot->ticket = 0;  // what it still reads is of no interest
  ::kill(slot->pid, SIGKILL);
  ending_.push_back(slot->pid);
  error_code ignored;
  slot->socket.close(ignored);
  reap();
  asio::post(io_, [this, slot, how] { finish(slot, {how, 0, {}}); });
}

/// A killed process that gives back gigabytes takes a while to go: it is asked after, not waited for.
void Pool::reap() {
  ending_.erase(std::remove_if(ending_.begin(), ending_.end(), [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; }), ending_.end());
  if (ending_.empty()) return;
  constexpr std::chrono::milliseconds kPause(50);
  reaper_.expires_after(kPause);
  reaper_.async_wait([this](error_code code) {
    if (!code) reap();
  });
}

}  // namespace chokepoint::service

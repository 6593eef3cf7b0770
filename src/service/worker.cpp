// SPDX-License-Identifier: Apache-2.0
// The loop of a process that answers requests, one at a time.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chokepoint/base/progress.hpp>
#include <chokepoint/service/answer.hpp>
#include <chokepoint/service/serve.hpp>
#include <chrono>
#include <new>

#include "frames.hpp"

namespace chokepoint::service {
namespace {

// The address sanitizer's shadow is terabytes of private memory, which no limit on memory leaves room for.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

/// False at the end of the stream.
bool read_bytes(int socket, void* into, std::size_t size) {
  auto* at = static_cast<char*>(into);
  while (size > 0) {
    const ssize_t got = ::read(socket, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_bytes(int socket, const void* from, std::size_t size) {
  const auto* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t put = ::write(socket, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

/// The server's own sockets stay the server's: a client must see its connection close when the server closes it.
void close_others(int kept) {
#ifdef SYS_close_range
  const auto above = static_cast<unsigned>(kept);
  if (above > 3 && ::syscall(SYS_close_range, 3U, above - 1, 0U) != 0) return;
  ::syscall(SYS_close_range, above + 1, ~0U, 0U);
#endif
}

void set_limits(std::size_t max_memory_bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no orphans, however the server ends
  ::signal(SIGINT, SIG_IGN);           // Ctrl-C goes to the whole group; the server decides
  ::signal(SIGPIPE, SIG_IGN);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Private writable memory, not address space: threads reserve far more of that than they use.
  const rlimit memory{max_memory_bytes, max_memory_bytes};
  if (!kSanitized) ::setrlimit(RLIMIT_DATA, &memory);
}

/// Tells the server how far the work is, not more often than somebody could look.
class Teller {
 public:
  explicit Teller(int socket) : socket_(socket), next_(Clock::now() + kPause) {}
  void operator()(double share) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + kPause;
    const AnswerFrame frame{kProgress, static_cast<std::uint64_t>(share * 1000)};
    write_bytes(socket_, &frame, sizeof frame);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{50};
  int socket_;
  Clock::time_point next_;
};

}  // namespace

int work(int socket, std::size_t max_memory_bytes) {
  close_others(socket);
  set_limits(max_memory_bytes);
  for (;;) {
    RequestFrame head;
    if (!read_bytes(socket, &head, sizeof head)) return 0;
    Answer answered;
    try {
      std::string operation(head.operation_size, '\0');
      std::string body(head.body_size, '\0');
      if (!read_bytes(socket, operation.data(), operation.size()) || !read_bytes(socket, body.data(), body.size())) return 0;
      const ProgressListener listener((Teller(socket)));
      answered = answer(operation, body);
    } catch (const std::bad_alloc&) {
      return 3;  // the server tells the client
    }
    const AnswerFrame frame{answered.code, answered.json.size()};
    if (!write_bytes(socket, &frame, sizeof frame) || !write_bytes(socket, answered.json.data(), answered.json.size())) return 0;
  }
}

}  // namespace chokepoint::service

// SPDX-License-Identifier: Apache-2.0
// How many predictions a second does the HTTP API give to a few dozen clients at once over loopback, and how long does the
// slowest of a hundred wait? Clients, server and its processes share the machine's cores. Every answer is checked.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chokepoint/service/answer.hpp>
#include <chokepoint/service/serve.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace chokepoint;
using Clock = std::chrono::steady_clock;

constexpr int kClients = 36;
constexpr int kRequestsEach = 30;

/// A slider's request: 1,024 accelerators, a batch that moves.
std::string body(int batch) {
  return R"({"job": {"model": "llama-3-70b", "cluster": "dgx-h100", "gpus": 1024, "batch": )" + std::to_string(batch) +
         R"(, "sequence": 8192}, "options": {"strategy": "tensor=8 pipeline=4 zero=1 microbatch=1"}})";
}

Result<service::Worker> forked() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail("no socket pair");
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(service::work(ends[1], std::size_t{4} << 30));
  ::close(ends[1]);
  return service::Worker{pid, ends[0]};
}

/// One client on one connection.
class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)), port_(port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ok_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool predict(const std::string& text) {
    const std::string request = "POST /api/v1/predict HTTP/1.1\r\nHost: localhost:" + std::to_string(port_) +
                                "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
    ok_ = ok_ && ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
    std::string answer;
    std::size_t whole = 0;
    while (ok_ && (whole == 0 || answer.size() < whole)) {
      char buffer[65536];
      const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      ok_ = got > 0;
      if (ok_) answer.append(buffer, static_cast<std::size_t>(got));
      const std::size_t head = answer.find("\r\n\r\n");
      const std::size_t length = answer.find("Content-Length: ");
      if (whole == 0 && head != std::string::npos && length < head) whole = head + 4 + std::strtoull(answer.c_str() + length + 16, nullptr, 10);
    }
    return ok_ && answer.compare(0, 15, "HTTP/1.1 200 OK") == 0 && answer.find("\"step_time_s\"") != std::string::npos;
  }

 private:
  int fd_;
  int port_;
  bool ok_ = false;
};

class Running {
 public:
  Running() {
    options_.port = 0;
    options_.studies = "/tmp/chokepoint-serve-bench-" + std::to_string(::getpid()) + ".sqlite";
    std::promise<int> port;
    thread_ = std::thread([this, &port] { (void)service::serve(options_, forked, [&port](int p) { port.set_value(p); }, &stop_); });
    port_ = port.get_future().get();
  }
  ~Running() {
    stop_ = true;
    thread_.join();
    for (const char* end : {"", "-wal", "-shm"}) ::unlink((options_.studies + end).c_str());
  }
  int port() const { return port_; }

 private:
  service::ServeOptions options_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  int port_ = 0;
};

void Predictions(benchmark::State& state) {
  if (!service::can_serve()) return state.SkipWithError("built without Boost.Beast");
  const Running server;
  std::vector<double> waits_s;
  std::atomic<int> wrong{0};
  for ([[maybe_unused]] auto round : state) {
    std::vector<std::vector<double>> each(kClients);
    std::vector<std::thread> clients;
    for (int c = 0; c < kClients; ++c) {
      clients.emplace_back([&, c] {
        Client client(server.port());
        for (int i = 0; i < kRequestsEach; ++i) {
          const Clock::time_point begun = Clock::now();
          if (!client.predict(body(1024 + 128 * ((c + i) % 16)))) ++wrong;
          each[static_cast<std::size_t>(c)].push_back(std::chrono::duration<double>(Clock::now() - begun).count());
        }
      });
    }
    for (std::thread& client : clients) client.join();
    for (const auto& one : each) waits_s.insert(waits_s.end(), one.begin(), one.end());
  }
  if (wrong > 0) return state.SkipWithError("a client got a wrong answer");
  std::sort(waits_s.begin(), waits_s.end());
  state.SetItemsProcessed(static_cast<std::int64_t>(waits_s.size()));
  state.counters["median_ms"] = 1000 * waits_s[waits_s.size() / 2];
  state.counters["p99_ms"] = 1000 * waits_s[waits_s.size() * 99 / 100];
}
BENCHMARK(Predictions)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The same request without a server: what HTTP, processes and sockets add.
void InProcess(benchmark::State& state) {
  const std::string request = body(1024);
  if (service::answer("predict", request).error) return state.SkipWithError("a wrong answer");
  for ([[maybe_unused]] auto round : state) benchmark::DoNotOptimize(service::answer("predict", request));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(InProcess)->Unit(benchmark::kMillisecond);

}  // namespace

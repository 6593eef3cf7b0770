// SPDX-License-Identifier: Apache-2.0
// The server on a free loopback port, its processes forked from the test.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chokepoint/service/serve.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "openapi.hpp"

namespace chokepoint::service {
namespace {

using nlohmann::json;

struct Response {
  int status = 0;
  std::string head;
  std::string body;
  json data() const { return json::parse(body, nullptr, false); }
};

int connected(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{20, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// Everything until the server closes.
std::string received(int fd) {
  std::string all;
  char buffer[65536];
  for (ssize_t got = 0; (got = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) all.append(buffer, static_cast<std::size_t>(got));
  ::close(fd);
  return all;
}

Response parsed(const std::string& all) {
  Response response;
  const std::size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos) return response;
  response.head = all.substr(0, end + 2);
  response.body = all.substr(end + 4);
  response.status = std::atoi(all.c_str() + 9);
  return response;
}

class Server : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("chokepoint-server-test-" + std::to_string(::getpid()));
    options_.port = 0;
    options_.studies = (folder_ / "studies.sqlite").string();
    options_.workers = 2;
    options_.max_upload_bytes = std::size_t{4} << 20;
  }
  void TearDown() override {
    stop();
    std::filesystem::remove_all(folder_);
  }

  void start() {
    std::promise<int> port;
    // Made before there are threads: a copy of a process in whose other thread the allocator holds a lock waits for ever.
    while (spare_.size() < kProcesses) {
      Result<Worker> made = forked(options_.max_memory_bytes);
      ASSERT_TRUE(made);
      spare_.push_back(*made);
    }
    const Spawn spawn = [this]() -> Result<Worker> {
      if (spare_.empty()) return fail("the test has no process left");
      const Worker given = spare_.back();
      spare_.pop_back();
      return given;
    };
    thread_ = std::thread([this, spawn, &port] {
      const Result<bool> served = serve(options_, spawn, [&port](int p) { port.set_value(p); }, &stop_);
      if (!served) {
        error_ = format(served.error());
        port.set_value(0);
      }
    });
    port_ = port.get_future().get();
  }

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    for (const Worker& worker : spare_) {
      ::close(worker.socket);
      ::kill(worker.pid, SIGKILL);
      ::waitpid(worker.pid, nullptr, 0);
    }
    spare_.clear();
  }

  static Result<Worker> forked(std::size_t memory) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail("no socket pair");
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      ::_exit(work(ends[1], memory));
    }
    ::close(ends[1]);
    return Worker{pid, ends[0]};
  }

  Response raw(const std::string& text) const {
    const int fd = connected(port_);
    send_all(fd, text);
    return parsed(received(fd));
  }

  std::string request(const std::string& method, const std::string& path, const std::string& body, const std::string& more = "") const {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost:" + std::to_string(port_) + "\r\nConnection: close\r\n" + more;
    if (method == "POST" || method == "PUT") text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }

  Response call(const std::string& method, const std::string& path, const json& body = nullptr, const std::string& more = "") const {
    return raw(request(method, path, body.is_null() ? "" : body.dump(), more));
  }

  static json job() {
    return {{"job", {{"model", "llama-3-8b"}, {"cluster", "dgx-h100"}, {"batch", 64}, {"sequence", 4096}}}, {"options", {{"strategy", "zero=3 microbatch=1"}}}};
  }

  /// A task's answer once it has ended.
  json ended(const std::string& id) const {
    for (;;) {
      const json task = call("GET", "/api/v1/tasks/" + id).data();
      const std::string state = task.value("state", "none");
      if (state != "queued" && state != "running") return task;
      std::this_thread::yield();
    }
  }

  std::filesystem::path folder_;
  ServeOptions options_;
  std::atomic<bool> stop_{false};
  static constexpr std::size_t kProcesses = 12;
  std::vector<Worker> spare_;
  std::thread thread_;
  std::string error_;
  int port_ = 0;
};

TEST_F(Server, PredictsAsTheCommandLineDoes) {
  start();
  const Response response = call("POST", "/api/v1/predict", job());
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_GT(response.data()["step_time_s"], 0);
  EXPECT_NE(response.head.find("X-Content-Type-Options: nosniff"), std::string::npos);
}

TEST_F(Server, BadInputIs400WithItsPlace) {
  start();
  const Response response = call("POST", "/api/v1/predict", {{"job", "model: llama-3-8b\ncluster: dgx-h100\nbatch: many\nsequence: 4096\n"}});
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.data()["error"]["line"], 3);
  EXPECT_EQ(response.data()["error"]["file"], "job.yaml");
}

TEST_F(Server, ServesThePageWithAStrictPolicy) {
  start();
  const Response page = call("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.head.find("script-src 'self';"), std::string::npos) << page.head;
  const std::size_t tag = page.head.find("ETag: ") + 6;
  const std::string value = page.head.substr(tag, page.head.find('\r', tag) - tag);
  EXPECT_EQ(call("GET", "/", nullptr, "If-None-Match: " + value + "\r\n").status, 304);
  EXPECT_EQ(call("GET", "/assets/../../etc/passwd").status, 404);
  EXPECT_EQ(call("GET", "/assets/%2e%2e%2fetc%2fpasswd").status, 404);
  EXPECT_EQ(call("HEAD", "/").body, "");
}

TEST_F(Server, ForeignHostsOriginsAndFormsAreRefused) {
  start();
  EXPECT_EQ(raw("GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").status, 403);
  EXPECT_EQ(raw("GET /api/v1/status HTTP/1.0\r\n\r\n").status, 400);
  const std::string two = "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(raw(two).status, 400);
  EXPECT_EQ(raw(two).data()["error"]["message"], "the request has several Host headers");
  EXPECT_EQ(call("GET", "/api/v1/status", nullptr, "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(call("GET", "/api/v1/status", nullptr, "Origin: null\r\n").status, 403);
  EXPECT_EQ(call("GET", "/api/v1/status", nullptr, "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(call("GET", "/api/v1/status", nullptr, "Origin: http://localhost:" + std::to_string(port_) + "\r\n").status, 200);
  const std::string form = "POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
  EXPECT_EQ(raw(form).status, 415);
}

TEST_F(Server, MalformedAndHugeRequestsAreAnswered) {
  start();
  EXPECT_EQ(raw("nonsense\r\n\r\n").status, 400);
  EXPECT_EQ(raw("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'a') + "\r\n\r\n").status, 431);
  EXPECT_EQ(call("POST", "/api/v1/predict", {{"job", std::string(5u << 20, 'a')}}).status, 413);
  const std::string lies = "POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n";
  EXPECT_EQ(raw(lies).status, 413);
  std::string chunks = "POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 5; ++i) chunks += "100000\r\n" + std::string(1u << 20, ' ') + "\r\n";
  EXPECT_EQ(raw(chunks + "0\r\n\r\n").status, 413);
  EXPECT_EQ(raw(request("POST", "/api/v1/predict", "{\"job\":" + std::string(100000, '['))).status, 400);
  EXPECT_EQ(call("GET", "/api/v1/predict").status, 405);
  EXPECT_EQ(call("GET", "/api/v1/nothing").status, 404);
  EXPECT_EQ(call("GET", "/api/v1/status").status, 200) << "still alive";
}

TEST_F(Server, AClientThatNeverFinishesIsGivenUp) {
  options_.client_timeout_s = 0.2;
  start();
  const int fd = connected(port_);
  send_all(fd, "POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
  received(fd);  // returns: the server has closed
  EXPECT_EQ(call("GET", "/api/v1/status").status, 200);
}

TEST_F(Server, ARequestThatTakesTooLongEndsWithItsProcess) {
  options_.timeout_s = 0.001;
  start();
  json big = job();
  big["job"]["cluster"] = "dgx-h100";
  big["job"]["hosts"] = 2048;
  big["job"]["batch"] = 32768;
  const Response response = call("POST", "/api/v1/plan", {{"job", big["job"]}});
  EXPECT_EQ(response.status, 504) << response.body;
  EXPECT_EQ(call("GET", "/api/v1/status").status, 200);
}

TEST_F(Server, ManyClientsGetTheirOwnAnswers) {
  start();
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int i = 1; i <= 32; ++i) {
    clients.emplace_back([&, i] {
      json mine = job();
      mine["job"]["batch"] = 64 * i;
      const json answered = call("POST", "/api/v1/predict", mine).data();
      right += answered.is_object() && answered.contains("job") && answered["job"]["batch"] == 64 * i ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 32);
}

TEST_F(Server, TasksEndWithTheSameAnswer) {
  start();
  json later = job();
  later["async"] = true;
  const Response started = call("POST", "/api/v1/predict", later);
  ASSERT_EQ(started.status, 202) << started.body;
  const json task = ended(started.data()["task"]);
  EXPECT_EQ(task["state"], "done");
  EXPECT_EQ(task["result"]["step_time_s"], call("POST", "/api/v1/predict", job()).data()["step_time_s"]);
}

TEST_F(Server, TasksTellHowFarTheyAre) {
  start();
  const json work{{"job", {{"model", "gpt3-175b"}, {"cluster", "dgx-h100"}, {"hosts", 512}, {"batch", 8192}, {"sequence", 2048}}}, {"options", {{"sensitivities", true}, {"scale", "8..16384"}}}, {"async", true}};
  const std::string id = call("POST", "/api/v1/whatif", work).data()["task"];
  double last = 0;
  for (;;) {
    const json task = call("GET", "/api/v1/tasks/" + id).data();
    if (task["progress"].is_number()) {
      EXPECT_GE(task["progress"].get<double>(), last);
      last = task["progress"];
    }
    if (task["state"] == "done" || task["state"] == "failed") break;
    std::this_thread::yield();
  }
  EXPECT_EQ(last, 1);
}

TEST_F(Server, TasksCanBeCancelled) {
  start();
  const json work{{"job", {{"model", "gpt3-175b"}, {"cluster", "dgx-h100"}, {"hosts", 2048}, {"batch", 16384}, {"sequence", 2048}}}, {"options", {{"sensitivities", true}, {"scale", "8..16384"}}}, {"async", true}};
  const std::string id = call("POST", "/api/v1/whatif", work).data()["task"];
  EXPECT_EQ(call("DELETE", "/api/v1/tasks/" + id).status, 204);
  EXPECT_EQ(ended(id)["state"], "cancelled");
  EXPECT_EQ(call("GET", "/api/v1/tasks/00000000-1").status, 404);
}

TEST_F(Server, CancellingOneTaskLeavesTheOthers) {
  options_.task_workers = 2;
  start();
  const auto work = [](int hosts) { return json{{"job", {{"model", "gpt3-175b"}, {"cluster", "dgx-h100"}, {"hosts", hosts}, {"batch", 8192}, {"sequence", 2048}}}, {"options", {{"sensitivities", true}, {"scale", "8..16384"}}}, {"async", true}}; };
  const std::string first = call("POST", "/api/v1/whatif", work(2048)).data()["task"];
  const std::string second = call("POST", "/api/v1/whatif", work(256)).data()["task"];
  while (call("GET", "/api/v1/tasks/" + second).data()["state"] == "queued") std::this_thread::yield();
  EXPECT_EQ(call("DELETE", "/api/v1/tasks/" + first).status, 204);
  EXPECT_EQ(ended(first)["state"], "cancelled");
  EXPECT_EQ(ended(second)["state"], "done");
}

TEST_F(Server, StudiesAreKeptOverARestart) {
  start();
  const json study{{"name", "two clusters"}, {"document", {{"a", {1, 2.5, "x"}}}}};
  const Response saved = call("POST", "/api/v1/studies", study);
  ASSERT_EQ(saved.status, 201) << saved.body;
  const std::string path = "/api/v1/studies/" + saved.data()["id"].get<std::string>();
  stop();
  stop_ = false;
  start();
  EXPECT_EQ(call("GET", "/api/v1/studies").data()["studies"].size(), 1u);
  EXPECT_EQ(call("GET", path).data()["document"], study["document"]);
  json changed = study;
  changed["name"] = "three";
  EXPECT_EQ(call("PUT", path, changed).data()["revision"], 2);
  changed["revision"] = 1;
  EXPECT_EQ(call("PUT", path, changed).status, 409);
  EXPECT_EQ(call("DELETE", path).status, 204);
  EXPECT_EQ(call("GET", path).status, 404);
  EXPECT_EQ(call("POST", "/api/v1/studies", {{"name", ""}, {"document", 1}}).status, 400);
}

TEST_F(Server, StudiesOutliveTheirDeletedFile) {
  start();
  ASSERT_EQ(call("POST", "/api/v1/studies", {{"name", "one"}, {"document", 1}}).status, 201);
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(call("POST", "/api/v1/studies", {{"name", "two"}, {"document", 2}}).status, 201);
  stop();
  stop_ = false;
  start();
  EXPECT_EQ(call("GET", "/api/v1/studies").data()["studies"].size(), 2u);
}

TEST_F(Server, ALockedFileOfStudiesIs503AndHoldsUpNothingElse) {
  start();
  sqlite3* other = nullptr;
  sqlite3_open(options_.studies.c_str(), &other);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Response locked = call("POST", "/api/v1/studies", {{"name", "one"}, {"document", 1}});
  EXPECT_EQ(locked.status, 503) << locked.body;
  EXPECT_NE(locked.head.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(call("POST", "/api/v1/predict", job()).status, 200);
  sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(call("POST", "/api/v1/studies", {{"name", "one"}, {"document", 1}}).status, 201);
}

TEST_F(Server, APortThatIsTakenIsSaid) {
  start();
  ServeOptions second = options_;
  second.port = port_;
  second.studies = (folder_ / "second.sqlite").string();
  const Result<bool> served = serve(second, [] { return forked(std::size_t{1} << 30); }, [](int) {});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().message, "127.0.0.1 port " + std::to_string(port_) + " is taken by another program");
}

/// Every operation of the document, called: the answers have the keys that it says they have.
TEST_F(Server, AnswersAsItsOpenApiDocumentSays) {
  start();
  const json document = call("GET", "/api/v1/openapi.json").data();
  ASSERT_EQ(document["openapi"], "3.1.0");
  const auto schema_of = [&document](json schema) {
    if (schema.contains("$ref")) schema = document["components"]["schemas"][schema["$ref"].get<std::string>().substr(21)];
    return schema;
  };
  const json one = call("POST", "/api/v1/studies", {{"name", "s"}, {"document", json::object()}}).data();
  json later = job();
  later["async"] = true;
  const std::string study = one["id"];
  const std::string log = "step,loss\n";
  json wiring{{"inputs", "dgx-h100"}};
  const json with_job{{"job", job()["job"]}};
  const std::map<std::string, json> bodies{
      {"predict", job()}, {"plan", with_job}, {"whatif", job()}, {"wiring", wiring},
      {"export", {{"job", job()["job"]}, {"options", {{"strategy", "zero=3 microbatch=1"}, {"to", "megatron"}}}}},
      {"models", json::object()}, {"clusters", json::object()}, {"accelerators", json::object()},
      {"addStudy", {{"name", "t"}, {"document", 1}}}, {"replaceStudy", {{"name", "u"}, {"document", 2}}}};
  // These read measured files, which their own tests hold; here they must refuse in the documented form.
  const std::vector<std::string> refusing{"diagnose", "calibrate", "validate"};
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      if (method == "parameters") continue;
      const std::string id = operation["operationId"];
      std::string real = path;
      const std::string task = path.find("tasks") == std::string::npos ? "" : call("POST", "/api/v1/predict", later).data()["task"].get<std::string>();
      if (const std::size_t at = real.find("{id}"); at != std::string::npos) real.replace(at, 4, task.empty() ? study : task);
      std::string verb = method;
      std::transform(verb.begin(), verb.end(), verb.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
      const bool refuses = std::find(refusing.begin(), refusing.end(), id) != refusing.end();
      const json body = bodies.contains(id) ? bodies.at(id) : verb == "POST" ? json::object() : json(nullptr);
      const bool last = verb == "DELETE" && task.empty();
      const std::string target = last ? "/api/v1/studies/" + call("POST", "/api/v1/studies", {{"name", "d"}, {"document", 0}}).data()["id"].get<std::string>() : real;
      const Response response = call(verb, target, body);
      const std::string status = std::to_string(response.status);
      ASSERT_TRUE(operation["responses"].contains(status)) << verb << " " << target << " " << status << " " << response.body;
      EXPECT_EQ(response.status / 100, refuses ? 4 : 2) << verb << " " << target << " " << response.body;
      if (!operation["responses"][status].contains("content")) continue;
      const json schema = schema_of(operation["responses"][status]["content"]["application/json"]["schema"]);
      for (const auto& key : schema.value("required", json::array())) EXPECT_TRUE(response.data().contains(key)) << id << " lacks " << key;
    }
  }
}

}  // namespace
}  // namespace chokepoint::service

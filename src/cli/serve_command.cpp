// SPDX-License-Identifier: Apache-2.0
#include "serve_command.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/service/serve.hpp>
#include <cstring>
#include <iostream>
#include <memory>

extern char** environ;

namespace chokepoint::cli {
namespace {

constexpr const char* kWorkerCommand = "serve-worker";
constexpr int kWorkerSocket = 3;

struct Words {
  service::ServeOptions serve;
  std::string max_upload, max_memory, timeout, task_timeout;
  bool open = false;
  bool json = false;
  bool quiet = false;
};

int report(const Error& error) {
  std::cerr << format(error);
  return 2;
}

/// This same program as a worker, without a shell; its socket is its descriptor 3.
Result<service::Worker> start_worker(std::size_t max_memory_bytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return fail("cannot start a process: " + std::string(std::strerror(errno)));
  std::string program = "/proc/self/exe";
  std::string command = kWorkerCommand;
  std::string memory = std::to_string(max_memory_bytes);
  std::array<char*, 4> arguments{program.data(), command.data(), memory.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kWorkerSocket);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error == 0) return service::Worker{child, ends[0]};
  ::close(ends[0]);
  return fail("cannot start a process: " + std::string(std::strerror(error)));
}

/// Asks the desktop for its browser; a machine without one is no error, the address is printed anyway.
void open_browser(const std::string& url) {
  std::string program = "xdg-open";
  std::string address = url;
  std::array<char*, 3> arguments{program.data(), address.data(), nullptr};
  pid_t child = -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  (void)::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
}

std::string url_of(const service::ServeOptions& options, int port) {
  const bool everywhere = options.host == "0.0.0.0" || options.host == "::";
  const std::string host = everywhere ? "localhost" : options.host.find(':') != std::string::npos ? "[" + options.host + "]" : options.host;
  return "http://" + host + ":" + std::to_string(port) + "/";
}

void say(const Words& words, int port) {
  const std::string url = url_of(words.serve, port);
  if (words.json) std::cout << "{\"url\": \"" << url << "\", \"port\": " << port << "}\n" << std::flush;
  else if (words.quiet) std::cout << url << "\n" << std::flush;
  else std::cout << "Chokepoint listens on " << url << "   (Ctrl-C ends it)\n" << std::flush;
  const bool loopback = words.serve.host == "localhost" || words.serve.host == "::1" || words.serve.host.rfind("127.", 0) == 0;
  if (!loopback && !words.quiet) std::cerr << "note: everyone who reaches " << words.serve.host << " can use it, and read and delete its studies\n";
  if (words.open) open_browser(url);
}

/// Sizes and times as they are written everywhere else.
Result<bool> read_limits(Words& words) {
  if (!words.max_upload.empty()) {
    TRY_INTO(const double bytes, parse_bytes(words.max_upload));
    if (!(bytes >= 1024 && bytes <= 1e9)) return fail("--max-upload is " + words.max_upload + ", expected 1 KiB to 1 GB");
    words.serve.max_upload_bytes = static_cast<std::size_t>(bytes);
  }
  if (!words.max_memory.empty()) {
    TRY_INTO(const double bytes, parse_bytes(words.max_memory));
    if (!(bytes >= 64e6 && bytes <= 1e13)) return fail("--max-memory is " + words.max_memory + ", expected 64 MB or more");
    words.serve.max_memory_bytes = static_cast<std::size_t>(bytes);
  }
  for (const auto& [text, into, name] : {std::tuple(&words.timeout, &words.serve.timeout_s, "--timeout"), std::tuple(&words.task_timeout, &words.serve.task_timeout_s, "--task-timeout")}) {
    if (text->empty()) continue;
    TRY_INTO(*into, parse_duration(*text));
    if (!(*into >= 0.001 && *into <= 1e6)) return fail(std::string(name) + " is " + *text + ", expected a time such as 30 s");
  }
  return true;
}

int run(Words words) {
  if (const auto limits = read_limits(words); !limits) return report(limits.error());
  const std::size_t memory = words.serve.max_memory_bytes;
  const Result<bool> served = service::serve(words.serve, [memory] { return start_worker(memory); }, [&words](int port) { say(words, port); });
  return served ? 0 : report(served.error());
}

}  // namespace

void add_serve(CLI::App& app, commands::Action& action) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand("serve", "The page and the HTTP API, on this machine");
  command->add_option("--port", words->serve.port, "port; 0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  command->add_option("--host", words->serve.host, "address to listen on; this machine alone by default")->capture_default_str();
  command->add_option("--name", words->serve.names, "name under which browsers reach it, where it is not localhost; may be repeated");
  command->add_flag("--open", words->open, "open the page in the browser");
  command->add_option("--studies", words->serve.studies, "file of saved studies; ~/.local/share/chokepoint/studies.sqlite by default");
  command->add_option("--max-upload", words->max_upload, "largest request, for example \"256 MiB\"; 64 MiB by default");
  command->add_option("--max-memory", words->max_memory, "memory of one request; 4 GiB by default");
  command->add_option("--timeout", words->timeout, "longest time of a request; 30 s by default");
  command->add_option("--task-timeout", words->task_timeout, "longest time of a task; 15 min by default");
  command->add_option("--workers", words->serve.workers, "processes for requests; one a core by default")->check(CLI::Range(1, 256));
  command->add_option("--task-workers", words->serve.task_workers, "processes for tasks")->check(CLI::Range(1, 256))->capture_default_str();
  command->add_flag("--json", words->json, "print the address as JSON");
  command->add_flag("--quiet", words->quiet, "print the address alone");
  command->callback([words, &action] { action = [words] { return run(*words); }; });

  auto memory = std::make_shared<std::size_t>(0);
  CLI::App* worker = app.add_subcommand(kWorkerCommand, "")->group("");
  worker->add_option("memory", *memory)->required();
  worker->callback([memory, &action] { action = [memory] { return service::work(kWorkerSocket, *memory); }; });
}

}  // namespace chokepoint::cli

// SPDX-License-Identifier: Apache-2.0
// nvidia-smi, rocm-smi and ibnetdiscover come with NVML, ROCm SMI and libibnetdisc and print what these know; their output
// goes through the same importers as files do. Each runs without a shell, with a limit in time and size.
#include "live_machine.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chokepoint/wiring/live.hpp>
#include <chrono>

extern char** environ;

namespace chokepoint::cli {
namespace {

constexpr double kToolSeconds = 30;
constexpr std::size_t kToolBytes = 64u << 20;

struct Tool {
  std::vector<std::string> words;
  std::string shows;
};

/// Reads until the end, the time limit or the size limit; whether the end came first.
bool read_all(int from, std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  std::array<char, 1 << 16> buffer{};
  while (text.size() < kToolBytes) {
    const double left = kToolSeconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    pollfd ready{from, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left * 1000) + 1) <= 0) return false;
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return false;
}

/// What the program prints; no value when it is not installed, fails, or takes too long.
std::optional<std::string> output_of(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  const bool whole = error == 0 && read_all(ends[0], text);
  ::close(ends[0]);
  if (error != 0) return std::nullopt;
  if (!whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::string own_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

void run_tool(const Tool& tool, const std::string& host, std::vector<wiring::Document>& documents, std::vector<std::string>& unseen) {
  std::string call;
  for (const std::string& word : tool.words) call += (call.empty() ? "" : " ") + word;
  const std::optional<std::string> text = output_of(tool.words);
  Result<std::vector<wiring::Document>> found = text ? wiring::read_documents(*text, call) : fail("it is not installed here, or failed");
  if (!found) {
    unseen.push_back(tool.shows + ": `" + call + "`: " + found.error().message);
    return;
  }
  for (wiring::Document& document : *found) {
    document.host_name = host;
    documents.push_back(std::move(document));
  }
}

}  // namespace

void add_live_options(CLI::App& command, LiveOptions& options) {
  command.add_flag("--live", options.live, "the machine this runs on: sysfs, and nvidia-smi, rocm-smi, ibnetdiscover where installed; no root needed");
  command.add_flag("--live-fabric", options.fabric, "with --live: ask the InfiniBand subnet also where this machine shows no port");
  command.add_option("--sysfs", options.sysfs, "with --live: this folder in place of /sys; no tool is run")->group("");
}

Result<std::vector<wiring::Document>> live_documents(const LiveOptions& options, std::vector<std::string>& unseen) {
  const bool own = options.sysfs == "/sys";
  const std::string host = own ? own_name() : "host";
  TRY_INTO(wiring::LiveReading reading, wiring::read_live(options.sysfs, host));
  unseen = std::move(reading.unseen);
  std::vector<wiring::Document> documents = std::move(reading.documents);
  if (!own) return documents;
  const auto* pci = std::get_if<wiring::PciListing>(&documents.front().content);
  const auto has_vendor = [pci](std::string_view vendor) {
    return std::any_of(pci->functions.begin(), pci->functions.end(), [vendor](const wiring::PciFunction& function) {
      return function.role == wiring::PciRole::kGpu && function.ids.substr(0, 4) == vendor;
    });
  };
  std::vector<Tool> tools;
  if (has_vendor("10de")) {
    tools.push_back({{"nvidia-smi", "topo", "-m"}, "NVLink between GPUs"});
    tools.push_back({{"nvidia-smi", "nvlink", "-s"}, "NVLinks that are up"});
    tools.push_back({{"nvidia-smi", "-q"}, "models and clocks of GPUs"});
  }
  if (has_vendor("1002")) tools.push_back({{"rocm-smi", "--showtopo"}, "xGMI between GPUs"});
  if (reading.infiniband || options.fabric) tools.push_back({{"ibnetdiscover"}, "the InfiniBand fabric"});
  else unseen.push_back("what joins this host to others: no active InfiniBand port here (--live-fabric asks anyway)");
  // The list may grow while it is read, so what points into it is not used from here on.
  for (const Tool& tool : tools) run_tool(tool, host, documents, unseen);
  return documents;
}

}  // namespace chokepoint::cli

// SPDX-License-Identifier: Apache-2.0
// The machine's libraries (hwloc, libibverbs, libibnetdisc, NVML, ROCm SMI) are asked in a process of their own, which is this program
// with --library: a driver that hangs or crashes costs its part of the picture and nothing else. Where a library is absent
// the tool that comes with it may still be there. All of it goes through the same importers as files do.
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
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/wiring/libraries.hpp>
#include <chokepoint/wiring/live.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace chokepoint::commands {
namespace {

constexpr double kToolSeconds = 30;
constexpr std::size_t kToolBytes = 64u << 20;

struct Tool {
  std::vector<std::string> words;
  std::string shows;
  bool library = false;   ///< this program asking a library
};

struct Output {
  std::string text;
  std::string complaint;  ///< what it said on the error stream
  std::string failure;    ///< empty: it ended well
};

/// What is left of a moment before `seconds` after `start`, in milliseconds.
int left_ms(std::chrono::steady_clock::time_point start, double seconds) {
  return std::max(0, static_cast<int>((seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()) * 1000));
}

/// Reads both ends until they are closed; why not, where time or size ran out first.
std::string read_both(int out, int err, Output& output) {
  const auto start = std::chrono::steady_clock::now();
  std::array<char, 1 << 16> buffer{};
  std::array<pollfd, 2> ends{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const int left = left_ms(start, kToolSeconds);
    const int ready = left > 0 ? ::poll(ends.data(), ends.size(), left) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return "no answer within 30 s";
    for (pollfd& end : ends) {
      if (end.fd < 0 || end.revents == 0) continue;
      const ssize_t count = ::read(end.fd, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      std::string& text = end.fd == out ? output.text : output.complaint;
      if (count > 0 && text.size() + static_cast<std::size_t>(count) > kToolBytes) return "more than 64 MiB of text";
      if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
      else end.fd = -1;
    }
  }
  return "";
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return std::string("it crashed: ") + ::strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "it failed with exit code " + std::to_string(WEXITSTATUS(status));
}

/// Runs the program without a shell, with a limit in time and size.
Output output_of(std::vector<std::string> words) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  Output output;
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) return {{}, {}, "no pipe"};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  if (error == 0) output.failure = read_both(out[0], err[0], output);
  ::close(out[0]);
  ::close(err[0]);
  if (error != 0) return {{}, {}, error == ENOENT ? "it is not installed here" : std::strerror(error)};
  if (!output.failure.empty()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (output.failure.empty()) output.failure = ending(status);
  return output;
}

std::string own_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// What a program of ours said after "error: ", its notes in brackets.
std::string complaint_of(const std::string& text) {
  const std::size_t at = text.find("error: ");
  if (at == std::string::npos) return "";
  std::string reason;
  std::size_t begin = at + 7;
  for (int line = 0; begin < text.size() && line < 3; ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', begin), end);
    if (end > first) reason += (reason.empty() ? "" : "; ") + text.substr(first, end - first);
    begin = end + 1;
  }
  return reason;
}

/// Adds the documents of what a tool prints; why there are none otherwise.
std::string run_tool(const Tool& tool, const std::string& host, std::vector<wiring::Document>& documents) {
  std::string call;
  if (tool.library) call = "library " + tool.words.at(3);
  else for (const std::string& word : tool.words) call += (call.empty() ? "" : " ") + word;
  const Output output = output_of(tool.words);
  if (!output.failure.empty()) {
    const std::string said = tool.library ? complaint_of(output.complaint) : "";
    return said.empty() ? output.failure : said;
  }
  Result<std::vector<wiring::Document>> found = wiring::read_documents(output.text, call);
  if (!found) return found.error().message;
  for (wiring::Document& document : *found) {
    document.host_name = host;
    documents.push_back(std::move(document));
  }
  return "";
}

/// This program, asking a library.
Tool asking(const std::string& library, std::string shows, const std::vector<std::string>& ports = {}) {
  Tool tool{{"/proc/self/exe", "wiring", "--library", library}, std::move(shows), true};
  for (const std::string& port : ports) tool.words.insert(tool.words.end(), {"--ib-port", port});
  return tool;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// Whether a document of this kind is there.
bool has(const std::vector<wiring::Document>& documents, wiring::Format format) {
  return std::any_of(documents.begin(), documents.end(), [format](const wiring::Document& document) { return document.format == format; });
}

struct Seen {
  bool nvidia = false;
  bool amd = false;
  std::vector<std::string> ports;   ///< "mlx5_0:1", active InfiniBand
};

Seen seen_by_sysfs(const std::vector<wiring::Document>& documents) {
  Seen seen;
  for (const wiring::Document& document : documents) {
    if (const auto* pci = std::get_if<wiring::PciListing>(&document.content)) {
      for (const wiring::PciFunction& function : pci->functions) {
        seen.nvidia = seen.nvidia || (function.role == wiring::PciRole::kGpu && function.ids.substr(0, 4) == "10de");
        seen.amd = seen.amd || (function.role == wiring::PciRole::kGpu && function.ids.substr(0, 4) == "1002");
      }
    } else if (const auto* listed = std::get_if<wiring::IbPorts>(&document.content)) {
      for (const wiring::IbPort& port : listed->ports) {
        if (port.state == "Active" && port.link_layer == "InfiniBand") seen.ports.push_back(port.adapter + ":" + std::to_string(port.port) + ":" + port.guid);
      }
    }
  }
  return seen;
}

/// The library first, its vendor's tools where the library cannot be asked; what neither shows is listed.
void read_gpus(const Seen& seen, bool tools, const std::string& host, std::vector<wiring::Document>& documents, std::vector<std::string>& unseen) {
  const std::string nvml = run_tool(asking("nvml", ""), host, documents);
  if (!nvml.empty() && seen.nvidia) unseen.push_back("NVLink, models and states of NVIDIA's GPUs: NVML: " + nvml);
  const std::string rocm = run_tool(asking("rocm-smi", ""), host, documents);
  if (!rocm.empty() && seen.amd) unseen.push_back("xGMI and models of AMD's GPUs: ROCm SMI: " + rocm);
  if (!seen.nvidia && !seen.amd && !nvml.empty() && !rocm.empty()) unseen.push_back("GPUs: none among the PCI devices; NVML: " + nvml + ". ROCm SMI: " + rocm);
  if (!tools) return;
  std::vector<Tool> list;
  if (seen.nvidia) list.push_back({{"nvidia-smi", "topo", "-m"}, "path classes between GPUs and NICs", false});
  if (seen.nvidia && !has(documents, wiring::Format::kNvLinkStatus)) list.push_back({{"nvidia-smi", "nvlink", "-s"}, "NVLinks that are up", false});
  if (seen.nvidia && !has(documents, wiring::Format::kSmiQuery)) list.push_back({{"nvidia-smi", "-q"}, "models and clocks of GPUs", false});
  if (seen.amd && !has(documents, wiring::Format::kRocmTopology)) list.push_back({{"rocm-smi", "--showtopo"}, "xGMI between GPUs", false});
  for (const Tool& tool : list) {
    if (const std::string why = run_tool(tool, host, documents); !why.empty()) unseen.push_back(tool.shows + ": `" + tool.words[0] + " " + tool.words[1] + "`: " + why);
  }
}

/// The ports sysfs lists, with what libibverbs adds to them; its own list where sysfs has none.
void read_adapters(const std::string& host, std::vector<wiring::Document>& documents, std::vector<std::string>& unseen) {
  const auto listed = std::find_if(documents.begin(), documents.end(), [](const wiring::Document& document) { return document.format == wiring::Format::kIbPorts; });
  const std::size_t at = static_cast<std::size_t>(listed - documents.begin());
  std::vector<wiring::Document> found;
  const std::string why = run_tool(asking("ibverbs", ""), host, found);
  if (!why.empty() && at < documents.size()) unseen.push_back("packet sizes and GIDs of InfiniBand and RoCE ports: libibverbs: " + why);
  for (wiring::Document& document : found) {
    const auto* ports = std::get_if<wiring::IbPorts>(&document.content);
    if (ports == nullptr) continue;
    if (at >= documents.size()) {
      documents.push_back(std::move(document));
      return;
    }
    for (const std::string& difference : wiring::add_ports(std::get<wiring::IbPorts>(documents[at].content), *ports)) documents[at].notes.push_back({difference, {documents[at].file, 0, 0}});
  }
}

void read_subnets(const Seen& seen, bool ask_anyway, const std::string& host, std::vector<wiring::Document>& documents, std::vector<std::string>& unseen) {
  if (seen.ports.empty() && !ask_anyway) return unseen.push_back("what joins this host to others: no active InfiniBand port here (--live-fabric asks anyway)");
  const std::string library = run_tool(asking("ibnetdisc", "", seen.ports), host, documents);
  if (library.empty()) return;
  const std::string tool = run_tool({{"ibnetdiscover"}, "", false}, host, documents);
  if (!tool.empty()) unseen.push_back("the InfiniBand fabric: libibnetdisc: " + library + "; `ibnetdiscover`: " + tool);
}

}  // namespace

void add_live_options(CLI::App& command, LiveOptions& options) {
  command.add_flag("--live", options.live, "the machine this runs on: sysfs, hwloc, libibverbs, libibnetdisc, NVML, ROCm SMI, or their tools; no root needed");
  command.add_flag("--live-fabric", options.fabric, "with --live: ask the InfiniBand subnet also where this machine shows no port");
  command.add_option("--library", options.library, "only print what this library says: hwloc, ibverbs, ibnetdisc, nvml, rocm-smi")
      ->check(CLI::IsMember(std::vector<std::string>(wiring::library_names().begin(), wiring::library_names().end())));
  command.add_option("--ib-port", options.ports, "with --library ibnetdisc: ports to start from, \"mlx5_0:1\"");
  command.add_option("--sysfs", options.sysfs, "with --live: this folder in place of /sys; only the GPUs' libraries are asked")->group("");
}

namespace {

/// A request sees its own files, not the machine that serves it.
Result<bool> may_look() {
  const MemoryFiles* memory = memory_files();
  if (memory == nullptr || memory->disk_open()) return true;
  return fail("a request cannot look at the machine that serves it", {}, {"run 'chokepoint wiring --live' there, or send what its tools print"});
}

}  // namespace

Result<std::string> library_text(const LiveOptions& options) {
  TRY_INTO([[maybe_unused]] const bool allowed, may_look());
  return wiring::read_library(options.library, options.ports);
}

Result<std::vector<wiring::Document>> live_documents(const LiveOptions& options, std::vector<std::string>& unseen) {
  TRY_INTO([[maybe_unused]] const bool allowed, may_look());
  const bool own = options.sysfs == "/sys";
  const std::string host = own ? own_name() : "host";
  std::vector<wiring::Document> documents;
  // hwloc reads another machine than this one when these are set; then nothing else here may be mixed in.
  if (own && (is_set("HWLOC_XMLFILE") || is_set("HWLOC_FSROOT"))) {
    if (const std::string why = run_tool(asking("hwloc", ""), "", documents); !why.empty()) return fail("HWLOC_XMLFILE or HWLOC_FSROOT is set, and hwloc gives nothing: " + why);
    unseen.push_back("all but what hwloc reads from HWLOC_XMLFILE or HWLOC_FSROOT: that is not the machine this runs on");
    return documents;
  }
  TRY_INTO(wiring::LiveReading reading, wiring::read_live(options.sysfs, host));
  unseen = std::move(reading.unseen);
  documents = std::move(reading.documents);
  const Seen seen = seen_by_sysfs(documents);
  read_gpus(seen, own, host, documents, unseen);
  read_adapters(host, documents, unseen);
  if (!own) return documents;
  if (const std::string why = run_tool(asking("hwloc", ""), host, documents); !why.empty()) unseen.push_back("sockets, caches and what hwloc knows of devices: " + why);
  read_subnets(seen, options.fabric, host, documents, unseen);
  return documents;
}

}  // namespace chokepoint::commands

// SPDX-License-Identifier: Apache-2.0
// `measure --compute`: prints the PyTorch script that times this machine's kernels, or runs it. `measure --network`
// becomes the MPI program beside this one.
#include "commands.hpp"
#include "measure_network.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chokepoint/base/files.hpp>
#include <chokepoint/measure/compute_probe.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <vector>

extern char** environ;

namespace chokepoint::commands {
namespace {

struct MeasureOptions {
  bool compute = false;
  bool run = false;
  std::string python = "python3";
  double seconds = 90;
  std::string device;
};

/// A file that holds the script while Python runs it.
class ScriptFile {
 public:
  static Result<ScriptFile> write() {
    const char* folder = std::getenv("TMPDIR");
    std::string path = std::string(folder && *folder ? folder : "/tmp") + "/chokepoint-probe-XXXXXX";
    const int descriptor = mkstemp(path.data());
    if (descriptor < 0) return fail("cannot create " + path + ": " + std::strerror(errno));
    ::close(descriptor);
    ScriptFile file(path);
    if (auto written = write_text_file(path, measure::compute_script()); !written)
      return tl::make_unexpected(written.error());
    return file;
  }
  ScriptFile(ScriptFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScriptFile& operator=(ScriptFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~ScriptFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScriptFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Runs a program to its end; its exit status, or why it did not start.
Result<int> run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ); error != 0)
    return fail("cannot start '" + words[0] + "': " + std::strerror(error), {},
                {"--python names the Python of your training environment"});
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail("lost '" + words[0] + "': " + std::strerror(errno));
  }
  if (!WIFEXITED(status)) return fail("'" + words[0] + "' was ended by signal " + std::to_string(WTERMSIG(status)));
  return WEXITSTATUS(status);
}

int run_script(const MeasureOptions& options, const CommonOptions& common) {
  auto script = ScriptFile::write();
  if (!script) return report_error(script.error());
  std::vector<std::string> words{options.python, script->path(), "--seconds", std::to_string(options.seconds), "--out", common.out};
  if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
  const auto status = run_program(std::move(words));
  if (!status) return report_error(status.error());
  if (*status == 0) return 0;
  return report_error(Error{"the script ended with exit code " + std::to_string(*status), {},
                            {"it needs PyTorch: --python names the Python of your training environment",
                             "without --run the script itself is printed, to be run where PyTorch is"}});
}

/// Folder of this program; empty where the system does not say.
std::string own_folder() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? directory_of(path.substr(0, static_cast<std::size_t>(length))) : std::string();
}

/// The words after `measure`, with which the MPI program is called; every rank does this, under the same mpirun.
int become_mpi_program(const NetworkOptions& options) {
  const std::string program = own_folder() + "/chokepoint-measure-mpi";
  std::vector<std::string> words{program, "--network", "--budget", std::to_string(options.seconds), "--window", std::to_string(options.window_s),
                                 "--repeats", std::to_string(options.repeats), "--flows", std::to_string(options.flows), "--transport", options.transport, "--out", options.common.out};
  for (const auto& [name, value] : {std::pair{"--groups", &options.groups}, {"--against", &options.against}, {"--save", &options.save}}) {
    if (!value->empty()) words.insert(words.end(), {name, *value});
  }
  if (options.no_collectives) words.emplace_back("--no-collectives");
  if (options.common.json) words.emplace_back("--json");
  if (options.common.quiet) words.emplace_back("--quiet");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return report_error(Error{"cannot start " + program + ": " + std::strerror(errno), {},
                            {"this build has no network probe: install an MPI (Debian: libopenmpi-dev) and build again;",
                             "then: mpirun --host nodeA,nodeB chokepoint measure --network"}});
}

int run(const MeasureOptions& options, const NetworkOptions& network, const CommonOptions& common) {
  if (options.compute && network.network) return report_error(Error{"--compute and --network at once, expected one of them", {}, {}});
  if (network.network) {
    NetworkOptions with_common = network;
    with_common.common = common;
    return become_mpi_program(with_common);
  }
  if (!options.compute)
    return report_error(Error{"nothing to measure was named", {}, {"expected --compute: kernels and launch cost of this machine's accelerator",
                                                                   "or --network, under mpirun: the network between its hosts"}});
  if (options.run) return run_script(options, common);
  return deliver(common, std::string(measure::compute_script()));
}

}  // namespace

void add_measure(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<MeasureOptions>();
  auto network = std::make_shared<NetworkOptions>();
  CLI::App* command = app.add_subcommand("measure", "time this machine's kernels, or the network between hosts");
  command->add_flag("--compute", options->compute, "matrix products, attention, one layer, launches, copies (PyTorch)");
  command->add_flag("--run", options->run, "run the script here and write its table, JSON; without it, print the script");
  command->add_option("--python", options->python, "Python that has PyTorch");
  command->add_option("--seconds", options->seconds, "about how long it may take")->check(CLI::Range(1.0, 600.0));
  command->add_option("--device", options->device, "cuda, xpu or cpu; the first that is there by default")
      ->check(CLI::IsMember({"cuda", "xpu", "cpu"}));
  add_network_options(*command, *network);
  add_common(*command, common);
  command->add_option("-o", common.out, "the same as --out");
  command->callback([options, network, &common, &action] { action = [options, network, &common] { return run(*options, *network, common); }; });
}

}  // namespace chokepoint::commands

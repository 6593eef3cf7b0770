// SPDX-License-Identifier: Apache-2.0
// `measure --compute`: prints the PyTorch script that times this machine's kernels, or runs it.
#include "commands.hpp"

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

namespace chokepoint::cli {
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

int run(const MeasureOptions& options, const CommonOptions& common) {
  if (!options.compute)
    return report_error(Error{"nothing to measure was named", {}, {"expected --compute: kernels and launch cost of this machine's accelerator"}});
  if (options.run) return run_script(options, common);
  return deliver(common, std::string(measure::compute_script()));
}

}  // namespace

void add_measure(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<MeasureOptions>();
  CLI::App* command = app.add_subcommand("measure", "time this machine's kernels; without --run, print the script that does");
  command->add_flag("--compute", options->compute, "matrix products, attention, one layer, launches, copies (PyTorch)");
  command->add_flag("--run", options->run, "run the script here and write its table, JSON");
  command->add_option("--python", options->python, "Python that has PyTorch");
  command->add_option("--seconds", options->seconds, "about how long it may take")->check(CLI::Range(1.0, 600.0));
  command->add_option("--device", options->device, "cuda, xpu or cpu; the first that is there by default")
      ->check(CLI::IsMember({"cuda", "xpu", "cpu"}));
  add_common(*command, common);
  command->add_option("-o", common.out, "the same as --out");
  command->callback([options, &common, &action] { action = [options, &common] { return run(*options, common); }; });
}

}  // namespace chokepoint::cli

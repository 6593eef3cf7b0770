// SPDX-License-Identifier: Apache-2.0
#include "job_options.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/report/settings_view.hpp>

#include <algorithm>
#include <filesystem>

namespace chokepoint::commands {

void add_job_options(CLI::App& command, JobOptions& o) {
  command.add_option("job", o.file, "job file (docs/formats/job.md), or a framework's config or launch script (docs/formats/frameworks.md)");
  add_job_values(command, o);
}

void add_job_values(CLI::App& command, JobOptions& o) {
  command.add_option("--model", o.values.model, "catalogue name or path of a Hugging Face config.json");
  command.add_option("--cluster", o.values.cluster, "catalogue name, cluster file, or what nvidia-smi topo -m or NCCL printed");
  command.add_option("--network", o.values.network, "what 'measure --network --save' wrote: measured rates in place of the cluster's");
  command.add_option("--accelerator", o.values.accelerator, "name of the accelerator, where the wiring does not say it");
  command.add_option("--hosts", o.values.hosts, "number of hosts");
  command.add_option("--gpus", o.values.gpus, "number of accelerators used (all of the cluster by default)");
  command.add_option("--batch", o.values.batch, "sequences per optimizer step, all ranks together");
  command.add_option("--seq,--sequence", o.values.sequence, "tokens per sequence");
  command.add_option("--precision", o.values.precision, "bf16, fp16, fp8, fp32 or tf32");
  command.add_option("--framework", o.values.framework, "whose kernels and overlap: megatron, pytorch, torchtitan, deepspeed ...");
  command.add_option("--attention", o.values.attention, "attention kernel");
  command.add_flag("--compiled,!--eager", o.values.compiled, "torch.compile or captured graphs");
}

Result<job::JobFile> load_job(const JobOptions& options) {
  std::string text;
  if (!options.file.empty()) { TRY_INTO(text, read_text_file(options.file)); }
  return job::read_job(text, options.file, options.values);
}

std::string with_settings(std::string text, const job::JobFile& file, bool json, bool quiet) {
  if (!file.settings) return text;
  if (json) return report::with_settings_json(text, *file.settings);
  return text + report::settings_text(*file.settings, report::terminal_style(), quiet);
}

namespace {
constexpr std::size_t kLargestText_bytes = 256 * 1024;  // files that name others are small

/// Files that exist and stand as a word in `file`, by its own directory.
std::vector<std::string> named_in(const std::string& file) {
  if (const MemoryFiles* memory = memory_files(); memory != nullptr && !memory->disk_open()) return {};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored) || std::filesystem::file_size(file, ignored) > kLargestText_bytes) return {};
  const Result<std::string> text = read_text_file(file);
  std::vector<std::string> out;
  constexpr std::string_view kBetween = " \t\r\n,{}[]\"'=:";
  for (std::size_t at = 0; text && at < text->size();) {
    const std::size_t end = std::min(text->find_first_of(kBetween, at), text->size());
    const std::string word = text->substr(at, end - at);
    at = end + 1;
    if (word.size() < 3 || word.size() > 400) continue;
    const std::filesystem::path path = std::filesystem::path(file).parent_path() / word;
    if (std::filesystem::is_regular_file(path, ignored)) out.push_back(path.string());
  }
  return out;
}
}  // namespace

std::vector<std::string> with_files_they_name(std::vector<std::string> files) {
  constexpr std::size_t kMost = 200;
  for (std::size_t i = 0; i < files.size() && files.size() < kMost; ++i) {
    if (files[i].empty() || files[i] == "-") continue;
    for (std::string& other : named_in(files[i])) {
      if (std::find(files.begin(), files.end(), other) == files.end()) files.push_back(std::move(other));
    }
  }
  return files;
}

std::vector<std::string> input_files(const JobOptions& options) {
  return with_files_they_name({options.file, options.values.model.value_or(""), options.values.cluster.value_or(""), options.values.network.value_or("")});
}

}  // namespace chokepoint::commands

// SPDX-License-Identifier: Apache-2.0
#include "job_options.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/report/settings_view.hpp>

namespace chokepoint::cli {

void add_job_options(CLI::App& command, JobOptions& o) {
  command.add_option("job", o.file, "job file (docs/formats/job.md), or a framework's config or launch script (docs/formats/frameworks.md)");
  add_job_values(command, o);
}

void add_job_values(CLI::App& command, JobOptions& o) {
  command.add_option("--model", o.values.model, "catalogue name or path of a Hugging Face config.json");
  command.add_option("--cluster", o.values.cluster, "catalogue name, cluster file, or what nvidia-smi topo -m or NCCL printed");
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

std::vector<std::string> input_files(const JobOptions& options) {
  return {options.file, options.values.model.value_or(""), options.values.cluster.value_or("")};
}

}  // namespace chokepoint::cli

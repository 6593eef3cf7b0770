// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a job file and command-line options to a job. Options override the file; every default taken is noted.
//
//   model: llama-3-8b            # catalogue name, path of a Hugging Face config.json, or a mapping of sizes
//   cluster: two-boxes.yaml      # cluster file, host file (topo -m, NCCL XML), or catalogue name such as dgx-h100
//   batch: 256                   # sequences per optimizer step
//   sequence: 4096
//
// docs/formats/job.md lists all keys. A framework's own config is accepted in the file's place (docs/formats/frameworks.md);
// what it cannot say (cluster; for some the model, sequence, batch) comes from the options.
#include <chokepoint/frameworks/frameworks.hpp>
#include <chokepoint/parallel/job.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::job {

struct Options {
  std::optional<std::string> model;
  std::optional<std::string> cluster;
  std::optional<std::string> network;   ///< file that `chokepoint measure --network --save` wrote
  std::optional<std::string> accelerator;
  std::optional<std::string> precision;
  std::optional<std::string> framework;
  std::optional<std::string> attention;
  std::optional<std::string> strategy;
  std::optional<int> hosts;
  std::optional<int> gpus;
  std::optional<int> sequence;
  std::optional<double> batch;
  std::optional<bool> compiled;
  std::optional<model::Model> sizes;  ///< a model without a name, where `model` is not set
};

struct JobFile {
  parallel::Job job;
  std::optional<parallel::Strategy> strategy;  ///< when the file or the options name one
  std::vector<std::string> imperfections;      ///< words of `imperfections:`, as predict --imperfection takes them
  SourcePos imperfections_pos;
  std::optional<frameworks::Reading> settings; ///< when the job came out of a framework's config
};

/// `text` may be empty when options say everything; `file` names it in messages and anchors relative paths.
Result<JobFile> read_job(std::string_view text, const std::string& file, const Options& options);

/// A cluster by file or catalogue name; `hosts` or `gpus` set its size where the source leaves it open.
Result<topology::Cluster> resolve_cluster(const std::string& name, const std::string& base_directory,
                                          std::optional<int> hosts, std::optional<int> gpus,
                                          const std::optional<std::string>& accelerator);

/// Puts the measured network of a file in the place of the cluster's own (wiring::use_network).
Result<bool> apply_network(topology::Cluster& cluster, const std::string& name, const std::string& base_directory);

/// "flash2", "unfused", ...
Result<compute::AttentionKernel> parse_attention(std::string_view text, const SourcePos& pos = {});
/// The newest kernel the accelerator runs.
compute::AttentionKernel default_attention(const hardware::Accelerator& accelerator);

/// A model by catalogue name or path of a Hugging Face config.json.
Result<model::Model> resolve_model(const std::string& name, const std::string& base_directory);

}  // namespace chokepoint::job

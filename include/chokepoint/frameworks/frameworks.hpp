// SPDX-License-Identifier: Apache-2.0
#pragma once
// Settings of training frameworks as jobs: Megatron-LM arguments (a launch script), DeepSpeed JSON, torchtitan TOML and
// its newer keys, accelerate YAML, NeMo / Megatron-Bridge recipes, with the launcher lines around them.
//
//   if (recognise(text)) {
//     TRY_INTO(Reading reading, read(text, "train.sh", open));   // what the files say
//     ...                                                        // model and cluster, from the reading or from options
//     TRY_INTO(Strategy strategy, settle(reading, job));         // what follows for this job: degrees, batch, findings
//   }
//
// Every setting ends as used, without effect on time and memory, not modelled, or unknown: none is dropped silently.
// docs/formats/frameworks.md has the table.
#include <chokepoint/base/result.hpp>
#include <chokepoint/parallel/job.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::frameworks {

/// How a text is written; a script may hold settings of any framework.
enum class Format { kScript, kDeepspeedJson, kTorchtitan, kAccelerateYaml, kNemoYaml };
std::string_view name(Format format);
/// By content, never by name; no value for a job file or anything else.
std::optional<Format> recognise(std::string_view text);

enum class Use {
  kUsed,         ///< changes the job or the strategy
  kNoEffect,     ///< changes neither time nor memory of a step (paths, learning rate, logging)
  kNotModelled,  ///< could change them, but is not part of the model; the note says what is taken instead
  kUnknown,      ///< no such setting is known here
};
std::string_view name(Use use);

/// One setting as it was found: "zero_optimization.stage", "tensor-model-parallel-size", "NCCL_IB_HCA".
struct Setting {
  std::string key;
  std::string value;  ///< empty for a flag
  SourcePos pos;
  Use use = Use::kUnknown;
  std::string note;  ///< what it means here, where that needs saying
};

/// Settings that contradict each other, do nothing, or cost time without need.
struct Finding {
  std::string id;        ///< stable: "overlap_param_gather_without_distributed_optimizer"
  bool refused = false;  ///< the framework would not start, or would train something else
  SourcePos pos;
  std::string what;
  std::string fix;
};

/// What the files say, before the cluster is known.
struct Reading {
  Format format = Format::kScript;
  std::string framework;  ///< for people: "Megatron-LM"
  std::vector<Setting> settings;
  std::vector<Finding> findings;

  std::optional<model::Model> model;      ///< when the settings give its sizes
  std::optional<std::string> model_name;  ///< of the catalogue or a Hugging Face config.json
  std::optional<int> hosts;
  std::optional<int> gpus;
  std::optional<int> sequence;
  std::optional<double> batch;         ///< sequences per step
  std::optional<double> batch_tokens;  ///< torchtitan's newer keys count tokens
  std::optional<double> micro_batch_tokens;

  parallel::Framework software = parallel::Framework::kPytorch;
  std::optional<hardware::Dtype> dtype;
  std::optional<bool> compiled;
  std::optional<bool> fp32_gradients;
  std::optional<compute::AttentionKernel> attention;
  std::optional<double> optimizer_bytes_per_parameter;
  std::optional<int> adapter_rank;  ///< LoRA: the base model is frozen
  bool fp8_rowwise = false;
  bool token_once_per_host = false;
  bool fused_loss = false;
  bool fused_operators = false;

  parallel::Strategy strategy;  ///< data and accumulate 0: to be derived from the job
  bool micro_batch_given = false;
  int replicas = 0;  ///< copies of sharded state (HSDP, optimizer instances); 0: as the strategy says
  int first_stage_layers = -1, last_stage_layers = -1;     ///< of an uneven pipeline; -1: as even as possible
  bool embedding_is_layer = false, loss_is_layer = false;  ///< Megatron counts them when it spreads layers
  int layers_per_chunk = 0;                                ///< decides virtual stages once the model is known
  int default_chunks = 1;                                  ///< of an interleaved schedule that does not say how many
  SourcePos strategy_pos;                                  ///< of the settings that lay the job out, for messages
};

/// Opens a file that a script or a config names.
using Open = std::function<Result<std::string>(const std::string& path)>;

Result<Reading> read(std::string_view text, const std::string& file, const Open& open);

/// What of the reading describes the software, into the job.
void apply(const Reading& reading, parallel::Job& job);

/// The strategy for a job whose model and cluster are known. Sets the job's batch where only its factors were given,
/// and adds the findings that need the job.
Result<parallel::Strategy> settle(Reading& reading, parallel::Job& job, bool batch_given);

}  // namespace chokepoint::frameworks

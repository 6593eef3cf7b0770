// SPDX-License-Identifier: Apache-2.0
#pragma once
// One function for each framework: settings in, what they mean for the job out. Private to the module.
#include <chokepoint/frameworks/frameworks.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings.hpp"
#include "shell.hpp"

namespace chokepoint::frameworks {

/// Last entry of stage_layers whose layers the model decides (settle).
inline constexpr int kRestOfLayers = -1;

inline constexpr int kMostRanks = 1 << 20;

/// How a script starts its processes.
struct Launch {
  std::optional<int> hosts;
  std::optional<int> gpus_per_host;
  std::optional<int> gpus;
  std::optional<int> torchtitan_processes;  ///< NGPU of its run_train.sh, for one host
  SourcePos pos;                   ///< of what gave the numbers
  std::vector<Setting> settings;   ///< of the launchers, classified
  std::vector<Setting> arguments;  ///< of the program
  std::string accelerate_config;   ///< files that the launch line names
  std::string deepspeed_config;
  std::optional<std::string> mixed_precision;  ///< accelerate launch --mixed_precision
  bool uses_accelerate = false;
  bool uses_deepspeed = false;
  bool uses_fsdp = false;
};
Result<Launch> read_launch(const Script& script, std::vector<Finding>& findings);

void note_environment(const Script& script, Reading& out);
/// Needs the finished reading: whether a variable helps depends on the strategy.
void check_environment(Reading& out);

Result<bool> read_megatron(Settings& settings, Reading& out);
/// Sizes of the model in Megatron's words; no value when the settings give none.
Result<std::optional<model::Model>> read_megatron_model(Settings& settings, Reading& out);
Result<bool> read_deepspeed(Settings& settings, Reading& out);
Result<bool> read_torchtitan(Settings& settings, Reading& out);
/// A DeepSpeed config file that the settings name comes back in `deepspeed_config`.
Result<bool> read_accelerate(Settings& settings, Reading& out, std::string& deepspeed_config);
Result<bool> read_trainer(Settings& settings, Reading& out);
/// LLaMA-Factory's and axolotl's YAML.
Result<bool> read_trainer_file(Settings& settings, Reading& out, std::string& deepspeed_config);
Result<bool> read_nemo(Settings& settings, Reading& out);

/// A catalogue name for what frameworks call a model ("meta-llama/Meta-Llama-3-8B", "llama3_8b"); no value if none
/// fits.
std::optional<std::string> catalogue_model(std::string_view name);

inline void find(Reading& out, std::string id, bool refused, SourcePos pos, std::string what, std::string fix) {
  out.findings.push_back({std::move(id), refused, std::move(pos), std::move(what), std::move(fix)});
}

}  // namespace chokepoint::frameworks

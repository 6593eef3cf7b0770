// SPDX-License-Identifier: Apache-2.0
// Megatron-Bridge's ConfigContainer (model, train, ddp, optimizer, comm_overlap, mixed_precision, dataset ...) and
// NeMo's older trainer/model sections. Their words are Megatron's with underscores, so sections are taken off and
// megatron.cpp reads the rest.
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

/// Sections without bearing on the time of a step.
constexpr std::array kQuiet = {"rng",        "scheduler",  "logger",         "tokenizer",           "checkpoint",
                               "profiling",  "ft",         "nvrx_straggler", "rerun_state_machine", "exp_manager",
                               "data",       "validation", "straggler",      "inprocess_restart",   "tensor_inspect",
                               "model.data", "log",        "resume"};
/// Sections whose last word is Megatron's.
constexpr std::array kSections = {"model", "train",           "ddp",     "optimizer", "comm_overlap", "dataset",
                                  "dist",  "mixed_precision", "trainer", "strategy",  "optim"};

struct Renamed {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array kRenamed = {
    Renamed{"encoder_seq_length", "seq_length"},
    Renamed{"sequence_length", "seq_length"},
    Renamed{"overlap_grad_sync", "overlap_grad_reduce"},
    Renamed{"overlap_param_sync", "overlap_param_gather"},
    Renamed{"activations_checkpoint_granularity", "recompute_granularity"},
    Renamed{"activations_checkpoint_method", "recompute_method"},
    Renamed{"activations_checkpoint_num_layers", "recompute_num_layers"},
    Renamed{"ub_tp_comm_overlap", "tp_comm_overlap"},
    Renamed{"grad_reduce_in_fp32", "grad_reduce_in_fp32"},
    Renamed{"ffn_hidden_size", "ffn_hidden_size"},
    Renamed{"num_gpus_per_node", "devices"},
};

std::string without_section(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

bool under(const std::string& key, std::string_view section) {
  return key == section || (key.starts_with(section) && key.size() > section.size() && key[section.size()] == '.');
}

void simple_values(Settings& s, Reading& out) {
  // "bf16_mixed", "bf16-mixed", "bf16_with_fp8_delayed_scaling_mixed": the recipe's name is all there is.
  for (const char* key : {"mixed_precision", "precision"}) {
    const auto word = s.text(key);
    if (!word) continue;
    const std::string text = lower(*word);
    if (text.find("fp8") != std::string::npos) {
      out.dtype = hardware::Dtype::kFp8;
    } else if (text.find("bf16") != std::string::npos) {
      out.dtype = hardware::Dtype::kBf16;
    } else if (text.find("16") != std::string::npos) {
      out.dtype = hardware::Dtype::kFp16;
    }
  }
}

}  // namespace

Result<bool> read_nemo(Settings& s, Reading& out) {
  std::vector<Setting> plain;
  for (Setting setting : s.list()) {
    // NeMo 1 names the tokenizer inside the model, in Megatron's words: it says the size of the vocabulary.
    if (setting.key == "model.tokenizer.type" || setting.key == "tokenizer.tokenizer_type") {
      setting.key = "tokenizer_type";
      plain.push_back(std::move(setting));
      continue;
    }
    const bool quiet =
        std::any_of(kQuiet.begin(), kQuiet.end(), [&](const char* section) { return under(setting.key, section); });
    const std::string section = setting.key.substr(0, setting.key.find('.'));
    const bool known = std::find(kSections.begin(), kSections.end(), section) != kSections.end();
    if (quiet || setting.key.ends_with("_target_")) {
      setting.use = Use::kNoEffect;
      plain.push_back(std::move(setting));
      continue;
    }
    const std::string last = known ? without_section(setting.key) : setting.key;
    const auto renamed =
        std::find_if(kRenamed.begin(), kRenamed.end(), [&](const Renamed& r) { return r.theirs == last; });
    setting.key = renamed == kRenamed.end() ? last : std::string(renamed->ours);
    plain.push_back(std::move(setting));
  }
  s = Settings(std::move(plain));
  TRY_INTO(const auto hosts, s.integer("num_nodes", 1, kMostRanks));
  TRY_INTO(const auto devices, s.integer("devices", 1, kMostRanks));
  out.hosts = hosts;
  if (devices && static_cast<double>(*devices) * hosts.value_or(1) <= kMostRanks)
    out.gpus = *devices * hosts.value_or(1);
  out.format = Format::kNemoYaml;
  TRY_INTO([[maybe_unused]] const bool megatron, read_megatron(s, out));
  simple_values(s, out);
  std::erase_if(out.findings, [&](const Finding& f) {
    return f.id == "trains_in_fp32" && out.dtype && *out.dtype != hardware::Dtype::kFp32;
  });
  TRY_INTO(const auto in_fp32, s.boolean("grad_reduce_in_fp32"));
  if (in_fp32) out.fp32_gradients = *in_fp32;
  constexpr std::array kMore = {Known{"max_steps", ""},
                                Known{"max_epochs", ""},
                                Known{"val_check_interval", ""},
                                Known{"limit_*", ""},
                                Known{"log_*", ""},
                                Known{"accelerator", ""},
                                Known{"enable_*", ""},
                                Known{"gradient_clip_val", ""},
                                Known{"name", ""},
                                Known{"restore_from_path", ""},
                                Known{"params_dtype", ""},
                                Known{"pipeline_dtype", ""},
                                Known{"autocast_dtype", ""},
                                Known{"bias_activation_fusion", ""},
                                Known{"masked_softmax_fusion", ""},
                                Known{"bias_dropout_fusion", ""},
                                Known{"apply_rope_fusion", ""},
                                Known{"activation_func", ""},
                                Known{"data_parallel_size", ""},
                                Known{"path_to_cache", ""},
                                Known{"blend*", ""},
                                Known{"num_dataset_builder_threads", ""},
                                Known{"random_seed", ""},
                                Known{"lr_*", ""},
                                Known{"lr", ""},
                                Known{"betas", ""},
                                Known{"use_distributed_optimizer", ""},
                                Known{"replace_sampler_ddp", ""},
                                Known{"use_distributed_sampler", ""},
                                Known{"logger", ""},
                                Known{"benchmark", ""}};
  constexpr std::array kNone = {Known{"accumulate_grad_batches", "accumulation follows from the batch sizes"}};
  s.classify(kMore, kNone);
  out.framework = "NeMo / Megatron-Bridge";
  return true;
}

}  // namespace chokepoint::frameworks

// SPDX-License-Identifier: Apache-2.0
// Which framework a text belongs to, and the files it leads to.
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/frameworks/not_settings.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

std::string_view name(Format format) {
  switch (format) {
    case Format::kScript:
      return "launch script";
    case Format::kDeepspeedJson:
      return "DeepSpeed JSON";
    case Format::kTorchtitan:
      return "torchtitan config";
    case Format::kAccelerateYaml:
      return "accelerate YAML";
    case Format::kNemoYaml:
      return "NeMo or Megatron-Bridge YAML";
  }
  return "";
}

std::string_view name(Use use) {
  switch (use) {
    case Use::kUsed:
      return "used";
    case Use::kNoEffect:
      return "no effect";
    case Use::kNotModelled:
      return "not modelled";
    case Use::kUnknown:
      return "unknown";
  }
  return "";
}

std::optional<std::string> catalogue_model(std::string_view name) {
  std::string word = lower(name.substr(0, 200));
  if (const std::size_t slash = word.find_last_of('/'); slash != std::string::npos) word = word.substr(slash + 1);
  std::replace(word.begin(), word.end(), '_', '-');
  for (const std::string_view ending :
       {"-hf", "-instruct", "-base", "-chat", "-it", "-v0.1", "-v0.3", "-pretrain-config", "-config"}) {
    if (word.ends_with(ending)) word.resize(word.size() - ending.size());
  }
  if (word.starts_with("meta-")) word = word.substr(5);
  for (const std::string_view family : {"llama", "gpt", "gemma"}) {  // llama3-8b is llama-3-8b in the catalogue
    const std::size_t at = family.size();
    if (word.starts_with(family) && word.size() > at && word[at] >= '0' && word[at] <= '9') {
      if (model::find_model(word)) break;
      word.insert(at, "-");
    }
  }
  if (!model::find_model(word)) return std::nullopt;
  return word;
}

namespace {

bool has_line(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  for (const std::string_view line : split_lines(text)) {
    const std::string_view plain = trim(line);
    if (plain.empty() || plain.front() == '#') continue;
    for (const std::string_view beginning : beginnings) {
      if (plain.starts_with(beginning)) return true;
    }
  }
  return false;
}

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// Comments may hold commands in YAML and TOML, and anything in scripts.
std::string without_comments(std::string_view text) {
  std::string out;
  for (const std::string_view line : split_lines(text)) {
    if (!trim(line).starts_with('#')) out += std::string(line) + "\n";
  }
  return out;
}

bool is_script(std::string_view text, bool shebang) {
  const bool launcher = mentions(
      text, {"torchrun", "srun ", "mpirun", "deepspeed ", "accelerate launch", "torch.distributed", "python ", "run_train.sh"});
  const bool options = mentions(text, {" --", "\n--", "CONFIG_FILE="}) || text.starts_with("--");
  return options && (shebang || launcher ||
                     mentions(text, {"--tensor-model-parallel-size", "--micro-batch-size", "--num-layers"}));
}

/// LLaMA-Factory's and axolotl's files: the Trainer's arguments under their own names or nearly.
bool is_trainer_file(std::string_view body) {
  return (has_line(body, {"model_name_or_path:"}) && has_line(body, {"per_device_train_batch_size:"})) ||
         (has_line(body, {"base_model:"}) && has_line(body, {"micro_batch_size:", "sequence_len:"}));
}

}  // namespace

std::optional<Format> recognise(std::string_view text) {
  const bool shebang = trim(text).starts_with("#!");
  const std::string plain = without_comments(text);
  const std::string_view body = trim(plain);
  if (body.starts_with('{')) {
    if (mentions(body, {"\"zero_optimization\"", "\"train_micro_batch_size_per_gpu\"", "\"train_batch_size\""}))
      return Format::kDeepspeedJson;
    if (mentions(body, {"\"parallelism\""}) && mentions(body, {"\"training\""})) return Format::kTorchtitan;
    return std::nullopt;
  }
  if (is_script(body, shebang)) return Format::kScript;
  if (has_line(body, {"[training]", "[parallelism]", "[experimental]", "[activation_checkpoint]", "[job]"}))
    return Format::kTorchtitan;
  if (has_line(body, {"distributed_type:", "compute_environment:", "fsdp_config:", "parallelism_config:",
                      "deepspeed_config:"}) || is_trainer_file(body))
    return Format::kAccelerateYaml;
  if (mentions(body, {"tensor_model_parallel_size", "pipeline_model_parallel_size"}) ||
      (mentions(body, {"micro_batch_size"}) && mentions(body, {"global_batch_size"}) &&
       mentions(body, {"num_layers"}))) {
    return Format::kNemoYaml;
  }
  return std::nullopt;
}

namespace {

enum class Dialect { kMegatron, kTorchtitan, kNemo, kTrainer };

Dialect dialect_of(const Settings& s) {
  if (s.has("tensor_model_parallel_size") || s.has("num_layers") ||
      (s.has("micro_batch_size") && s.has("global_batch_size")))
    return Dialect::kMegatron;
  const auto begins = [&](std::string_view word) {
    return std::any_of(s.list().begin(), s.list().end(), [&](const Setting& x) { return x.key.starts_with(word); });
  };
  if (begins("parallelism.") || begins("training.") || s.has("job.config_file") || (s.has("module") && s.has("config")))
    return Dialect::kTorchtitan;
  if (begins("model.") || begins("trainer.") || begins("train.")) return Dialect::kNemo;
  return Dialect::kTrainer;
}

/// Reads files that settings name; a file named twice is read once.
class Follow {
 public:
  Follow(const Open& open, Reading& out) : open_(open), out_(out) {}

  Result<std::string> text(const std::string& path, const SourcePos& pos) {
    if (path.find('$') != std::string::npos) {
      return fail(fmt::format("the settings name '{}', a variable the script does not set", path.substr(0, 100)), pos);
    }
    Result<std::string> found = open_(path);
    if (!found)
      return fail(fmt::format("the settings name '{}', which cannot be read", path.substr(0, 200)), pos,
                  {found.error().message});
    if (!recognise(*found)) {
      if (auto wrong = not_settings(*found, path)) return tl::make_unexpected(std::move(*wrong));
    }
    return found;
  }

  Result<bool> deepspeed(const std::string& path, const SourcePos& pos) {
    if (path.empty() || deepspeed_done_) return true;
    deepspeed_done_ = true;
    TRY_INTO(const std::string content, text(path, pos));
    TRY_INTO(std::vector<Setting> list, flatten_yaml(content, path));
    Settings settings(std::move(list));
    const int micro = out_.strategy.micro_batch, accumulate = out_.strategy.accumulate;
    const bool given = out_.micro_batch_given;
    const parallel::Strategy before = out_.strategy;
    TRY_INTO([[maybe_unused]] const bool ok, read_deepspeed(settings, out_));
    if (out_.software == parallel::Framework::kMegatronDeepspeed) keep_layout(before);
    check_batch(settings, given, micro, accumulate);
    append(out_.settings, settings);
    return true;
  }

  Result<bool> accelerate(const std::string& path, const SourcePos& pos) {
    TRY_INTO(const std::string content, text(path, pos));
    TRY_INTO(std::vector<Setting> list, flatten_yaml(content, path));
    Settings settings(std::move(list));
    std::string config;
    TRY_INTO([[maybe_unused]] const bool ok, read_accelerate(settings, out_, config));
    append(out_.settings, settings);
    return deepspeed(config, settings.pos("deepspeed_config.deepspeed_config_file"));
  }

 private:
  /// Of Megatron-DeepSpeed's file only what the engine does counts: the arguments lay out the ranks and the batch.
  void keep_layout(const parallel::Strategy& before) {
    parallel::Strategy& t = out_.strategy;
    t.tensor = before.tensor;
    t.context = before.context;
    t.expert = before.expert;
    t.sequence_parallel = before.sequence_parallel;
    t.micro_batch = before.micro_batch;
    t.accumulate = before.accumulate;
  }

  /// The Trainer's arguments and the file may both say it.
  void check_batch(const Settings& settings, bool given, int micro, int accumulate) {
    parallel::Strategy& t = out_.strategy;
    if (given && settings.has("train_micro_batch_size_per_gpu") && t.micro_batch != micro) {
      find(out_, "micro_batch_disagrees", true, settings.pos("train_micro_batch_size_per_gpu"),
           fmt::format("train_micro_batch_size_per_gpu is {}, the Trainer's per_device_train_batch_size {}",
                       t.micro_batch, micro),
           "write \"auto\" in the file");
    }
    if (accumulate > 0 && settings.has("gradient_accumulation_steps") && t.accumulate != accumulate) {
      find(out_, "accumulation_disagrees", true, settings.pos("gradient_accumulation_steps"),
           fmt::format("gradient_accumulation_steps is {}, the Trainer's {}", t.accumulate, accumulate),
           "write \"auto\" in the file");
    }
  }

  const Open& open_;
  Reading& out_;
  bool deepspeed_done_ = false;
};

/// "--parallelism.no-enable-sequence-parallel" is the flag without "no", off.
Settings without_negations(const Settings& s) {
  std::vector<Setting> list = s.list();
  for (Setting& setting : list) {
    const std::size_t at = setting.key.rfind('.') + 1;  // 0: no section
    if (!setting.value.empty() || setting.key.compare(at, 3, "no_") != 0) continue;
    setting.key.erase(at, 3);
    setting.value = "false";
  }
  return Settings(std::move(list));
}

Result<bool> read_arguments(Settings& s, Dialect dialect, const Launch& launch, Follow& follow, Reading& out) {
  if (dialect == Dialect::kMegatron) {
    TRY_INTO([[maybe_unused]] const bool megatron, read_megatron(s, out));
    if (out.software != parallel::Framework::kMegatronDeepspeed) return true;
    s.mark("deepspeed_config", Use::kUsed);
    return follow.deepspeed(s.text("deepspeed_config").value_or(launch.deepspeed_config), s.pos("deepspeed_config"));
  }
  if (dialect == Dialect::kNemo) return read_nemo(s, out);
  if (dialect == Dialect::kTorchtitan) s = without_negations(s);
  if (dialect == Dialect::kTorchtitan) {
    if (const auto path = s.text("job.config_file")) {
      TRY_INTO(const std::string content, follow.text(*path, s.pos("job.config_file")));
      TRY_INTO(std::vector<Setting> both, flatten_toml(content, *path));
      both.insert(both.end(), s.list().begin(), s.list().end());
      s = Settings(std::move(both));
    }
    return read_torchtitan(s, out);
  }
  if (!launch.accelerate_config.empty()) {
    TRY_INTO([[maybe_unused]] const bool yaml, follow.accelerate(launch.accelerate_config, launch.pos));
  }
  if (launch.uses_fsdp && out.strategy.zero == 0) {
    out.strategy.zero = 3;
    out.strategy.sharder = parallel::Sharder::kFsdp;
    out.strategy.sync_last_only = true;
  }
  TRY_INTO([[maybe_unused]] const bool trainer, read_trainer(s, out));
  if (out.micro_batch_given && out.software != parallel::Framework::kDeepspeed && out.strategy.accumulate == 0)
    out.strategy.accumulate = 1;
  std::string config = launch.deepspeed_config;
  for (const char* key : {"deepspeed", "deepspeed_config"}) {
    if (const auto path = s.text(key); path && path->find(".json") != std::string::npos) config = *path;
    s.flag(key);
  }
  return follow.deepspeed(config, s.has("deepspeed") ? s.pos("deepspeed") : launch.pos);
}

/// One finding for all variables that different branches set, where the script does not say which is run.
void note_open_branches(const Script& script, Reading& out) {
  if (script.left_open.empty()) return;
  std::string names;
  constexpr std::size_t kMostNamed = 4;
  for (std::size_t i = 0; i < std::min(kMostNamed, script.left_open.size()); ++i) {
    const Assignment& a = script.left_open[i];
    names += fmt::format("{}{}={}", names.empty() ? "" : ", ", a.name, a.value.substr(0, 60));
  }
  if (script.left_open.size() > kMostNamed) names += fmt::format(" and {} more", script.left_open.size() - kMostNamed);
  find(out, "script_branch_left_open", false, script.left_open.front().pos,
       fmt::format("branches set variables differently and the script does not say which is run; the first is taken: {}", names),
       "set what the condition asks for above it");
}

Result<bool> read_script(std::string_view text, const std::string& file, const Open& open, Reading& out) {
  TRY_INTO(const Script script, read_shell(text, file));
  Result<Launch> found = read_launch(script, out.findings);
  if (!found) {
    found.error().pos = {file, 0, 0};
    return tl::make_unexpected(found.error());
  }
  const Launch& launch = *found;
  out.hosts = launch.hosts;
  out.gpus = launch.gpus;
  if (launch.mixed_precision) {
    if (const auto dtype = hardware::parse_dtype(*launch.mixed_precision == "no" ? "fp32" : *launch.mixed_precision))
      out.dtype = *dtype;
  }
  const Open written_or_there = [&](const std::string& path) -> Result<std::string> {
    const auto written = script.files.find(path);
    return written == script.files.end() ? open(path) : Result<std::string>(written->second);
  };
  Follow follow(written_or_there, out);
  Settings plain(launch.arguments);
  Settings underscored(launch.arguments, true);
  const Dialect dialect = dialect_of(underscored);
  Settings& settings = dialect == Dialect::kNemo ? plain : underscored;
  out.settings = launch.settings;
  TRY_INTO([[maybe_unused]] const bool ok, read_arguments(settings, dialect, launch, follow, out));
  out.format = Format::kScript;
  append(out.settings, settings);
  note_environment(script, out);
  note_open_branches(script, out);
  return true;
}

Result<bool> read_file(Format format, std::string_view text, const std::string& file, const Open& open, Reading& out) {
  const bool toml = format == Format::kTorchtitan && !trim(text).starts_with('{');
  TRY_INTO(std::vector<Setting> list, toml ? flatten_toml(text, file) : flatten_yaml(text, file));
  Settings settings(std::move(list));
  Follow follow(open, out);
  std::string config;
  if (format == Format::kDeepspeedJson) {
    TRY_INTO([[maybe_unused]] const bool ok, read_deepspeed(settings, out));
  } else if (format == Format::kTorchtitan) {
    TRY_INTO([[maybe_unused]] const bool ok, read_torchtitan(settings, out));
  } else if (format == Format::kAccelerateYaml && (settings.has("base_model") || settings.has("model_name_or_path"))) {
    TRY_INTO([[maybe_unused]] const bool ok, read_trainer_file(settings, out, config));
    append(out.settings, settings);
    return follow.deepspeed(config, settings.pos("deepspeed"));
  } else if (format == Format::kAccelerateYaml) {
    TRY_INTO([[maybe_unused]] const bool ok, read_accelerate(settings, out, config));
  } else {
    TRY_INTO([[maybe_unused]] const bool ok, read_nemo(settings, out));
  }
  append(out.settings, settings);
  return follow.deepspeed(config, settings.pos("deepspeed_config.deepspeed_config_file"));
}

}  // namespace

Result<Reading> read(std::string_view text, const std::string& file, const Open& open) {
  const auto format = recognise(text);
  if (!format) {
    return fail("is no framework's config that is known here", {file, 0, 0},
                {"known: Megatron-LM arguments, DeepSpeed JSON, torchtitan TOML, accelerate YAML, NeMo or "
                 "Megatron-Bridge YAML"});
  }
  Reading out;
  out.format = *format;
  out.strategy.data = 0;
  out.strategy.accumulate = 0;
  if (*format == Format::kScript) {
    TRY_INTO([[maybe_unused]] const bool ok, read_script(text, file, open, out));
  } else {
    TRY_INTO([[maybe_unused]] const bool ok, read_file(*format, text, file, open, out));
  }
  out.format = *format;
  check_environment(out);
  if (out.strategy.virtual_stages > 1 && out.strategy.schedule == parallel::Schedule::kOneForwardOneBackward) {
    out.strategy.schedule = parallel::Schedule::kInterleaved;
  }
  return out;
}

}  // namespace chokepoint::frameworks

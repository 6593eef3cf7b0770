// SPDX-License-Identifier: Apache-2.0
// torchrun, srun and sbatch, deepspeed, accelerate launch, mpirun: how many processes start, and what they are given.
// Options as in torch/distributed/run.py, deepspeed/launcher/runner.py, accelerate/commands/launch.py, srun(1),
// mpirun(1).
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

enum class Tool { kNone, kTorchrun, kSrun, kMpirun, kDeepspeed, kAccelerate };

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Tool tool_of(std::string_view word) {
  const std::string_view base = base_name(word);
  if (base == "torchrun") return Tool::kTorchrun;
  if (base == "srun") return Tool::kSrun;
  if (base == "mpirun" || base == "mpiexec") return Tool::kMpirun;
  if (base == "deepspeed") return Tool::kDeepspeed;
  if (base == "accelerate" || base == "accelerate-launch") return Tool::kAccelerate;
  return Tool::kNone;
}

std::string_view name(Tool tool) {
  switch (tool) {
    case Tool::kTorchrun:
      return "torchrun";
    case Tool::kSrun:
      return "srun";
    case Tool::kMpirun:
      return "mpirun";
    case Tool::kDeepspeed:
      return "deepspeed";
    case Tool::kAccelerate:
      return "accelerate launch";
    case Tool::kNone:
      break;
  }
  return "launcher";
}

bool is_python(std::string_view word) { return base_name(word).starts_with("python"); }
bool is_shell(std::string_view word) {
  const std::string_view base = base_name(word);
  return base == "sh" || base == "bash" || base == "zsh" || base == "dash";
}
/// torchtitan's own launcher: torchrun inside, NGPU and the config in the environment.
bool is_torchtitan_script(std::string_view word) { return base_name(word) == "run_train.sh"; }
bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-' && !to_number(word); }

/// Options of launchers that take no value.
constexpr std::array kBare = {"standalone",
                              "no_python",
                              "run_path",
                              "exclusive",
                              "label",
                              "l",
                              "u",
                              "unbuffered",
                              "overlap",
                              "contiguous",
                              "multi_gpu",
                              "use_fsdp",
                              "use_deepspeed",
                              "use_megatron_lm",
                              "tpu",
                              "no_local_rank",
                              "allow_run_as_root",
                              "force_multi",
                              "no_ssh",
                              "v",
                              "kill_on_bad_exit_code",
                              "dynamo_use_fullgraph",
                              "quiet",
                              "same_network",
                              "bind_to_none",
                              "oversubscribe",
                              "tag_output",
                              "debug"};
/// Of those with a value: no bearing on time (addresses, names, logs).
constexpr std::array kQuiet = {"master_addr",
                               "master_port",
                               "rdzv_id",
                               "rdzv_backend",
                               "rdzv_endpoint",
                               "rdzv_conf",
                               "node_rank",
                               "max_restarts",
                               "tee",
                               "role",
                               "redirects",
                               "log_dir",
                               "r",
                               "t",
                               "start_method",
                               "monitor_interval",
                               "local_addr",
                               "local_ranks_filter",
                               "machine_rank",
                               "main_process_ip",
                               "main_process_port",
                               "hostfile",
                               "job_name",
                               "J",
                               "output",
                               "o",
                               "error",
                               "e",
                               "time",
                               "partition",
                               "p",
                               "account",
                               "A",
                               "mem",
                               "jobid",
                               "kill_on_bad_exit",
                               "K",
                               "wait",
                               "container_image",
                               "container_mounts",
                               "container_name",
                               "container_workdir",
                               "no_container_mount_home",
                               "mpi",
                               "export",
                               "comment",
                               "signal",
                               "qos",
                               "q",
                               "reservation",
                               "mail_type",
                               "mail_user",
                               "open_mode",
                               "chdir",
                               "D",
                               "constraint",
                               "C",
                               "nodelist",
                               "w",
                               "exclude",
                               "x",
                               "requeue",
                               "dependency",
                               "array",
                               "main_training_function",
                               "rdzv_backend",
                               "launcher",
                               "launcher_args",
                               "ssh_port",
                               "tag",
                               "module",
                               "H",
                               "host",
                               "mca",
                               "hint",
                               "label",
                               "input",
                               "threads_per_core",
                               "deepspeed_multinode_launcher",
                               "deepspeed_hostfile",
                               "chdir",
                               "nice",
                               "propagate"};
/// What binds processes to cores can change host time, which the model takes as bound.
constexpr std::array kPlacement = {"cpus_per_task",
                                   "c",
                                   "cpu_bind",
                                   "gpu_bind",
                                   "gres_flags",
                                   "mem_bind",
                                   "bind_to",
                                   "map_by",
                                   "switches",
                                   "num_cpu_threads_per_process",
                                   "bind_cores_to_rank",
                                   "distribution",
                                   "m",
                                   "ntasks_per_socket",
                                   "dynamo_backend",
                                   "numa_binding",
                                   "enable_cpu_affinity"};

template <std::size_t N>
bool in(const std::array<const char*, N>& words, std::string_view key) {
  return std::find(words.begin(), words.end(), key) != words.end();
}

std::optional<int> count(std::string_view text) {
  const auto value = to_int(text);
  return value && *value >= 1 && *value <= kMostRanks ? value : std::nullopt;
}

/// Numbers of one launcher, before they are put together.
struct Counts {
  std::optional<int> hosts, per_host, total;
  SourcePos pos;
};

class Walk {
 public:
  Walk(const std::vector<Word>& words, Launch& out) : words_(words), out_(out) {}

  void run() {
    while (at_ < words_.size()) {
      const Word& word = words_[at_];
      if (const Tool tool = tool_of(word.text); tool != Tool::kNone) {
        tool_ = tool;
        out_.uses_accelerate = out_.uses_accelerate || tool == Tool::kAccelerate;
        out_.uses_deepspeed = out_.uses_deepspeed || tool == Tool::kDeepspeed;
        ++at_;
        if (tool == Tool::kAccelerate && at_ < words_.size() && words_[at_].text == "launch") ++at_;
      } else if (is_python(word.text)) {
        python();
      } else if (word.text.ends_with(".py")) {
        ++at_;
        return arguments();
      } else if (is_option(word.text)) {
        if (tool_ == Tool::kNone) return arguments();
        if (word.text == "-m" && tool_ != Tool::kSrun) return module();
        option();
      } else {
        const bool shell = is_shell(word.text);
        ++at_;  // sh, bash, env, numactl, a wrapper
        while (shell && at_ < words_.size() && is_option(words_[at_].text) && !words_[at_].text.starts_with("--")) ++at_;
      }
    }
  }

  Counts counts(Tool tool) const { return counts_[static_cast<std::size_t>(tool)]; }
  std::optional<int> slurm_gpus() const { return slurm_gpus_; }

 private:
  void python() {
    ++at_;
    while (at_ < words_.size() && is_option(words_[at_].text) && words_[at_].text != "-m") ++at_;
    if (at_ + 1 >= words_.size() || words_[at_].text != "-m") return;
    const std::string& module = words_[at_ + 1].text;
    if (module == "torch.distributed.run" || module == "torch.distributed.launch") {
      tool_ = Tool::kTorchrun;
    } else if (module.starts_with("accelerate")) {
      tool_ = Tool::kAccelerate;
      out_.uses_accelerate = true;
    } else {
      at_ += 2;
      arguments();
      return;
    }
    at_ += 2;
  }

  void module() {
    at_ += 2;
    arguments();
  }

  void option() {
    const Word& word = words_[at_++];
    std::string key = word.text.substr(word.text.starts_with("--") ? 2 : 1);
    std::string value;
    if (const std::size_t equals = key.find('='); equals != std::string::npos) {
      value = key.substr(equals + 1);
      key = key.substr(0, equals);
    } else {
      std::replace(key.begin(), key.end(), '-', '_');
      const bool takes = !in(kBare, key) && at_ < words_.size() && !is_option(words_[at_].text) &&
                         !is_python(words_[at_].text) && tool_of(words_[at_].text) == Tool::kNone &&
                         !words_[at_].text.ends_with(".py");
      if (takes) value = words_[at_++].text;
    }
    std::replace(key.begin(), key.end(), '-', '_');
    if (value.empty() && !word.text.starts_with("--") && key.size() > 1 && to_int(key.substr(1))) {  // -N4
      value = key.substr(1);
      key.resize(1);
    }
    Setting setting{fmt::format("{} --{}", name(tool_), key), value, word.pos, Use::kUnknown, ""};
    interpret(key, value, setting);
    out_.settings.push_back(std::move(setting));
  }

  void interpret(const std::string& key, const std::string& value, Setting& setting) {
    Counts& counts = counts_[static_cast<std::size_t>(tool_)];
    const auto number = [&](std::optional<int>& slot, std::string_view text) {
      setting.use = Use::kUsed;
      slot = count(text);
      if (slot) counts.pos = setting.pos;
      if (!slot) setting.use = Use::kNotModelled, setting.note = "not a number here: the size comes from the cluster";
    };
    if (key == "nnodes" || key == "num_nodes" || key == "num_machines" ||
        (tool_ == Tool::kSrun && (key == "nodes" || key == "N"))) {
      const std::size_t colon = value.find(':');
      number(counts.hosts, std::string_view(value).substr(colon == std::string::npos ? 0 : colon + 1));
      if (colon != std::string::npos && counts.hosts) setting.note = "elastic: the largest size is taken";
    } else if (key == "nproc_per_node" || key == "num_gpus" || key == "ntasks_per_node" || key == "npernode" ||
               key == "N") {
      number(counts.per_host, value);
    } else if (key == "gpus_per_node" || key == "gres") {
      const std::size_t colon = value.rfind(':');
      std::optional<int> gpus = count(colon == std::string::npos ? value : value.substr(colon + 1));
      setting.use = gpus ? Use::kUsed : Use::kNotModelled;
      if (gpus) slurm_gpus_ = gpus;
    } else if (key == "ntasks" || key == "n" || key == "np" || key == "num_processes") {
      number(counts.total, value);
    } else if (key == "config_file" && tool_ == Tool::kAccelerate) {
      setting.use = Use::kUsed;
      out_.accelerate_config = value;
    } else if (key == "deepspeed_config_file" || key == "deepspeed_config") {
      setting.use = Use::kUsed;
      out_.deepspeed_config = value;
    } else if (key == "mixed_precision") {
      setting.use = Use::kUsed;
      out_.mixed_precision = value;
    } else if (key == "use_fsdp" || key == "use_deepspeed" || key == "multi_gpu") {
      setting.use = Use::kUsed;
      (key == "use_fsdp" ? out_.uses_fsdp : out_.uses_deepspeed) |= key != "multi_gpu";
    } else if (key == "include" || key == "exclude_nodes") {
      setting.use = Use::kNotModelled;
      setting.note = "a choice of hosts: the cluster says which there are";
    } else if (in(kPlacement, key)) {
      setting.use = Use::kNotModelled;
      setting.note = "processes are taken to run on the cores next to their GPU";
    } else if (in(kBare, key) || in(kQuiet, key)) {
      setting.use = Use::kNoEffect;
    }
  }

  /// Arguments of the program, argparse's way: an option takes the words up to the next option.
  void arguments() {
    while (at_ < words_.size()) {
      const Word& word = words_[at_++];
      if (!is_option(word.text)) {
        const std::size_t equals = word.text.find('=');
        if (equals != std::string::npos && equals > 0) {  // Hydra's section.option=value
          std::size_t begin = 0;
          while (begin < equals && (word.text[begin] == '+' || word.text[begin] == '~')) ++begin;
          out_.arguments.push_back(
              {word.text.substr(begin, equals - begin), word.text.substr(equals + 1), word.pos, Use::kUnknown, ""});
        } else if (word.text != "\\") {
          out_.arguments.push_back({word.text, "", word.pos, Use::kUnknown, "a word without an option"});
        }
        continue;
      }
      std::string key = word.text.substr(word.text.starts_with("--") ? 2 : 1);
      std::string value;
      if (const std::size_t equals = key.find('='); equals != std::string::npos) {
        value = key.substr(equals + 1);
        key = key.substr(0, equals);
      } else {
        while (at_ < words_.size() && !is_option(words_[at_].text) && !looks_hydra(words_[at_].text)) {
          value += (value.empty() ? "" : " ") + words_[at_++].text;
        }
      }
      out_.arguments.push_back({key, value, word.pos, Use::kUnknown, ""});
    }
  }

  static bool looks_hydra(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::size_t dot = text.find('.');
    return equals != std::string_view::npos && dot != std::string_view::npos && dot < equals;
  }

  const std::vector<Word>& words_;
  Launch& out_;
  std::size_t at_ = 0;
  Tool tool_ = Tool::kNone;
  std::array<Counts, 6> counts_;
  std::optional<int> slurm_gpus_;
};

/// The command with most options is the one that trains; the last of equals.
const std::vector<Word>* training_command(const Script& script) {
  const std::vector<Word>* best = nullptr;
  long most = 0;
  for (const auto& words : script.commands) {
    long options = std::count_if(words.begin(), words.end(), [](const Word& w) {
      return w.text.starts_with("--") || tool_of(w.text) != Tool::kNone || w.text.ends_with(".py") || is_torchtitan_script(w.text);
    });
    if (options >= most && options > 0) {
      most = options;
      best = &words;
    }
  }
  return best;
}

void combine(const Walk& walk, const Counts& slurm, std::optional<int> slurm_gpus, Launch& out,
             std::vector<Finding>& findings) {
  // The innermost launcher starts the ranks; Slurm's own tasks count where nothing else does.
  Counts counts;
  bool found = false;
  for (const Tool tool : {Tool::kTorchrun, Tool::kAccelerate, Tool::kDeepspeed, Tool::kMpirun}) {
    const Counts c = walk.counts(tool);
    if (found || (!c.hosts && !c.per_host && !c.total)) continue;
    counts = c;
    found = true;
  }
  Counts outer = walk.counts(Tool::kSrun);
  if (!outer.hosts) outer.hosts = slurm.hosts;
  if (!outer.per_host) outer.per_host = slurm.per_host;
  if (!outer.total) outer.total = slurm.total;
  if (outer.pos.line == 0) outer.pos = slurm.pos;
  if (!found) {
    counts = outer;
    if (counts.per_host == 1 && slurm_gpus) counts.per_host = slurm_gpus;
    if (!counts.per_host && !counts.total) counts.per_host = slurm_gpus;
  } else if (!counts.hosts && outer.hosts) {
    counts.hosts = outer.hosts;
  } else if (counts.hosts && outer.hosts && *counts.hosts != *outer.hosts) {
    findings.push_back({"launcher_disagrees_with_slurm", true, counts.pos,
                        fmt::format("the launcher starts {} hosts, Slurm allots {}", *counts.hosts, *outer.hosts),
                        "use $SLURM_NNODES for the number of hosts"});
  }
  if (found && slurm_gpus && counts.per_host && *counts.per_host != *slurm_gpus) {
    findings.push_back({"launcher_disagrees_with_slurm", *counts.per_host > *slurm_gpus, counts.pos,
                        fmt::format("{} processes a host, Slurm allots {} GPUs a host", *counts.per_host, *slurm_gpus),
                        "make --nproc-per-node equal the GPUs that Slurm gives"});
  }
  out.hosts = counts.hosts;
  out.gpus_per_host = counts.per_host;
  out.pos = counts.pos;
  if (counts.total) {
    out.gpus = counts.total;
  } else if (out.torchtitan_processes && !found) {
    out.gpus = *out.torchtitan_processes * outer.hosts.value_or(1);
  } else if (counts.per_host) {
    const double all = static_cast<double>(*counts.per_host) * counts.hosts.value_or(1);
    if (all <= kMostRanks) out.gpus = static_cast<int>(all);
  }
}

/// "NGPU=8 CONFIG_FILE=x.toml ./run_train.sh --more"; newer ones have MODULE and CONFIG.
void add_torchtitan_script(const Script& script, const std::vector<Word>& command, Launch& out) {
  if (std::none_of(command.begin(), command.end(), [](const Word& w) { return is_torchtitan_script(w.text); })) return;
  constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
      {"CONFIG_FILE", "job.config_file"}, {"MODULE", "module"}, {"CONFIG", "config"}};
  for (const Assignment& a : script.variables) {
    for (const auto& [variable, key] : kVariables) {
      if (a.name == variable) out.arguments.insert(out.arguments.begin(), {std::string(key), a.value, a.pos, Use::kUnknown, ""});
    }
    if (const auto processes = a.name == "NGPU" ? count(a.value) : std::nullopt) {
      out.torchtitan_processes = processes;
      out.pos = a.pos;
    }
  }
}

}  // namespace

Result<Launch> read_launch(const Script& script, std::vector<Finding>& findings) {
  Launch out;
  const std::vector<Word>* command = training_command(script);
  if (!command) return fail("holds no command that starts a training");
  Walk walk(*command, out);
  walk.run();
  std::vector<Word> slurm = script.slurm;
  slurm.insert(slurm.begin(), Word{"srun", {}});
  Launch header;
  Walk allotted(slurm, header);
  if (!script.slurm.empty()) {
    allotted.run();
    for (Setting& setting : header.settings) {
      setting.key = "#SBATCH" + setting.key.substr(4);
      out.settings.push_back(std::move(setting));
    }
  }
  add_torchtitan_script(script, *command, out);
  combine(walk, allotted.counts(Tool::kSrun), walk.slurm_gpus() ? walk.slurm_gpus() : allotted.slurm_gpus(), out,
          findings);
  return out;
}

}  // namespace chokepoint::frameworks

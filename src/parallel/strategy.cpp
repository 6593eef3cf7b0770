// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/parallel/job.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <fmt/format.h>
#include <numeric>
#include <utility>

namespace chokepoint::parallel {

namespace {

template <class T>
struct Word {
  std::string_view word;
  T value;
};

constexpr std::array kFrameworks = {
    Word<Framework>{"pytorch", Framework::kPytorch},
    Word<Framework>{"torchtitan", Framework::kTorchtitan},
    Word<Framework>{"llm-foundry", Framework::kLlmFoundry},
    Word<Framework>{"fms-fsdp", Framework::kFmsFsdp},
    Word<Framework>{"megatron", Framework::kMegatron},
    Word<Framework>{"megatron-deepspeed", Framework::kMegatronDeepspeed},
    Word<Framework>{"deepspeed", Framework::kDeepspeed},
    Word<Framework>{"nanotron", Framework::kNanotron},
    Word<Framework>{"maxtext", Framework::kMaxtext},
};
constexpr std::array kRecomputes = {
    Word<Recompute>{"none", Recompute::kNone},
    Word<Recompute>{"selective", Recompute::kSelective},
    Word<Recompute>{"full", Recompute::kFull},
};
constexpr std::array kOffloads = {
    Word<Offload>{"none", Offload::kNone},        Word<Offload>{"optimizer", Offload::kOptimizer},
    Word<Offload>{"params", Offload::kParameters}, Word<Offload>{"all", Offload::kAll},
    Word<Offload>{"activations", Offload::kActivations},
};
constexpr std::array kSchedules = {
    Word<Schedule>{"1f1b", Schedule::kOneForwardOneBackward}, Word<Schedule>{"interleaved", Schedule::kInterleaved},
    Word<Schedule>{"gpipe", Schedule::kGpipe},                Word<Schedule>{"zb1", Schedule::kZeroBubble1},
    Word<Schedule>{"zb2", Schedule::kZeroBubble2},           Word<Schedule>{"zbv", Schedule::kZeroBubbleV},
    Word<Schedule>{"dualpipe", Schedule::kDualPipe},
};
constexpr std::array kSharders = {
    Word<Sharder>{"ddp", Sharder::kDdp},
    Word<Sharder>{"megatron", Sharder::kMegatronOptimizer},
    Word<Sharder>{"fsdp", Sharder::kFsdp},
    Word<Sharder>{"deepspeed", Sharder::kDeepspeed},
};

template <class T, std::size_t N>
std::string_view word_of(const std::array<Word<T>, N>& words, T value) {
  for (const auto& entry : words) {
    if (entry.value == value) return entry.word;
  }
  return "?";
}

template <class T, std::size_t N>
Result<T> value_of(const std::array<Word<T>, N>& words, std::string_view text, std::string_view what) {
  std::vector<std::string> known;
  for (const auto& entry : words) {
    if (entry.word == text) return entry.value;
    known.emplace_back(entry.word);
  }
  std::vector<std::string> notes;
  if (const auto close = nearest(text, known)) notes.push_back(fmt::format("did you mean '{}'?", *close));
  return fail(fmt::format("unknown {} '{}'; expected one of: {}", what, text, fmt::join(known, ", ")), {}, std::move(notes));
}

Result<int> degree(std::string_view key, std::string_view text, int low = 1, int high = 1 << 20) {
  const auto value = to_int(text);
  if (!value || *value < low || *value > high) {
    return fail(fmt::format("{}={}: expected a whole number from {} to {}", key, text, low, high));
  }
  return *value;
}

Result<bool> on_off(std::string_view key, std::string_view text) {
  if (text == "on" || text == "yes" || text == "true" || text == "1") return true;
  if (text == "off" || text == "no" || text == "false" || text == "0") return false;
  return fail(fmt::format("{}={}: expected on or off", key, text));
}

/// Long name, short name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kShortNames = {{
    {"tensor", "tp"}, {"pipeline", "pp"}, {"virtual", "vpp"}, {"context", "cp"},
    {"expert", "ep"}, {"data", "dp"}, {"microbatch", "mbs"}, {"accumulate", "gas"},
}};

Result<bool> apply_degree(Strategy& strategy, std::string_view key, std::string_view value, bool& known) {
  const std::array<std::pair<std::string_view, int*>, 8> fields = {{
      {"tensor", &strategy.tensor}, {"pipeline", &strategy.pipeline}, {"virtual", &strategy.virtual_stages},
      {"context", &strategy.context}, {"expert", &strategy.expert}, {"data", &strategy.data},
      {"microbatch", &strategy.micro_batch}, {"accumulate", &strategy.accumulate},
  }};
  for (const auto& [name, field] : fields) {
    if (name != key) continue;
    known = true;
    TRY_INTO(*field, degree(key, value));
  }
  return true;
}

Result<bool> apply_sharding(Strategy& strategy, std::string_view key, std::string_view value, bool& known) {
  known = true;
  if (key == "zero") {
    TRY_INTO(strategy.zero, degree(key, value, 0, 3));
    if (strategy.sharder == Sharder::kDdp && strategy.zero > 0) {
      strategy.sharder = strategy.zero == 1 ? Sharder::kMegatronOptimizer : Sharder::kDeepspeed;
    }
  } else if (key == "ddp") {
    strategy.zero = 0;
    strategy.sharder = Sharder::kDdp;
  } else if (key == "fsdp") {
    strategy.zero = 3;
    strategy.sharder = Sharder::kFsdp;
    if (value == "grad-op") {
      strategy.zero = 2;
      strategy.reshard_after_forward = false;
    } else if (!value.empty() && value != "full") {
      return fail(fmt::format("fsdp={}: expected full or grad-op", value));
    }
  } else if (key == "zero++") {
    TRY_INTO(const bool on, on_off(key, value.empty() ? "on" : value));
    strategy.quantised_gathers = strategy.quantised_reduction = strategy.secondary_shard = on;
  } else if (key == "qwz") {
    TRY_INTO(strategy.quantised_gathers, on_off(key, value));
  } else if (key == "qgz") {
    TRY_INTO(strategy.quantised_reduction, on_off(key, value));
  } else if (key == "hpz") {
    TRY_INTO(strategy.secondary_shard, on_off(key, value));
  } else if (key == "hsdp" || key == "shard") {
    if (key == "hsdp" && strategy.zero < 2) {
      strategy.zero = 3;
      strategy.sharder = Sharder::kFsdp;
    }
    if (key != "hsdp" || !value.empty()) { TRY_INTO(strategy.shard_ranks, degree(key, value)); }
    if (key == "hsdp" && value.empty()) strategy.shard_ranks = -1;  // inside one host; resolved by completed()
  } else if (key == "sharder") {
    TRY_INTO(strategy.sharder, value_of(kSharders, value, "sharder"));
  } else {
    known = false;
  }
  return true;
}

Result<bool> apply_setting(Strategy& strategy, std::string_view key, std::string_view value, bool& known) {
  known = true;
  if (key == "recompute") {
    TRY_INTO(strategy.recompute, value_of(kRecomputes, value, "recompute"));
  } else if (key == "offload") {
    TRY_INTO(strategy.offload, value_of(kOffloads, value, "offload"));
  } else if (key == "schedule") {
    TRY_INTO(strategy.schedule, value_of(kSchedules, value, "schedule"));
  } else if (key == "sp" || key == "sequence") {
    TRY_INTO(strategy.sequence_parallel, on_off(key, value));
  } else if (key == "reshard") {
    TRY_INTO(strategy.reshard_after_forward, on_off(key, value));
  } else if (key == "sync") {
    if (value != "each" && value != "last") return fail(fmt::format("sync={}: expected each or last (micro-step)", value));
    strategy.sync_every_micro_step = value == "each";
    strategy.sync_last_only = value == "last";
  } else if (key == "overlap-reduce") {
    TRY_INTO(strategy.overlap_grad_reduce, on_off(key, value));
  } else if (key == "overlap-gather") {
    TRY_INTO(strategy.overlap_param_gather, on_off(key, value));
  } else if (key == "overlap-tensor") {
    TRY_INTO(strategy.overlap_tensor, on_off(key, value));
  } else if (key == "overlap-expert") {
    TRY_INTO(strategy.overlap_expert, on_off(key, value.empty() ? "on" : value));
  } else if (key == "local-steps") {
    TRY_INTO(strategy.local_steps, degree(key, value));
  } else if (key == "overlap") {
    TRY_INTO(const bool on, on_off(key, value));
    strategy.overlap_grad_reduce = strategy.overlap_param_gather = on;
  } else if (key == "stages") {
    strategy.stage_layers.clear();
    for (const std::string_view part : split(value, '/')) {
      TRY_INTO(const int layers, degree(key, part, 0));
      strategy.stage_layers.push_back(layers);
    }
  } else {
    known = false;
  }
  return true;
}

const std::vector<std::string>& strategy_words() {
  static const std::vector<std::string> words = {
      "tensor", "pipeline", "virtual", "context", "expert", "data", "microbatch", "accumulate", "zero", "ddp", "fsdp",
      "hsdp", "zero++", "qwz", "qgz", "hpz", "shard", "sharder", "recompute", "offload", "schedule", "sp", "reshard", "sync", "overlap",
      "overlap-reduce", "overlap-gather", "overlap-tensor", "overlap-expert", "local-steps", "stages", "tp", "pp", "vpp", "cp", "ep", "dp", "mbs", "gas"};
  return words;
}

}  // namespace

std::string_view name(Framework framework) { return word_of(kFrameworks, framework); }
std::string_view name(Recompute recompute) { return word_of(kRecomputes, recompute); }
Result<Framework> parse_framework(std::string_view text) { return value_of(kFrameworks, lower(text), "framework"); }

Result<Strategy> parse_strategy(std::string_view text) {
  Strategy strategy;
  bool sp_given = false;
  std::vector<std::string> seen;
  for (const std::string_view item : split_blanks(text)) {
    const std::size_t equals = item.find('=');
    std::string key = lower(item.substr(0, equals));
    const std::string value = equals == std::string_view::npos ? "" : lower(item.substr(equals + 1));
    for (const auto& [long_name, short_name] : kShortNames) {
      if (key == short_name) key = long_name;
    }
    if (key == "micro-batch" || key == "micro_batch") key = "microbatch";
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return fail(fmt::format("strategy names '{}' twice", key));
    }
    seen.push_back(key);
    sp_given = sp_given || key == "sp" || key == "sequence";
    bool known = false;
    TRY_INTO([[maybe_unused]] const bool degrees, apply_degree(strategy, key, value, known));
    if (!known) { TRY_INTO([[maybe_unused]] const bool sharding, apply_sharding(strategy, key, value, known)); }
    if (!known) { TRY_INTO([[maybe_unused]] const bool setting, apply_setting(strategy, key, value, known)); }
    if (!known) {
      std::vector<std::string> notes;
      if (const auto close = nearest(key, strategy_words())) notes.push_back(fmt::format("did you mean '{}'?", *close));
      notes.push_back("example: \"tensor=8 pipeline=4 zero=1 microbatch=1 recompute=selective\"");
      return fail(fmt::format("unknown word '{}' in the strategy", item), {}, std::move(notes));
    }
  }
  std::string sharding;
  for (const std::string_view word : {"ddp", "zero", "fsdp", "hsdp"}) {
    if (std::find(seen.begin(), seen.end(), word) == seen.end()) continue;
    if (!sharding.empty()) return fail(fmt::format("the strategy says both '{}' and '{}'; expected one way of sharding", sharding, word));
    sharding = word;
  }
  if (!sp_given) strategy.sequence_parallel = strategy.tensor > 1;
  if (strategy.virtual_stages > 1 && strategy.schedule == Schedule::kOneForwardOneBackward) {
    strategy.schedule = Schedule::kInterleaved;
  }
  const bool chunks_given = std::find(seen.begin(), seen.end(), "virtual") != seen.end();
  if (strategy.schedule == Schedule::kZeroBubbleV && !chunks_given) strategy.virtual_stages = 2;
  // 0 marks "derive it": completed() fills both from the job.
  if (std::find(seen.begin(), seen.end(), "data") == seen.end()) strategy.data = 0;
  if (std::find(seen.begin(), seen.end(), "accumulate") == seen.end()) strategy.accumulate = 0;
  return strategy;
}

namespace {
std::string sharding_text(const Strategy& s) {
  if (s.zero == 0) return "ddp";
  std::string text;
  if (s.sharder == Sharder::kFsdp && s.zero == 3) {
    text = s.shard_ranks > 0 ? fmt::format("hsdp={}", s.shard_ranks) : s.shard_ranks < 0 ? "hsdp" : "fsdp";
    return text;
  }
  if (s.sharder == Sharder::kFsdp) return "fsdp=grad-op";
  text = fmt::format("zero={}", s.zero);
  const Sharder implied = s.zero == 1 ? Sharder::kMegatronOptimizer : Sharder::kDeepspeed;
  if (s.sharder != implied) text += fmt::format(" sharder={}", word_of(kSharders, s.sharder));
  if (s.shard_ranks > 0) text += fmt::format(" shard={}", s.shard_ranks);
  if (s.quantised_gathers && s.quantised_reduction && s.secondary_shard) return text + " zero++=on";
  if (s.quantised_gathers) text += " qwz=on";
  if (s.quantised_reduction) text += " qgz=on";
  if (s.secondary_shard) text += " hpz=on";
  return text;
}
}  // namespace

std::string to_text(const Strategy& s) {
  std::string text;
  const auto add = [&text](const std::string& piece) { text += (text.empty() ? "" : " ") + piece; };
  if (s.tensor > 1) add(fmt::format("tensor={}", s.tensor));
  if (s.tensor > 1 && !s.sequence_parallel) add("sp=off");
  if (s.pipeline > 1) add(fmt::format("pipeline={}", s.pipeline));
  if (s.virtual_stages > 1 && s.schedule != Schedule::kZeroBubbleV) add(fmt::format("virtual={}", s.virtual_stages));
  if (s.context > 1) add(fmt::format("context={}", s.context));
  if (s.expert > 1) add(fmt::format("expert={}", s.expert));
  if (s.data > 0) add(fmt::format("data={}", s.data));
  add(sharding_text(s));
  if (s.zero == 3 && !s.reshard_after_forward) add("reshard=off");
  add(fmt::format("microbatch={}", s.micro_batch));
  if (s.accumulate > 0) add(fmt::format("accumulate={}", s.accumulate));
  if (s.sync_every_micro_step) add("sync=each");
  if (s.sync_last_only) add("sync=last");
  if (s.recompute != Recompute::kNone) add(fmt::format("recompute={}", name(s.recompute)));
  if (s.offload != Offload::kNone) add(fmt::format("offload={}", word_of(kOffloads, s.offload)));
  if (s.schedule != Schedule::kOneForwardOneBackward && s.schedule != Schedule::kInterleaved) {
    add(fmt::format("schedule={}", word_of(kSchedules, s.schedule)));
  }
  if (!s.overlap_grad_reduce && !s.overlap_param_gather) {
    add("overlap=off");
  } else if (!s.overlap_grad_reduce) {
    add("overlap-reduce=off");
  } else if (!s.overlap_param_gather) {
    add("overlap-gather=off");
  }
  if (s.overlap_tensor) add("overlap-tensor=on");
  if (s.overlap_expert) add("overlap-expert=on");
  if (s.local_steps > 1) add(fmt::format("local-steps={}", s.local_steps));
  if (!s.stage_layers.empty()) add(fmt::format("stages={}", fmt::join(s.stage_layers, "/")));
  return text;
}

namespace {
std::string sharding_title(const Strategy& s) {
  if (s.zero == 0) return s.data > 1 ? fmt::format("DDP x{}", s.data) : "";
  const bool groups = s.shard_ranks > 0 && s.shard_ranks < s.data;
  const std::string ranks = groups ? fmt::format(" {}x{}", s.shard_ranks, s.data / s.shard_ranks) : fmt::format(" x{}", s.data);
  if (s.sharder != Sharder::kFsdp) return fmt::format("ZeRO-{}{}", s.zero, ranks);
  if (s.zero == 3 && s.reshard_after_forward) return (groups ? "HSDP" : "FSDP") + ranks;
  return "FSDP" + ranks + ", kept gathered";
}
}  // namespace

std::string title(const Strategy& s) {
  std::string text;
  const auto add = [&text](const std::string& piece) {
    if (!piece.empty()) text += (text.empty() ? "" : ", ") + piece;
  };
  if (s.tensor > 1) add(fmt::format("TP {}", s.tensor));
  if (s.tensor > 1 && !s.sequence_parallel) add("no SP");
  if (s.overlap_tensor) add("async TP");
  if (s.context > 1) add(fmt::format("CP {}", s.context));
  if (s.expert > 1) add(fmt::format("EP {}", s.expert) + (s.overlap_expert ? " hidden" : ""));
  if (s.pipeline > 1) add(fmt::format("PP {}", s.pipeline) + (s.virtual_stages > 1 ? fmt::format("x{}", s.virtual_stages) : ""));
  add(sharding_title(s));
  add(s.accumulate > 1 ? fmt::format("batch {} x{}", s.micro_batch, s.accumulate) : fmt::format("batch {}", s.micro_batch));
  if (s.sync_every_micro_step) add("sync each");
  if (s.recompute != Recompute::kNone) add(fmt::format("{} recompute", name(s.recompute)));
  if (s.offload != Offload::kNone) add(fmt::format("offload {}", word_of(kOffloads, s.offload)));
  if (s.pipeline > 1 && s.schedule >= Schedule::kGpipe) add(std::string(word_of(kSchedules, s.schedule)));
  if (s.local_steps > 1) add(fmt::format("averaged every {} steps", s.local_steps));
  return text;
}

namespace {

/// "tensor=N with N of 1, 2, 4, 8 would": the degrees up to the GPUs that divide all of `wholes`.
std::string dividing(std::string_view key, int gpus, std::initializer_list<int> wholes) {
  std::vector<int> legal;
  for (int n = 1; n <= gpus && legal.size() < 12; ++n) {
    if (std::all_of(wholes.begin(), wholes.end(), [n](int whole) { return whole % n == 0; })) legal.push_back(n);
  }
  return fmt::format("{} of {} would", key, fmt::join(legal, ", "));
}

Result<bool> check_degrees(const Job& job, const Strategy& s) {
  const model::Model& m = job.model;
  const long ranks = static_cast<long>(s.tensor) * s.pipeline * s.context * std::max(1, s.data);
  if (s.data > 0 && ranks != job.gpus) {
    return fail(fmt::format("tensor {} x pipeline {} x context {} x data {} = {} ranks, but the job has {} GPUs", s.tensor,
                            s.pipeline, s.context, s.data, ranks, job.gpus));
  }
  const long product = static_cast<long>(s.tensor) * s.pipeline * s.context;
  if (product > job.gpus || job.gpus % product != 0) {
    return fail(fmt::format("tensor {} x pipeline {} x context {} = {} does not divide {} GPUs", s.tensor, s.pipeline,
                            s.context, product, job.gpus), {}, {dividing("a product", job.gpus, {job.gpus})});
  }
  if (m.heads % s.tensor != 0) {
    return fail(fmt::format("tensor={} does not divide the {} attention heads of {}", s.tensor, m.heads, m.name), {},
                {dividing("tensor", job.gpus, {m.heads, m.ffn_hidden, job.gpus})});
  }
  if (m.ffn_hidden % s.tensor != 0) {
    return fail(fmt::format("tensor={} does not divide the MLP width {} of {}", s.tensor, m.ffn_hidden, m.name), {},
                {dividing("tensor", job.gpus, {m.heads, m.ffn_hidden, job.gpus})});
  }
  if (m.mamba && m.kinds()[{model::Mixer::kMamba, model::Channel::kNone}] > 0 && m.mamba->groups % s.tensor != 0) {
    return fail(fmt::format("tensor={} does not divide the {} groups of the Mamba-2 layers of {}", s.tensor, m.mamba->groups, m.name), {},
                {dividing("tensor", job.gpus, {m.heads, m.mamba->groups, job.gpus})});
  }
  if (s.pipeline * s.virtual_stages > m.layers + 2) {
    return fail(fmt::format("pipeline {} x virtual {} needs at least as many layers; {} has {}", s.pipeline,
                            s.virtual_stages, m.name, m.layers));
  }
  if (s.virtual_stages > 1 && s.pipeline == 1) return fail("virtual stages need pipeline > 1");
  if (job.sequence % s.context != 0) {
    return fail(fmt::format("context={} does not divide the sequence length {}", s.context, job.sequence));
  }
  if (s.tensor > 1 && s.sequence_parallel && job.sequence % (s.tensor * s.context) != 0) {
    return fail(fmt::format("sequence parallelism cuts sequences among the tensor ranks; {} tokens do not divide by {}", job.sequence, s.tensor * s.context),
                {}, {"add sp=off, or pad the sequences"});
  }
  if (!s.stage_layers.empty()) {
    const int sum = std::accumulate(s.stage_layers.begin(), s.stage_layers.end(), 0);
    if (static_cast<int>(s.stage_layers.size()) != s.pipeline || sum != m.layers) {
      return fail(fmt::format("stages lists {} stages with {} layers; expected {} stages with {} layers",
                              s.stage_layers.size(), sum, s.pipeline, m.layers));
    }
  }
  return true;
}

Result<bool> check_schedule(const Strategy& s) {
  const bool v = s.schedule == Schedule::kZeroBubbleV;
  const bool dual = s.schedule == Schedule::kDualPipe;
  if (v && (s.virtual_stages != 2 || s.pipeline < 2))
    return fail("schedule=zbv lays two chunks on each of at least two stages", {}, {"add pipeline=2 or more, leave virtual out"});
  if (dual && (s.pipeline < 2 || s.pipeline % 2 != 0 || s.virtual_stages != 1))
    return fail(fmt::format("schedule=dualpipe feeds a pipeline from both ends; expected an even number of stages, not {}", s.pipeline),
                {}, {"use an even pipeline without virtual stages"});
  if (s.local_steps > 1 && s.zero > 0)
    return fail("local-steps averages whole replicas; it goes with ddp, not with ZeRO or FSDP");
  return true;
}

Result<bool> check_experts(const Job& job, const Strategy& s) {
  if (s.overlap_expert && s.expert == 1)
    return fail("overlap-expert hides the exchanges of expert parallelism, which needs expert=2 or more");
  if (s.expert == 1) return true;
  if (!job.model.moe) return fail(fmt::format("expert={} needs a mixture-of-experts model; {} is dense", s.expert, job.model.name));
  if (job.model.moe->experts % s.expert != 0) {
    return fail(fmt::format("expert={} does not divide the {} experts of {}", s.expert, job.model.moe->experts, job.model.name));
  }
  return true;
}

Result<Strategy> with_batch(const Job& job, Strategy s) {
  const double per_micro_step = static_cast<double>(s.micro_batch) * s.data;
  const double steps = job.global_batch / per_micro_step;
  if (s.accumulate == 0) {
    if (steps < 1 || std::abs(steps - std::round(steps)) > 1e-9) {
      return fail(fmt::format("batch {} does not divide into {} data-parallel ranks x micro-batch {}", job.global_batch,
                              s.data, s.micro_batch),
                  {}, {fmt::format("a batch of {} or a multiple would", per_micro_step)});
    }
    s.accumulate = static_cast<int>(std::lround(steps));
  }
  if (std::abs(steps - s.accumulate) > 1e-9 * steps + 1e-9) {
    return fail(fmt::format("micro-batch {} x accumulate {} x data {} = {} sequences, but the batch is {}", s.micro_batch,
                            s.accumulate, s.data, per_micro_step * s.accumulate, job.global_batch));
  }
  return s;
}

}  // namespace

namespace {
/// nanotron's rule: blocks are laid down in order and a stage ends where the summed cost passes its share of the total; a
/// layer costs its products, the head vocabulary x hidden (models/llama.py get_block_compute_costs, models/base.py).
std::vector<int> balanced_by_cost(const Job& job, int stages) {
  const model::Model& m = job.model;
  const double layer = 4.0 * m.heads * m.head_dim * m.hidden + 3.0 * m.ffn_hidden * m.hidden;
  const double head = static_cast<double>(m.vocab) * m.hidden;
  const double share = (layer * m.layers + head) / stages;
  std::vector<int> out(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (int i = 1; i <= m.layers; ++i) {
    ++out[stage];
    if (layer * i >= share * static_cast<double>(stage + 1) && stage + 1 < out.size()) ++stage;
  }
  return out;
}

/// Layers that the last stage gives up for modules that predict further tokens: theirs, and as many as the heads of all
/// losses cost. Such models come with a layout that balances the stages by hand (Megatron-Core's
/// pipeline_model_parallel_layout; "Et*4|(t*4|)*14tmL" of DeepSeek-V3's recipes leaves the last of 16 chunks one layer of four).
int last_stage_share(const model::Model& m, const Strategy& s) {
  if (m.further.modules == 0 || s.pipeline == 1) return 0;
  const model::ParameterCount count = model::count_parameters(m);
  const double head = static_cast<double>(m.vocab) * m.hidden;
  const double layer = std::max(1.0, (count.active - count.embedding - count.head) / m.layers);
  const int own = m.further.modules * m.further_kinds().total();
  return static_cast<int>(std::min(own + std::floor((1 + m.further.modules) * head / layer), static_cast<double>(m.layers)));
}

}  // namespace

std::vector<int> layers_per_stage(const Job& job, const Strategy& s) {
  if (!s.stage_layers.empty()) return s.stage_layers;
  if (job.framework == Framework::kNanotron && s.pipeline > 1) return balanced_by_cost(job, s.pipeline);
  const int moved = last_stage_share(job.model, s);
  const int units = job.model.layers + moved;
  std::vector<int> out;
  for (int i = 0; i < s.pipeline; ++i) out.push_back(units / s.pipeline + (i < units % s.pipeline ? 1 : 0));
  // Where that is more than the last stage has room for, the stages before it hold fewer instead.
  for (int left = moved; left > 0;) {
    for (std::size_t i = out.size(); i-- > 0 && left > 0;) {
      const int taken = i + 1 == out.size() ? std::min(out[i], left) : std::min(std::min(out[i], 1), left);
      out[i] -= taken;
      left -= taken;
    }
  }
  return out;
}

model::LayerCounts kinds_of_stage(const Job& job, const Strategy& s, const std::vector<int>& layers, int stage) {
  const model::Model& m = job.model;
  if (s.virtual_stages <= 1) {
    int begin = 0;
    for (int i = 0; i < stage; ++i) begin += layers[static_cast<std::size_t>(i)];
    return m.kinds(begin, begin + layers[static_cast<std::size_t>(stage)]);
  }
  // Chunk k of the whole depth lies on stage k mod p.
  const long chunks = static_cast<long>(s.pipeline) * s.virtual_stages;
  model::LayerCounts held;
  for (long k = stage; k < chunks; k += s.pipeline) {
    const model::LayerCounts chunk = m.kinds(static_cast<int>(k * m.layers / chunks), static_cast<int>((k + 1) * m.layers / chunks));
    for (int i = 0; i < model::LayerCounts::kKinds; ++i) held[model::LayerCounts::kind(i)] += chunk.at(i);
  }
  return held.total() > 0 ? held : m.kinds();
}

Result<Strategy> completed(const Job& job, Strategy s) {
  if (job.gpus < 1) return fail("the job has no GPUs");
  TRY_INTO([[maybe_unused]] const bool degrees, check_degrees(job, s));
  TRY_INTO([[maybe_unused]] const bool experts, check_experts(job, s));
  TRY_INTO([[maybe_unused]] const bool schedule, check_schedule(s));
  if (s.data <= 0) s.data = job.gpus / (s.tensor * s.pipeline * s.context);
  if (s.expert > 1 && (s.data * s.context * s.tensor) % s.expert != 0) {
    return fail(fmt::format("expert={} does not divide the {} ranks of one pipeline stage", s.expert,
                            s.data * s.context * s.tensor));
  }
  if (s.shard_ranks < 0) {
    const int in_host = std::max(1, job.cluster.gpus_per_host() / (s.tensor * s.context));
    s.shard_ranks = std::gcd(in_host, s.data);
  }
  if (s.shard_ranks > 0 && s.data % s.shard_ranks != 0) {
    return fail(fmt::format("sharding over {} ranks does not divide the {} data-parallel ranks", s.shard_ranks, s.data));
  }
  if (s.shard_ranks == s.data) s.shard_ranks = 0;
  const bool quantised = s.quantised_gathers || s.quantised_reduction || s.secondary_shard;
  if (quantised && (s.zero != 3 || s.sharder != Sharder::kDeepspeed)) {
    return fail("zero++, qwz, qgz and hpz belong to DeepSpeed's ZeRO-3: add zero=3");
  }
  return with_batch(job, std::move(s));
}

}  // namespace chokepoint::parallel

// SPDX-License-Identifier: Apache-2.0
// The language of changes: which words there are, which of them speak of the same thing, and what each does to a
// scenario. Words of the strategy go through parallel::parse_strategy, so that both know the same ones.
#include <chokepoint/whatif/change.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <chokepoint/collective/collective.hpp>
#include <fmt/format.h>

#include "apply.hpp"

namespace chokepoint::whatif {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kAliases = {{
    {"nics", "nics-per-host"},
    {"nic-count", "nics-per-host"},
    {"rails", "nics-per-host"},
    {"xgmi", "nvlink"},
    {"infinity-fabric", "nvlink"},
    {"domain", "nvlink-domain"},
    {"bridge", "bridges"},
    {"memory-bandwidth", "hbm"},
    {"capacity", "memory"},
    {"clocks", "clock"},
    {"launch", "host"},
    {"gpu", "accelerator"},
    {"topology", "fabric"},
    {"seq", "sequence"},
    {"global-batch", "batch"},
    {"tp", "tensor"},
    {"pp", "pipeline"},
    {"vpp", "virtual"},
    {"cp", "context"},
    {"ep", "expert"},
    {"mbs", "microbatch"},
    {"gas", "accumulate"},
    {"dtype", "precision"},
    {"accelerators", "gpus"},
    {"taper", "oversubscription"},
    {"straggler", "slow-rank"},
    {"stragglers", "slow-rank"},
}};

constexpr std::array<std::string_view, 29> kStrategyWords = {
    "tensor", "pipeline", "virtual",        "context",        "expert",        "microbatch", "zero",
    "ddp",    "fsdp",     "hsdp",           "zero++",         "qwz",           "qgz",        "hpz",
    "shard",  "sharder",  "recompute",      "offload",        "schedule",      "sp",         "reshard",
    "sync",   "overlap",  "overlap-reduce", "overlap-gather", "overlap-tensor",
    "overlap-expert", "local-steps", "stages"};

/// Known wishes that this version's step model has nothing for; the answer says where to look instead.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNotModelled = {{
    {"bucket", "bucket sizes follow the framework; framework= changes them together"},
    {"placement", "ranks lie as Megatron and DeepSpeed lay them: tensor, context, data, pipeline"},
    {"algorithm", "the collective model takes the algorithm that NCCL's tuner would"},
    {"protocol", "the collective model takes the protocol that NCCL's tuner would"},
    {"data", "the data degree follows from gpus=, tensor=, pipeline= and context="},
}};

std::string canonical(std::string_view key) {
  std::string word = lower(trim(key));
  std::replace(word.begin(), word.end(), '_', '-');
  for (const auto& [alias, name] : kAliases) {
    if (word == alias) return std::string(name);
  }
  return word;
}

bool is_strategy_word(std::string_view key) {
  return std::find(kStrategyWords.begin(), kStrategyWords.end(), key) != kStrategyWords.end();
}

std::vector<std::string> known_words() {
  std::vector<std::string> words;
  for (const ChangeWord& word : change_words()) words.emplace_back(word.key);
  for (const std::string_view word : kStrategyWords) words.emplace_back(word);
  return words;
}

/// Words that may not stand beside each other: two values for one thing.
std::string_view subject_of(std::string_view key) {
  if (key == "gpus" || key == "hosts") return "size";
  if (key == "zero" || key == "ddp" || key == "fsdp" || key == "hsdp") return "sharding";
  if (key == "batch" || key == "accumulate") return "batch";
  return key;
}

Result<bool> check_contradictions(const std::vector<Change>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (std::size_t j = i + 1; j < changes.size(); ++j) {
      if (subject_of(changes[i].key) != subject_of(changes[j].key)) continue;
      return fail(fmt::format("'{}' and '{}' contradict each other: both set the {}", changes[i].text, changes[j].text,
                              subject_of(changes[i].key)),
                  {}, {"give one of them, or ask for both side by side with --alternatives"});
    }
  }
  return true;
}

/// What is bought comes before what is set on it: an accelerator before its clock, a size before the batch per rank.
int rank_of(std::string_view key) {
  if (key == "model" || key == "layers") return 0;
  if (key == "accelerator") return 1;
  if (key == "gpus" || key == "hosts") return 2;
  if (key == "bridges" || key == "nics-per-host" || key == "pcie" || key == "fabric" || key == "mend") return 3;
  if (key == "strategy") return 5;
  if (is_strategy_word(key)) return 6;
  if (key == "sequence") return 7;
  if (key == "batch") return 8;
  if (key == "accumulate") return 9;
  return 4;
}

}  // namespace

parallel::Strategy portable(parallel::Strategy strategy) {
  strategy.data = 0;
  strategy.accumulate = 0;
  return strategy;
}

const std::vector<ChangeWord>& change_words() {
  static const std::vector<ChangeWord> kWords = {
      {"nic", "nic=400 Gb/s", "line rate of each NIC, a NIC of the catalogue, or a factor"},
      {"nics-per-host", "nics-per-host=8", "NICs of a host; further ones sit beside those there are"},
      {"network", "network=x2", "NICs, their slots and leaf up-links together"},
      {"transport", "transport=infiniband", "infiniband, roce, tcp, efa, slingshot, omni-path"},
      {"fabric", "fabric=rail-optimised", "single-switch, fat-tree, rail-optimised, or a fabric of the catalogue"},
      {"oversubscription", "oversubscription=1", "leaf down-links over up-links"},
      {"hosts-per-leaf", "hosts-per-leaf=32", "hosts under one leaf switch"},
      {"gpudirect", "gpudirect=on", "NICs read GPU memory"},
      {"p2p", "p2p=on", "GPUs copy to each other over PCIe"},
      {"nvlink", "nvlink=x2", "GPU links: factor, or one direction of one GPU (450 GB/s)"},
      {"nvlink-domain", "nvlink-domain=72", "accelerators behind one NVLink switch"},
      {"bridges", "bridges=on", "NVLink bridges between neighbouring boards"},
      {"pcie", "pcie=5", "PCIe generation of the board, or a factor for the GPUs' slots"},
      {"board", "board=x2", "PCIe, memory and socket links inside the host together"},
      {"pcie-uplink", "pcie-uplink=x2", "PCIe switches' links to the host"},
      {"nic-slot", "nic-slot=x2", "PCIe slots of the NICs"},
      {"host-memory", "host-memory=x2", "memory bandwidth of the sockets"},
      {"socket", "socket=x2", "links between sockets"},
      {"latency", "latency=x0.5", "start and hops of every collective"},
      {"accelerator", "accelerator=b200", "other accelerators on the same boards"},
      {"hbm", "hbm=x1.5", "device memory bandwidth"},
      {"memory", "memory=141 GiB", "device memory capacity"},
      {"clock", "clock=x0.9", "rate of arithmetic"},
      {"power", "power=x0.8", "board power limit"},
      {"host", "host=x2", "speed of launches and Python"},
      {"mend", "mend=links", "links, ranks, load or all: what runs below its specification runs at it"},
      {"slow-rank", "straggler=none", "a slow rank taken away, or put in: slow-rank=17:1.08"},
      {"slow-host", "slow-host=none", "a host with a part of its network, 3:0.5, or none"},
      {"stall", "stall=none", "a rank that waits before its first kernel, 5:200ms/10, or none"},
      {"jitter", "jitter=2%", "spread of kernel times, or none"},
      {"balance", "balance=even", "sequences, experts and stages loaded alike"},
      {"sequences", "sequences=10%", "spread of the work of a micro-batch, or none"},
      {"experts", "experts=1.3", "load of the fullest expert rank over the mean, or none"},
      {"last-stage", "last-stage=1.2", "work of the last stage against the model's, or none"},
      {"gpus", "gpus=2048", "accelerators used; the cluster grows or shrinks with them"},
      {"hosts", "hosts=256", "the same in hosts"},
      {"model", "model=llama-3-70b", "another model of the catalogue"},
      {"layers", "layers=96", "decoder layers"},
      {"batch", "batch=2048", "sequences per step; the micro-batch stays"},
      {"sequence", "sequence=16384", "tokens per sequence"},
      {"accumulate", "accumulate=8", "micro-steps per step; the micro-batch stays, the batch follows"},
      {"precision", "precision=fp8", "bf16, fp16, fp8, fp32, tf32"},
      {"framework", "framework=torchtitan", "whose kernels, buckets and overlap"},
      {"attention", "attention=flash3", "attention kernel"},
      {"compiled", "compiled=true", "torch.compile or captured graphs"},
      {"strategy", "strategy=\"fsdp microbatch=2\"", "a whole strategy in place of the job's"},
  };
  return kWords;
}

Result<Change> parse_change(std::string_view given) {
  const std::string_view text = trim(given);
  const std::size_t equals = text.find('=');
  Change change{std::string(text), canonical(text.substr(0, equals)),
                equals == std::string_view::npos ? "" : std::string(trim(text.substr(equals + 1)))};
  if (change.key.empty())
    return fail(fmt::format("'{}' names nothing to change", text), {}, {"for example --change \"nic=400 Gb/s\""});
  for (const auto& [word, why] : kNotModelled) {
    if (change.key == word)
      return fail(fmt::format("a change of '{}' has no effect in this version", word), {}, {std::string(why)});
  }
  const std::vector<std::string> known = known_words();
  const std::size_t dot = change.key.rfind('.');
  if (dot != std::string::npos && dot > 0) {
    // Device names keep their case: "GPU5.pcie".
    change.key = std::string(trim(text.substr(0, text.rfind('.', equals)))) + change.key.substr(dot);
  } else if (std::find(known.begin(), known.end(), change.key) == known.end()) {
    std::vector<std::string> notes;
    if (const auto close = nearest(change.key, known)) notes.push_back(fmt::format("did you mean '{}'?", *close));
    notes.push_back("chokepoint whatif --list-changes prints every word with an example");
    return fail(fmt::format("unknown change '{}'", change.key), {}, std::move(notes));
  }
  if (change.value.empty() && !(is_strategy_word(change.key) && equals == std::string_view::npos)) {
    return fail(fmt::format("the change '{}' gives no value", text), {},
                {"for example " + std::string(change_words().front().example)});
  }
  return change;
}

Result<Scenario> changed(const Scenario& base, const std::vector<Change>& changes) {
  TRY_INTO([[maybe_unused]] const bool consistent, check_contradictions(changes));
  std::vector<Change> ordered = changes;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Change& a, const Change& b) { return rank_of(a.key) < rank_of(b.key); });
  Scenario out = base;
  for (const Change& change : ordered) {
    TRY_INTO([[maybe_unused]] const bool done,
             is_strategy_word(change.key) ? apply_strategy_word(out, change) : apply(out, change));
  }
  carry_measurements(base, out);
  return out;
}

}  // namespace chokepoint::whatif

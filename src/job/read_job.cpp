// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/frameworks/not_settings.hpp>
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/wiring/measured_network.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "framework_job.hpp"
#include "training_data.hpp"

namespace chokepoint::job {

namespace {

constexpr int kMostGpus = 1 << 20;

std::string beside(const std::string& directory, const std::string& path) {
  return path.empty() || path.front() == '/' ? path : directory + "/" + path;
}

bool looks_like_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.find('.') != std::string::npos;
}

/// Path of `name` as given or beside the job file; empty when neither exists.
std::string find_file(const std::string& name, const std::string& directory) {
  if (file_exists(beside(directory, name))) return beside(directory, name);
  return file_exists(name) ? name : "";
}

Result<model::Model> inline_model(const YamlMap& map) {
  model::Model m;
  m.name = "inline";
  m.family = "llama";
  TRY_INTO(const auto label, map.text("name"));
  if (label) m.name = *label;
  TRY_INTO(m.layers, map.required_int("layers", 1, 100000));
  TRY_INTO(m.hidden, map.required_int("hidden", 1, 1 << 20));
  TRY_INTO(m.heads, map.required_int("heads", 1, 1 << 16));
  TRY_INTO(m.vocab, map.required_int("vocab", 1, 1 << 24));
  TRY_INTO(const auto kv, map.integer("kv_heads", 1, 1 << 16));
  m.kv_heads = kv.value_or(m.heads);
  TRY_INTO(const auto head_dim, map.integer("head_dim", 1, 1 << 14));
  m.head_dim = head_dim.value_or(m.hidden / m.heads);
  m.gated_mlp = true;
  TRY_INTO(const auto ffn, map.integer("ffn_hidden", 1, 1 << 22));
  m.ffn_hidden = ffn.value_or(4 * m.hidden);
  TRY_INTO(const auto positions, map.integer("positions", 0, 1 << 24));
  m.max_positions = positions.value_or(0);
  TRY_INTO([[maybe_unused]] const bool parts, model::read_parts(map, m));
  TRY_INTO(const auto rms, map.boolean("rms_norm"));
  m.rms_norm = rms.value_or(m.gated_mlp || !m.pattern.empty());
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  Result<model::Model> checked = model::validated(std::move(m));
  if (!checked) checked.error().pos = map.has("pattern") ? map.position("pattern") : map.position();
  return checked;
}

}  // namespace

Result<compute::AttentionKernel> parse_attention(std::string_view text, const SourcePos& pos) {
  using compute::AttentionKernel;
  constexpr std::array kKernels = {AttentionKernel::kUnfused, AttentionKernel::kFlash1, AttentionKernel::kTriton,
                                   AttentionKernel::kFlash2,  AttentionKernel::kFlash3, AttentionKernel::kFlash4};
  std::vector<std::string> known;
  for (const AttentionKernel kernel : kKernels) {
    if (compute::name(kernel) == text) return kernel;
    known.emplace_back(compute::name(kernel));
  }
  return fail(fmt::format("unknown attention kernel '{}'; expected one of: {}", text, fmt::join(known, ", ")), pos);
}

compute::AttentionKernel default_attention(const hardware::Accelerator& accelerator) {
  using hardware::Architecture;
  switch (accelerator.architecture) {
    case Architecture::kVolta:
    case Architecture::kTuring: return compute::AttentionKernel::kUnfused;
    case Architecture::kHopper: return compute::AttentionKernel::kFlash3;
    case Architecture::kBlackwell: return compute::AttentionKernel::kFlash4;
    default: break;
  }
  return compute::AttentionKernel::kFlash2;
}

namespace {

/// File and options side by side; an option wins.
struct Fields {
  std::optional<YamlMap> map;
  std::string file;
  std::string directory;

  Result<std::optional<std::string>> text(const std::string& key, const std::optional<std::string>& option) const {
    std::optional<std::string> value;
    if (map && !(key == "model" && is_map(key))) { TRY_INTO(value, map->text(key)); }
    return option ? option : value;
  }
  Result<std::optional<int>> integer(const std::string& key, std::optional<int> option, int low, int high) const {
    std::optional<int> value;
    if (map) { TRY_INTO(value, map->integer(key, low, high)); }
    if (option && (*option < low || *option > high)) {
      return fail(fmt::format("--{} is {}, expected a whole number from {} to {}", key, *option, low, high));
    }
    return option ? option : value;
  }
  bool is_map(const std::string& key) const { return map && map->has(key) && map->map(key).has_value(); }
  SourcePos pos(const std::string& key) const { return map && map->has(key) ? map->position(key) : SourcePos{}; }
};

Result<model::Model> read_model(const Fields& fields, const Options& options) {
  if (!options.model && fields.is_map("model")) {
    TRY_INTO(const YamlMap map, fields.map->required_map("model"));
    return inline_model(map);
  }
  TRY_INTO(const auto name, fields.text("model", options.model));
  if (!name && options.sizes) return *options.sizes;
  if (!name) {
    return fail("the job names no model", {fields.file, 0, 0},
                {"give --model llama-3-8b (chokepoint models lists all), or the path of a config.json"});
  }
  Result<model::Model> found = resolve_model(*name, fields.directory);
  if (!found && found.error().pos.file.empty()) found.error().pos = fields.pos("model");
  return found;
}

Result<topology::Cluster> read_cluster(const Fields& fields, const Options& options) {
  TRY_INTO(const auto name, fields.text("cluster", options.cluster));
  if (!name) {
    return fail("the job names no cluster", {fields.file, 0, 0},
                {"give --cluster dgx-h100 (chokepoint clusters lists all), a cluster file, or what nvidia-smi topo -m printed"});
  }
  TRY_INTO(const auto hosts, fields.integer("hosts", options.hosts, 1, kMostGpus));
  TRY_INTO(const auto gpus, fields.integer("gpus", options.gpus, 1, kMostGpus));
  TRY_INTO(const auto accelerator, fields.text("accelerator", options.accelerator));
  Result<topology::Cluster> found = resolve_cluster(*name, fields.directory, hosts, gpus, accelerator);
  if (!found && found.error().pos.file.empty()) found.error().pos = fields.pos("cluster");
  TRY_INTO(const auto network, fields.text("network", options.network));
  if (found && network) {
    TRY_INTO([[maybe_unused]] const bool used, apply_network(*found, *network, fields.directory));
  }
  return found;
}

/// Whether modules that predict further tokens train: as the file says, else where the framework builds the model from its
/// published description (Megatron-Core's mtp_num_layers).
Result<bool> settle_further_tokens(const Fields& fields, parallel::Job& job) {
  std::optional<bool> asked;
  if (fields.map) { TRY_INTO(asked, fields.map->boolean("mtp")); }
  if (job.model.further.modules == 0) {
    if (asked.value_or(false)) {
      return fail(fmt::format("model {} has no modules that predict further tokens", job.model.name), fields.pos("mtp"),
                  {"leave 'mtp' out, or describe them in the model: 'mtp: {modules: 1}'"});
    }
    return true;
  }
  const bool trains = asked.value_or(job.framework == parallel::Framework::kMegatron);
  if (!asked) {
    job.assumptions.push_back({trains ? "modules that predict further tokens train too ('mtp: false' leaves them out)"
                                      : "modules that predict further tokens are left out ('mtp: true' trains them)", {}});
  }
  if (!trains) job.model.further.modules = 0;
  return true;
}

/// A synchronous job runs at the pace of its slowest hosts: they go first, and the rest of the model follows them.
Result<bool> slowest_first(parallel::Job& job) {
  auto& hosts = job.cluster.hosts;
  if (hosts.size() < 2) return true;
  std::vector<double> peaks;
  for (const topology::HostGroup& group : hosts) {
    if (group.host.accelerator.empty()) return true;
    TRY_INTO(const hardware::Accelerator part, hardware::find_accelerator(group.host.accelerator));
    peaks.push_back(std::max(part.peak(hardware::Dtype::kBf16), part.peak(hardware::Dtype::kFp16)));
  }
  const std::size_t slowest = static_cast<std::size_t>(std::min_element(peaks.begin(), peaks.end()) - peaks.begin());
  std::rotate(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(slowest), hosts.begin() + static_cast<std::ptrdiff_t>(slowest) + 1);
  return true;
}

Result<bool> read_software(const Fields& fields, const Options& options, parallel::Job& job) {
  TRY_INTO(const auto precision, fields.text("precision", options.precision));
  if (precision) {
    TRY_INTO(job.dtype, hardware::parse_dtype(*precision));
  } else {
    job.dtype = job.accelerator.peak(hardware::Dtype::kBf16) > 0 ? hardware::Dtype::kBf16 : hardware::Dtype::kFp16;
    job.assumptions.push_back({fmt::format("precision {}", hardware::name(job.dtype)), {}});
  }
  TRY_INTO(const auto framework, fields.text("framework", options.framework));
  if (framework) {
    TRY_INTO(job.framework, parallel::parse_framework(*framework));
  } else {
    job.framework_assumed = true;
    job.assumptions.push_back({"framework: fused kernels and overlap as in Megatron-Core; FSDP as in PyTorch", {}});
  }
  TRY_INTO(const auto attention, fields.text("attention", options.attention));
  if (attention) {
    TRY_INTO(job.attention, parse_attention(*attention, fields.pos("attention")));
  } else {
    job.attention = default_attention(job.accelerator);
    job.assumptions.push_back({fmt::format("attention kernel {}", compute::name(job.attention)), {}});
  }
  if (fields.map) {
    TRY_INTO(const auto compiled, fields.map->boolean("compiled"));
    job.compiled = compiled.value_or(false);
    TRY_INTO(const auto fp32, fields.map->boolean("fp32_gradients"));
    job.fp32_gradients = fp32.value_or(true);
    TRY_INTO(const auto year, fields.map->integer("year", 2018, 2100));
    job.year = year.value_or(job.year);
  }
  if (options.compiled) job.compiled = *options.compiled;
  return true;
}

}  // namespace

Result<model::Model> resolve_model(const std::string& name, const std::string& base_directory) {
  const std::string path = find_file(name, base_directory);
  if (!path.empty()) {
    TRY_INTO(const std::string text, read_text_file(path));
    return model::read_hf_config(text, path);
  }
  if (looks_like_path(name) && name.ends_with(".json")) return fail("no such file: " + name);
  return model::find_model(name);
}

Result<topology::Cluster> resolve_cluster(const std::string& name, const std::string& base_directory,
                                          std::optional<int> hosts, std::optional<int> gpus,
                                          const std::optional<std::string>& accelerator) {
  const std::string path = find_file(name, base_directory);
  if (path.empty()) {
    if (name.find('/') != std::string::npos) return fail("no such file: " + name);
    TRY_INTO(topology::Cluster one, wiring::build_cluster(name, hosts.value_or(1)));
    if (!hosts && gpus && one.gpus_per_host() > 0) {
      const int needed = (*gpus + one.gpus_per_host() - 1) / one.gpus_per_host();
      return wiring::build_cluster(name, needed);
    }
    return one;
  }
  TRY_INTO(const std::string text, read_text_file(path));
  if (wiring::recognise(text) == wiring::Format::kClusterYaml) {
    TRY_INTO(topology::Cluster listed, wiring::read_cluster_yaml(text, path));
    if (hosts && *hosts != listed.host_count()) {
      return fail(fmt::format("{} hosts asked for, but the cluster file lists {}", *hosts, listed.host_count()), {path, 0, 0},
                  {"change 'count' in the cluster file, or use --gpus to take a part of it"});
    }
    return listed;
  }
  TRY_INTO(topology::Host host, wiring::read_host(text, path));
  if (accelerator) {
    TRY_INTO(const hardware::Accelerator part, hardware::find_accelerator(*accelerator));
    TRY_INTO(host, wiring::with_accelerator(std::move(host), part));
  }
  topology::Cluster cluster;
  cluster.name = path;
  const int per_host = std::max(1, static_cast<int>(host.gpus().size()));
  const int count = hosts.value_or(gpus ? (*gpus + per_host - 1) / per_host : 1);
  cluster.hosts.push_back({std::move(host), count});
  if (count > 1) {
    cluster.fabric.kind = topology::FabricKind::kSingleSwitch;
    cluster.fabric.origin = "assumed: one non-blocking switch";
    cluster.notes.push_back({"fabric: the host file says nothing of it; one non-blocking switch assumed", {path, 0, 0}});
  }
  return cluster;
}

Result<bool> apply_network(topology::Cluster& cluster, const std::string& name, const std::string& base_directory) {
  const std::string path = find_file(name, base_directory);
  if (path.empty()) return fail("no such file: " + name, {}, {"'chokepoint measure --network --save FILE' writes one"});
  TRY_INTO(const std::string text, read_text_file(path));
  TRY_INTO(const topology::MeasuredNetwork network, wiring::read_measured_network(text, path));
  wiring::use_network(cluster, network);
  return true;
}

Result<JobFile> read_job(std::string_view text, const std::string& file, const Options& options) {
  if (!file.empty() && frameworks::recognise(text)) return read_framework_job(text, file, options);
  Fields fields;
  fields.file = file;
  fields.directory = file.empty() ? "." : directory_of(file);
  if (!file.empty()) {
    if (auto wrong = frameworks::not_settings(text, file)) return tl::make_unexpected(std::move(*wrong));
    TRY_INTO(fields.map, YamlMap::parse(text, file));
  }
  JobFile out;
  parallel::Job& job = out.job;
  TRY_INTO(job.model, read_model(fields, options));
  TRY_INTO(job.cluster, read_cluster(fields, options));
  TRY_INTO([[maybe_unused]] const bool paced, slowest_first(job));
  TRY_INTO(auto part, fields.text("accelerator", options.accelerator));
  const std::string found = job.cluster.hosts.front().host.accelerator;
  if (!part) part = found;
  if (!found.empty()) {
    TRY_INTO(const hardware::Accelerator asked, hardware::find_accelerator(*part));
    TRY_INTO(const hardware::Accelerator wired, hardware::find_accelerator(found));
    if (asked.name != wired.name) {
      return fail(fmt::format("accelerator {} asked for, but the wiring has {}", asked.name, wired.name), fields.pos("accelerator"),
                  {"leave 'accelerator' out, or choose a cluster with these accelerators (chokepoint clusters)"});
    }
  }
  if (part->empty()) {
    return fail("the wiring does not say which accelerators these are", job.cluster.notes.empty() ? SourcePos{} : job.cluster.notes.front().pos,
                {"give --accelerator h100-sxm5-80gb (chokepoint accelerators lists all), or 'accelerator:' in the file"});
  }
  TRY_INTO(job.accelerator, hardware::find_accelerator(*part));
  TRY_INTO(const auto gpus, fields.integer("gpus", options.gpus, 1, kMostGpus));
  job.gpus = gpus.value_or(job.cluster.gpu_count());
  if (job.gpus > job.cluster.gpu_count()) {
    return fail(fmt::format("the job wants {} GPUs, the cluster has {}", job.gpus, job.cluster.gpu_count()), fields.pos("gpus"),
                {"leave 'gpus' out to use all of them, or give the cluster more hosts"});
  }
  if (job.gpus > kMostGpus) {
    return fail(fmt::format("{} GPUs are more than the {} this version handles", job.gpus, kMostGpus), fields.pos("gpus"),
                {"use --gpus or fewer hosts"});
  }
  const int per_host = std::max(1, job.cluster.gpus_per_host());
  if (job.gpus > per_host && job.gpus % per_host != 0) {
    job.assumptions.push_back({fmt::format("{} GPUs do not fill hosts of {}: groups are laid out by common divisors, other numbers run better",
                                           job.gpus, per_host), {}});
  }
  TRY_INTO(auto sequence, fields.integer("sequence", options.sequence, 1, 1 << 26));
  if (!sequence && job.model.patch_inputs > 0) sequence = job.model.max_positions;  // an image has as many patches as positions
  if (!sequence) return fail("the job gives no sequence length", {file, 0, 0}, {"give --seq 4096 or 'sequence: 4096'"});
  job.sequence = *sequence;
  std::optional<int> batch;
  if (fields.map) { TRY_INTO(batch, fields.map->integer("batch", 1, 1 << 30)); }
  if (options.batch) {
    if (!(*options.batch >= 1 && *options.batch <= 1 << 30) || *options.batch != std::floor(*options.batch)) {
      return fail(fmt::format("--batch is {}, expected a whole number of sequences from 1", *options.batch), {},
                  {"a batch counts sequences per optimizer step, all ranks together"});
    }
    batch = static_cast<int>(*options.batch);
  }
  if (!batch || *batch < 1) {
    return fail("the job gives no batch", {file, 0, 0}, {"give --batch 256 or 'batch: 256': sequences per optimizer step, all ranks together"});
  }
  job.global_batch = *batch;
  TRY_INTO([[maybe_unused]] const bool software, read_software(fields, options, job));
  TRY_INTO([[maybe_unused]] const bool further, settle_further_tokens(fields, job));
  TRY_INTO(const auto strategy, fields.text("strategy", options.strategy));
  if (strategy) {
    Result<parallel::Strategy> parsed = parallel::parse_strategy(*strategy);
    if (!parsed) {
      parsed.error().pos = options.strategy ? SourcePos{} : fields.pos("strategy");
      return tl::make_unexpected(std::move(parsed).error());
    }
    out.strategy = *parsed;
  }
  if (fields.map) {
    TRY_INTO([[maybe_unused]] const bool adapters, read_adapters(*fields.map, job));
    TRY_INTO([[maybe_unused]] const bool documents, read_documents(*fields.map, job));
    TRY_INTO(const auto price, fields.map->number("usd_per_accelerator_hour", 0, 1e6));
    if (price) job.cluster.prices.accelerator_hour_usd = *price;
    TRY_INTO(out.imperfections, fields.map->texts("imperfections"));
    out.imperfections_pos = fields.map->position("imperfections");
    TRY_INTO([[maybe_unused]] const bool done, fields.map->finish());
  }
  for (const Note& note : job.cluster.notes) job.assumptions.push_back(note);
  for (const Note& note : job.cluster.hosts.front().host.notes) job.assumptions.push_back(note);
  return out;
}

}  // namespace chokepoint::job

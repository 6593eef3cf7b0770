// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/base/yaml.hpp>

#include <cstdlib>
#include <map>

#include "statement.hpp"

namespace chokepoint::statements {

namespace {

/// Where job texts come from: named texts inside the document, or files beside it.
struct Jobs {
  std::string directory;
  std::map<std::string, std::string> texts;
};

Result<double> limit(const std::string& text, const std::string& of) {
  if (of == "reserved" || of == "allocated" || of == "states") return parse_bytes(text);
  if (of == "bus_bandwidth" || of == "implied") return parse_rate(text);
  if (of == "step_time") return parse_duration(text);
  return std::strtod(text.c_str(), nullptr);
}

Result<bool> read_limits(const YamlMap& map, Claim& claim) {
  const bool plain = claim.kind == ClaimKind::kRatio || claim.kind == ClaimKind::kRanksAs;
  const std::string unit_of = plain ? "number" : claim.kind == ClaimKind::kImplied ? "implied" : claim.of;
  TRY_INTO(const auto low, map.text("low"));
  TRY_INTO(const auto high, map.text("high"));
  if (low) { TRY_INTO(claim.low, limit(*low, unit_of)); }
  if (high) { TRY_INTO(claim.high, limit(*high, unit_of)); }
  return true;
}

Result<Claim> read_claim(const YamlMap& map) {
  static const std::map<std::string, ClaimKind> kKinds = {
      {"ratio", ClaimKind::kRatio},         {"difference", ClaimKind::kDifference}, {"value", ClaimKind::kValue},
      {"ascending", ClaimKind::kAscending}, {"fits", ClaimKind::kFits},             {"misfits", ClaimKind::kMisfits},
      {"implied", ClaimKind::kImplied},     {"ranks_as", ClaimKind::kRanksAs}};
  Claim claim;
  bool found = false;
  for (const auto& [word, kind] : kKinds) {
    if (!map.has(word)) continue;
    claim.kind = kind;
    TRY_INTO(claim.runs, map.texts(word));
    found = true;
  }
  if (!found) return fail("a claim needs one of: ratio, difference, value, ascending, fits, misfits, implied, ranks_as", map.position());
  TRY_INTO(const auto of, map.text("of"));
  if (of) claim.of = *of;
  TRY_INTO(const auto measured, map.texts("measured"));
  for (const std::string& text : measured) {
    if (claim.kind == ClaimKind::kImplied) {
      double seconds = 0;
      TRY_INTO(seconds, parse_duration(text));
      claim.measured.push_back(seconds);
    } else {
      claim.measured.push_back(std::strtod(text.c_str(), nullptr));
    }
  }
  TRY_INTO([[maybe_unused]] const bool limits, read_limits(map, claim));
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return claim;
}

Result<bool> read_options(const YamlMap& map, const std::string& directory, job::Options& options) {
  TRY_INTO(options.model, map.text("model"));
  TRY_INTO(options.cluster, map.text("cluster"));
  if (options.cluster && options.cluster->find('/') != std::string::npos) options.cluster = directory + "/" + *options.cluster;
  TRY_INTO(options.accelerator, map.text("accelerator"));
  TRY_INTO(options.precision, map.text("precision"));
  TRY_INTO(options.framework, map.text("framework"));
  TRY_INTO(options.attention, map.text("attention"));
  TRY_INTO(options.strategy, map.text("strategy"));
  TRY_INTO(options.hosts, map.integer("hosts", 1, 1 << 20));
  TRY_INTO(options.gpus, map.integer("gpus", 1, 1 << 20));
  TRY_INTO(options.sequence, map.integer("sequence", 1, 1 << 26));
  TRY_INTO(options.batch, map.number("batch", 1, 1e9));
  TRY_INTO(options.compiled, map.boolean("compiled"));
  return true;
}

/// `common` holds the statement's own job settings; the run's replace them one by one.
Result<Run> read_run(const YamlMap& map, const Jobs& jobs, const std::optional<std::string>& common_job) {
  Run run;
  TRY_INTO(run.name, map.required_text("name"));
  TRY_INTO(auto job, map.text("job"));
  if (!job) job = common_job;
  if (job) {
    const auto named = jobs.texts.find(*job);
    if (named != jobs.texts.end()) {
      run.job_text = named->second;
      run.job_file = jobs.directory + "/" + *job;
    } else {
      run.job_file = jobs.directory + "/" + *job;
      TRY_INTO(run.job_text, read_text_file(run.job_file));
    }
  }
  TRY_INTO([[maybe_unused]] const bool options, read_options(map, jobs.directory, run.options));
  if (run.options.strategy == "best") {
    run.best = true;
    run.options.strategy.reset();
  }
  TRY_INTO(const auto collective, map.text("collective"));
  run.collective = collective.value_or("");
  TRY_INTO(const auto size, map.bytes("size"));
  run.collective_bytes = size.value_or(0);
  TRY_INTO(const auto stride, map.integer("stride", 1, 64));
  run.stride = stride.value_or(1);
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return run;
}

Result<Statement> read_statement(const YamlMap& map, const Jobs& jobs) {
  Statement s;
  TRY_INTO(s.id, map.required_text("id"));
  TRY_INTO(s.says, map.required_text("says"));
  TRY_INTO(const auto source, map.text("source"));
  s.source = source.value_or("");
  TRY_INTO(const auto assumed, map.text("assumed"));
  s.assumed = assumed.value_or("");
  TRY_INTO(const auto known, map.text("known_wrong"));
  s.expected = !known;
  s.reason = known.value_or("");
  TRY_INTO(const auto job, map.text("job"));
  TRY_INTO(const auto runs, map.maps("runs"));
  for (const YamlMap& each : runs) {
    Run run;
    TRY_INTO(run, read_run(each, jobs, job));
    s.runs.push_back(std::move(run));
  }
  TRY_INTO(const auto claims, map.maps("claims"));
  for (const YamlMap& each : claims) {
    Claim claim;
    TRY_INTO(claim, read_claim(each));
    s.claims.push_back(std::move(claim));
  }
  if (s.claims.empty()) return fail("statement " + s.id + " claims nothing", map.position());
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  return s;
}

}  // namespace

Result<std::vector<Statement>> read_statements(const std::string& path) {
  TRY_INTO(const std::string text, read_text_file(path));
  TRY_INTO(const YamlMap map, YamlMap::parse(text, path));
  Jobs jobs;
  jobs.directory = directory_of(path);
  TRY_INTO(const auto named, map.map("jobs"));
  if (named) {
    for (const std::string& key : named->keys()) { TRY_INTO(jobs.texts[key], named->required_text(key)); }
  }
  TRY_INTO(const auto statements, map.maps("statements"));
  std::vector<Statement> out;
  for (const YamlMap& each : statements) {
    Statement s;
    TRY_INTO(s, read_statement(each, jobs));
    out.push_back(std::move(s));
  }
  TRY_INTO([[maybe_unused]] const bool done, map.finish());
  if (out.empty()) return fail("no statements", {path, 0, 0});
  return out;
}

}  // namespace chokepoint::statements

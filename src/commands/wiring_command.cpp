// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/assemble/export.hpp>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/collective/collective.hpp>
#include <chokepoint/plan/plan.hpp>
#include <chokepoint/report/fabric_svg.hpp>
#include <chokepoint/report/pages.hpp>
#include <chokepoint/report/picture.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "commands.hpp"
#include "job_options.hpp"
#include "report_files.hpp"
#include "live_machine.hpp"

namespace chokepoint::commands {

namespace {

struct WiringOptions {
  std::vector<std::string> inputs;
  std::string accelerator;
  std::string nic;
  std::string fabric;
  std::string svg;
  std::vector<std::string> expect;
  std::vector<std::string> exports;
  std::string fail_on;
  int hosts = 0;
  bool anonymise = false;
  LiveOptions live;
  JobOptions job;
  ReportFiles files;
};

/// Every file; those that cannot be read are kept aside as long as one can.
Result<assemble::Assembly> read_files(const WiringOptions& options, std::vector<Error>& unreadable, std::vector<std::string>& unseen) {
  std::vector<wiring::Document> documents;
  if (options.live.live) {
    TRY_INTO(documents, live_documents(options.live, unseen));
  }
  std::map<std::string, std::string> seen;  // text -> first file that has it
  std::set<std::filesystem::path> given;
  std::error_code ignored;
  for (const std::string& path : options.inputs) {
    const bool again = path != "-" && !given.insert(std::filesystem::weakly_canonical(path, ignored)).second;
    if (again) {
      if (!documents.empty()) documents.back().notes.push_back({path + " is given twice; read once", {path, 0, 0}});
      continue;
    }
    Result<std::vector<wiring::Document>> found = [&]() -> Result<std::vector<wiring::Document>> {
      TRY_INTO(std::string text, read_text_file(path));
      TRY_INTO(std::vector<wiring::Document> read, wiring::read_documents(text, path));
      const auto [first, fresh] = seen.emplace(std::move(text), path);
      if (!fresh && !read.empty()) read.front().notes.push_back({"the same text as " + first->second + ": a second host like it, or one file copied?", {path, 0, 0}});
      return read;
    }();
    if (found) documents.insert(documents.end(), std::make_move_iterator(found->begin()), std::make_move_iterator(found->end()));
    else unreadable.push_back(std::move(found).error());
  }
  if (documents.empty()) return tl::make_unexpected(unreadable.front());
  TRY_INTO(assemble::Assembly assembly, assemble::assemble(std::move(documents)));
  if (assembly.cluster.name.empty()) assembly.cluster.name = options.inputs.empty() ? "this machine" : options.inputs.front();
  return assembly;
}

/// Files, or else a catalogue name.
Result<assemble::Assembly> read_assembly(const WiringOptions& options, std::vector<Error>& unreadable, std::vector<std::string>& unseen) {
  if (options.live.live) return read_files(options, unreadable, unseen);
  if (options.inputs.empty()) return fail("nothing to read was named", {}, {"give files or a catalogue host, or --live for the machine this runs on"});
  const std::string& first = options.inputs.front();
  if (options.inputs.size() > 1 || file_exists(first)) return read_files(options, unreadable, unseen);
  Result<topology::Cluster> named = wiring::build_cluster(first, options.hosts > 0 ? options.hosts : 1);
  if (!named) {
    named.error().notes.push_back("'" + first + "' is no file here either");
    return tl::make_unexpected(std::move(named).error());
  }
  assemble::Assembly assembly;
  assembly.cluster = std::move(*named);
  return assembly;
}

Result<bool> apply_options(topology::Cluster& cluster, const WiringOptions& options) {
  if (!options.accelerator.empty()) {
    TRY_INTO(const hardware::Accelerator accelerator, hardware::find_accelerator(options.accelerator));
    for (topology::HostGroup& group : cluster.hosts) {
      TRY_INTO(group.host, wiring::with_accelerator(std::move(group.host), accelerator));
    }
  }
  if (!options.nic.empty()) {
    TRY_INTO(const hardware::Nic nic, hardware::find_nic(options.nic));
    for (topology::HostGroup& group : cluster.hosts) wiring::set_nics(group.host, nic);
  }
  if (options.hosts > 0 && !cluster.hosts.empty()) {
    if (cluster.hosts.size() > 1) return fail("--hosts needs one kind of host, found several");
    cluster.hosts.front().count = options.hosts;
  }
  if (!options.fabric.empty()) {
    TRY_INTO(const hardware::FabricTemplate fabric, hardware::find_fabric(options.fabric));
    TRY_INTO(cluster.fabric, wiring::build_fabric(fabric));
  }
  return true;
}

Result<hardware::Accelerator> accelerator_of(const topology::Cluster& cluster) {
  if (cluster.hosts.empty()) return fail("no file describes a host, so there is nothing to expect");
  const topology::Host& host = cluster.hosts.front().host;
  if (host.gpus().empty()) return fail("the wiring shows no GPU, so there is nothing to expect", {host.name, 0, 0});
  if (cluster.gpu_count() < 2) return fail("a collective needs two GPUs", {host.name, 0, 0}, {"add --hosts N"});
  if (host.accelerator.empty()) return fail("the wiring does not say which accelerator it has", {host.name, 0, 0}, {"add --accelerator NAME"});
  if (cluster.host_count() > 1 && cluster.fabric.kind == topology::FabricKind::kNone) {
    return fail("several hosts, but nothing says what joins them", {host.name, 0, 0}, {"add --fabric NAME, or write a cluster file"});
  }
  return hardware::find_accelerator(host.accelerator);
}

const wiring::Document* measured_document(const assemble::Assembly& assembly, std::string_view op) {
  for (const wiring::Document& document : assembly.documents) {
    const auto* table = std::get_if<wiring::MeasuredTable>(&document.content);
    if (table != nullptr && table->kind == wiring::TableKind::kNcclTests && table->op == op && !table->rows.empty()) return &document;
  }
  return nullptr;
}

/// Ranks as the table says where it does, else all GPUs of the cluster.
collective::Group group_of(const topology::Cluster& cluster, const wiring::MeasuredTable* table) {
  collective::Group group;
  group.ranks_per_host = cluster.gpus_per_host();
  group.ranks = cluster.gpus_per_host() * cluster.host_count();
  if (table == nullptr) return group;
  const int ranks = table->stated_ranks() > 1 ? table->stated_ranks() : table->implied_ranks();
  const int hosts = static_cast<int>(table->hosts().size());
  if (ranks < 2 || ranks > group.ranks) return group;
  const int per_host = hosts > 0 && ranks % hosts == 0 ? ranks / hosts : std::min(ranks, cluster.gpus_per_host());
  if (per_host > cluster.gpus_per_host() || ranks % per_host != 0) return group;
  group.ranks = ranks;
  group.ranks_per_host = per_host;
  return group;
}

Result<report::ExpectedTable> expected_table(const assemble::Assembly& assembly, const collective::Network& network, const std::string& word) {
  constexpr double kSmallest = 1024;
  constexpr double kLargest = 16.0 * 1024 * 1024 * 1024;
  report::ExpectedTable table;
  TRY_INTO(table.op, collective::parse_op(word));
  table.accelerator = assembly.cluster.hosts.front().host.accelerator;
  const wiring::Document* document = measured_document(assembly, collective::name(table.op));
  const auto* measured = document == nullptr ? nullptr : &std::get<wiring::MeasuredTable>(document->content);
  table.group = group_of(assembly.cluster, measured);
  if (measured == nullptr) {
    for (double bytes = kSmallest; bytes <= kLargest; bytes *= 2) table.rows.push_back({bytes, network.cost(table.op, bytes, table.group), std::nullopt, std::nullopt});
    return table;
  }
  table.measured_file = document->file;
  for (const wiring::TableRow& row : measured->rows) {
    if (row.bytes > 0) table.rows.push_back({row.bytes, network.cost(table.op, row.bytes, table.group), row.time_s, row.bus_bytes_per_s});
  }
  return table;
}

std::optional<findings::Finding> judged(const report::ExpectedTable& table) {
  if (table.measured_file.empty()) return std::nullopt;
  std::vector<findings::Reached> rows;
  std::string limit;
  double largest = 0;
  for (const report::ExpectedTable::Row& row : table.rows) {
    rows.push_back({row.bytes, row.measured_bus_bytes_per_s.value_or(0), row.cost.bus_bytes_per_s});
    if (row.bytes > largest) {
      largest = row.bytes;
      limit = std::string(row.cost.where);
    }
  }
  return findings::judge(rows, collective::name(table.op), limit, {table.measured_file, 0, 0});
}

/// What each finding costs the job of --job; the job's own strategy, or the best one where it names none.
Result<bool> price(report::WiringReport& report, const WiringOptions& options) {
  if (options.job.file.empty() && !options.job.values.model) return true;
  TRY_INTO(const job::JobFile file, load_job(options.job));
  parallel::Strategy strategy;
  if (file.strategy) {
    strategy = *file.strategy;
  } else {
    TRY_INTO(const plan::Plan plan, plan::make_plan(file.job));
    if (plan.candidates.empty()) return fail("no strategy of this job fits in memory, so faults have no price", {options.job.file, 0, 0});
    strategy = plan.candidates.front().strategy;
  }
  TRY_INTO(report.own_cluster, findings::price(report.findings, report.assembly, file.job, strategy));
  TRY_INTO(const parallel::Strategy whole, parallel::completed(file.job, strategy));
  report.job = file.job.model.name + ", " + parallel::title(whole);
  return true;
}

/// "KIND=FILE": yaml, dot, nccl, slurm, fabric-svg.
Result<bool> write_export(const assemble::Assembly& assembly, const std::vector<findings::Finding>& found, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string kind = word.substr(0, equals);
  const std::string path = equals == std::string::npos ? std::string("-") : word.substr(equals + 1);
  if (kind == "dot") return write_text_file(path, assemble::to_dot(assembly));
  if (kind == "fabric-svg") {
    const std::string picture = report::fabric_svg(assembly, found);
    if (picture.empty()) return fail("no file shows the switches between the hosts, so there are none to draw", {}, {"add the output of ibnetdiscover, or Slurm's topology.conf"});
    TRY_INTO(const std::string file, report::picture_for(path, picture));
    return write_text_file(path, file);
  }
  if (kind == "slurm") {
    TRY_INTO(const std::string text, assemble::to_slurm(assembly));
    return write_text_file(path, text);
  }
  if (kind != "nccl" && kind != "yaml") return fail("--export takes yaml=FILE, dot=FILE, nccl=FILE, slurm=FILE or fabric-svg=FILE, found '" + word + "'");
  if (assembly.cluster.hosts.empty()) return fail("no file describes a host, so there is none to export");
  if (kind == "nccl") return write_text_file(path, assemble::to_nccl_xml(assembly.cluster.hosts.front().host));
  if (path == "-") return fail("--export yaml needs a file name: host files are written beside it");
  const std::string stem = path.substr(0, path.rfind('.') == std::string::npos || path.rfind('.') < path.rfind('/') + 1 ? path.size() : path.rfind('.'));
  const assemble::YamlExport yaml = assemble::to_yaml(assembly.cluster, stem);
  for (const auto& [name, text] : yaml.host_files) {
    TRY_INTO([[maybe_unused]] const bool written, write_text_file(directory_of(path) + "/" + name, text));
  }
  return write_text_file(path, yaml.cluster);
}

struct Outcome {
  std::string text;
  int code = 0;
};

int exit_code(const report::WiringReport& report, const WiringOptions& options) {
  const bool warnings = options.fail_on == "warning";
  for (const findings::Finding& finding : report.findings) {
    if (!options.fail_on.empty() && (finding.severity == findings::Severity::kCritical || (warnings && finding.severity == findings::Severity::kWarning))) return 1;
  }
  return report.unreadable.empty() ? 0 : 4;
}

std::string printed(const report::WiringReport& report, const CommonOptions& common) {
  if (common.json) return report::wiring_json(report);
  const report::Style style = report::terminal_style(common.lang);
  std::string text;
  if (!common.quiet || report.expected.empty()) text = report::wiring_text(report, style, common.quiet);
  for (const report::ExpectedTable& table : report.expected) text += report::expected_text(table, style);
  return text;
}

Result<Outcome> run(const WiringOptions& options, const CommonOptions& common) {
  TRY_INTO([[maybe_unused]] const bool apart, check_reports(options.files, common, with_files_they_name(options.inputs)));
  report::WiringReport report;
  std::vector<std::string> unseen;
  TRY_INTO(report.assembly, read_assembly(options, report.unreadable, unseen));
  TRY_INTO([[maybe_unused]] const bool applied, apply_options(report.assembly.cluster, options));
  std::unique_ptr<collective::Network> network;  // outlives the tables, whose words it holds
  report.findings = findings::check(report.assembly);
  if (!options.expect.empty()) {
    topology::Cluster cluster = report.assembly.cluster;
    cluster.measured = {};  // what was measured is compared, not expected
    TRY_INTO(const hardware::Accelerator accelerator, accelerator_of(cluster));
    network = std::make_unique<collective::Network>(cluster, accelerator);
    for (const std::string& word : options.expect) {
      TRY_INTO(report::ExpectedTable table, expected_table(report.assembly, *network, word));
      if (auto finding = judged(table)) report.findings.push_back(std::move(*finding));
      report.expected.push_back(std::move(table));
    }
    std::stable_sort(report.findings.begin(), report.findings.end(), [](const auto& a, const auto& b) { return a.severity < b.severity; });
  }
  TRY_INTO([[maybe_unused]] const bool priced, price(report, options));
  if (!report.assembly.documents.empty()) assemble::list_unknown(report.assembly);
  report.assembly.unknown.insert(report.assembly.unknown.end(), unseen.begin(), unseen.end());
  const assemble::Anonymiser names(report.assembly);
  if (!options.svg.empty()) {
    if (report.assembly.cluster.hosts.empty()) return fail("no file describes a host, so there is none to draw");
    TRY_INTO([[maybe_unused]] const bool safe, check_output(options.svg, with_files_they_name(options.inputs)));
    std::string drawn = report::wiring_svg(report.assembly.cluster);
    if (options.anonymise) drawn = names.apply(drawn);
    TRY_INTO(const std::string picture, report::picture_for(options.svg, std::move(drawn)));
    TRY_INTO([[maybe_unused]] const bool written, write_text_file(options.svg, picture));
  }
  if (!options.exports.empty()) {
    assemble::Assembly named = report.assembly;
    if (options.anonymise) names.apply(named);
    for (const std::string& word : options.exports) {
      TRY_INTO([[maybe_unused]] const bool safe, check_output(word.substr(std::min(word.size(), word.find('=') + 1)), with_files_they_name(options.inputs)));
      TRY_INTO([[maybe_unused]] const bool written, write_export(named, options.anonymise ? std::vector<findings::Finding>() : report.findings, word));
    }
  }
  Outcome outcome;
  outcome.code = exit_code(report, options);
  const report::Words& words = report::Words::of(common.lang);
  const auto hidden = [&](std::string_view text) { return options.anonymise ? names.apply(text) : std::string(text); };
  TRY_INTO(outcome.text, write_reports(options.files, {[&](report::PageForm form) { return report::wiring_html(report, hidden, form, words); }, [&] { return hidden(report::wiring_markdown(report, words)); }, [&] { return hidden(report::wiring_csv(report)); }},
                                       [&] { return hidden(printed(report, common)); }));
  return outcome;
}

}  // namespace

void add_wiring(CLI::App& app, CommonOptions& common, Action& action) {
  auto options = std::make_shared<WiringOptions>();
  CLI::App* command = app.add_subcommand("wiring", "Import, draw and check a host or cluster; the collectives it should give");
  add_common(*command, common, Speaks::kEnglishAndRussian);
  command->add_option("inputs", options->inputs, "what the cluster's tools printed (any mix; docs/formats/wiring.md), a cluster file, or a catalogue host");
  add_live_options(*command, options->live);
  command->add_option("--accelerator", options->accelerator, "catalogue name of the GPUs, where the files do not say it");
  command->add_option("--nic", options->nic, "catalogue name of the NICs near the GPUs");
  command->add_option("--hosts", options->hosts, "number of such hosts")->check(CLI::Range(1, 1 << 20));
  command->add_option("--fabric", options->fabric, "catalogue name of what joins the hosts");
  command->add_option("--svg", options->svg, "also draw the first host into this file; a name that ends in .png gets a PNG");
  command->add_option("--expect", options->expect, "all_reduce, all_gather, ...: the nccl-tests table this wiring should give; beside a measured one when its file is among the inputs");
  command->add_option("--job", options->job.file, "job file: what each finding costs a step of it");
  command->add_option("--strategy", options->job.values.strategy, "strategy of that job; the best one when left out");
  command->add_option("--export", options->exports, "yaml=FILE, dot=FILE, nccl=FILE, slurm=FILE, fabric-svg=FILE");
  command->add_flag("--anonymise,--anonymize", options->anonymise, "replace names, GUIDs and addresses in everything that is written");
  command->add_option("--fail-on", options->fail_on, "exit code 1 on findings of this severity: critical or warning")->check(CLI::IsMember({"critical", "warning"}));
  add_report_options(*command, options->files);
  command->callback([options, &common, &action] {
    action = [options, &common] {
      if (!options->live.library.empty()) {
        const Result<std::string> text = library_text(options->live);
        return text ? deliver(common, *text, 0) : report_error(text.error());
      }
      const Result<Outcome> outcome = run(*options, common);
      return outcome ? deliver(common, outcome->text, outcome->code, with_files_they_name(options->inputs)) : report_error(outcome.error());
    };
  });
}

}  // namespace chokepoint::commands

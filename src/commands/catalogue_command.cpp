// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <chokepoint/base/files.hpp>
#include <chokepoint/report/catalogue_view.hpp>
#include <memory>

namespace chokepoint::commands {

namespace {

int show_accelerators(const CommonOptions& common, const std::string& name) {
  if (name.empty()) {
    const auto& all = hardware::accelerators();
    return deliver(common, common.json ? report::accelerators_json(all) : report::accelerators_table(all, report::terminal_style()));
  }
  const auto part = hardware::find_accelerator(name);
  if (!part) return report_error(part.error());
  return deliver(common, common.json ? report::accelerators_json({*part}) : report::accelerator_text(*part, report::terminal_style()));
}

/// A catalogue name, or a Hugging Face config.json.
Result<model::Model> model_named(const std::string& name) {
  if (!name.ends_with(".json")) return model::find_model(name);
  TRY_INTO(const std::string text, read_text_file(name));
  return model::read_hf_config(text, name);
}

int show_models(const CommonOptions& common, const std::string& name) {
  if (name.empty()) {
    const auto& all = model::models();
    return deliver(common, common.json ? report::models_json(all) : report::models_table(all, report::terminal_style()));
  }
  const auto found = model_named(name);
  if (!found) return report_error(found.error());
  return deliver(common, common.json ? report::models_json({*found}) : report::model_text(*found, report::terminal_style()));
}

int show_clusters(const CommonOptions& common, const std::string& name) {
  if (name.empty()) {
    const report::ClusterEntries all{hardware::host_templates(), hardware::fabrics(), hardware::nics()};
    return deliver(common, common.json ? report::clusters_json(all) : report::clusters_table(all, report::terminal_style()));
  }
  report::ClusterEntries found;
  const auto host = hardware::find_host(name);
  if (host) found.hosts.push_back(*host);
  if (const auto fabric = hardware::find_fabric(name)) found.fabrics.push_back(*fabric);
  if (const auto nic = hardware::find_nic(name)) found.nics.push_back(*nic);
  if (found.hosts.empty() && found.fabrics.empty() && found.nics.empty()) return report_error(host.error());
  return deliver(common, common.json ? report::clusters_json(found) : report::clusters_text(found, report::terminal_style()));
}

using Show = int (*)(const CommonOptions&, const std::string&);

void add_catalogue(CLI::App& app, CommonOptions& common, Action& action, const char* command, const char* what, const char* argument, Show show) {
  CLI::App* sub = app.add_subcommand(command, what);
  add_common(*sub, common);
  const auto name = std::make_shared<std::string>();
  sub->add_option("NAME", *name, argument);
  sub->callback([&common, &action, name, show] { action = [&common, name, show] { return show(common, *name); }; });
}

}  // namespace

void add_models(CLI::App& app, CommonOptions& common, Action& action) {
  add_catalogue(app, common, action, "models", "catalogue of models", "one model in full, or a Hugging Face config.json", show_models);
}

void add_clusters(CLI::App& app, CommonOptions& common, Action& action) {
  add_catalogue(app, common, action, "clusters", "catalogue of hosts, fabrics and NICs", "one entry in full", show_clusters);
}

void add_accelerators(CLI::App& app, CommonOptions& common, Action& action) {
  add_catalogue(app, common, action, "accelerators", "catalogue of accelerators", "one accelerator in full, in any spelling", show_accelerators);
}

}  // namespace chokepoint::commands

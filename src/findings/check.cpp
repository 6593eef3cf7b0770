// SPDX-License-Identifier: Apache-2.0
#include "collector.hpp"

#include <algorithm>

namespace chokepoint::findings {

namespace {

std::size_t place_in_catalogue(std::string_view id) {
  const auto& checks = catalogue();
  return static_cast<std::size_t>(std::find_if(checks.begin(), checks.end(), [id](const Check& check) { return check.id == id; }) - checks.begin());
}

}  // namespace

Finding& Collector::add(Severity severity, std::string_view id, std::string where, std::string what, std::vector<SourcePos> evidence) {
  Finding& finding = add(id, std::move(where), std::move(what), std::move(evidence));
  finding.severity = severity;
  return finding;
}

Finding& Collector::add(std::string_view id, std::string where, std::string what, std::vector<SourcePos> evidence) {
  Finding finding;
  finding.id = std::string(id);
  finding.where = std::move(where);
  finding.what = std::move(what);
  finding.evidence = std::move(evidence);
  if (const std::size_t at = place_in_catalogue(id); at < catalogue().size()) {
    const Check& check = catalogue()[at];
    finding.severity = check.severity;
    finding.fix = std::string(check.fix);
    finding.verify = std::string(check.verify);
    finding.source = std::string(check.source);
  }
  found_.push_back(std::move(finding));
  return found_.back();
}

std::vector<Finding> Collector::take() {
  std::stable_sort(found_.begin(), found_.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity < b.severity;
    return place_in_catalogue(a.id) < place_in_catalogue(b.id);
  });
  return std::move(found_);
}

void check_files(Collector& out) {
  for (const assemble::Contradiction& contradiction : out.assembly().contradictions) {
    out.add("files-contradict", contradiction.second.file, contradiction.what, {contradiction.first, contradiction.second});
  }
}

std::vector<Finding> check(const assemble::Assembly& assembly) {
  Collector out(assembly);
  check_logs(out);
  check_links(out);
  check_paths(out);
  check_topology_file(out);
  check_pairs(out);
  check_fabric(out);
  check_ports(out);
  check_tables(out);
  check_files(out);
  return out.take();
}

}  // namespace chokepoint::findings

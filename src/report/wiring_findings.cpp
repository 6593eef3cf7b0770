// SPDX-License-Identifier: Apache-2.0
// What `chokepoint wiring` says besides the drawing: which files it read, what is wrong, what contradicts, what is unknown.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/wiring_view.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::report {

using namespace topology;

namespace {

std::string place(const SourcePos& pos) { return pos.line > 0 ? fmt::format("{}:{}", pos.file, pos.line) : pos.file; }

std::string severity_text(findings::Severity severity, const Style& style) {
  switch (severity) {
    case findings::Severity::kCritical: return style.red("critical");
    case findings::Severity::kWarning: return style.yellow("warning");
    case findings::Severity::kInfo: return style.dim("info");
  }
  return {};
}

void paragraph(std::string& out, std::string_view label, std::string_view text, const Style& style) {
  constexpr int kIndent = 12;
  bool first = true;
  for (const std::string& line : wrapped(text, std::max(40, style.width - kIndent))) {
    out += first ? "    " + pad_right(label, kIndent - 4) : std::string(kIndent, ' ');
    out += line + "\n";
    first = false;
  }
}

void add_finding(std::string& out, const findings::Finding& finding, const Style& style) {
  out += fmt::format("  {}  {}  {}\n", severity_text(finding.severity, style), style.bold(finding.id), finding.where);
  paragraph(out, "what", finding.what, style);
  std::string evidence;
  for (std::size_t i = 0; i < finding.evidence.size() && i < 4; ++i) {
    if (!finding.evidence[i].file.empty()) evidence += (evidence.empty() ? "" : ", ") + place(finding.evidence[i]);
  }
  if (!evidence.empty()) paragraph(out, "seen", evidence, style);
  if (finding.cost) {
    const double lost = finding.cost->lost_s();
    paragraph(out, "cost", lost > 0.0005 * finding.cost->step_time_s
                               ? fmt::format("{} of a step of {} ({:.1f} %)", format_duration(lost), format_duration(finding.cost->step_time_s), 100 * lost / finding.cost->step_time_s)
                               : std::string("nothing in this job"), style);
  }
  paragraph(out, "fix", finding.fix, style);
  paragraph(out, "verify", finding.verify, style);
}

/// The few facts that say what a file is about.
std::string short_facts(const wiring::Document& document) {
  std::string out;
  int shown = 0;
  for (const wiring::Fact& fact : wiring::facts_of(document)) {
    if (shown >= 7) break;
    if (fact.text.size() > 60) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", fact.name, fact.number ? fmt::format("{:g}", *fact.number) : fact.text);
    ++shown;
  }
  return out;
}

void add_files(std::string& out, const WiringReport& report, const Style& style) {
  const assemble::Assembly& assembly = report.assembly;
  if (assembly.documents.empty()) return;
  out += style.bold(fmt::format("Files ({})", assembly.documents.size())) + "\n";
  for (const wiring::Document& document : assembly.documents) {
    out += fmt::format("  {}  {}  {}\n", document.file, wiring::name(document.format), style.dim(short_facts(document)));
    for (const Note& note : document.notes) out += "    " + note.text + "\n";
  }
  for (const Error& error : report.unreadable) out += fmt::format("  {}  {}: {}\n", place(error.pos), style.red("not read"), error.message);
  for (const std::string& line : assembly.matched) out += "  " + line + "\n";
  out += "\n";
}

void add_fabric(std::string& out, const assemble::Assembly& assembly, const Style& style) {
  if (!assembly.fabric) return;
  const FabricShape& shape = assembly.shape;
  const FabricRoutes routes = routes_of(*assembly.fabric, shape);
  out += style.bold("Discovered fabric") + fmt::format("  {} hosts, {} adapters, {} switches in {} level{}, {} cables, {} leaves\n", shape.hosts, shape.adapters, shape.switches, shape.levels,
                                                       shape.levels == 1 ? "" : "s", assembly.fabric->links.size(), shape.leaves.size());
  if (shape.leaves.size() > 1) {
    out += fmt::format("  {:.3g}:1 at the worst leaf, {} to {} equal ways between leaves", shape.oversubscription, routes.fewest_paths, routes.most_paths);
    for (std::size_t hops = 1; hops < routes.pairs_by_switches.size(); ++hops) {
      if (routes.pairs_by_switches[hops] > 0) out += fmt::format(", {} adapter pairs over {} switch{}", format_count(routes.pairs_by_switches[hops]), hops, hops == 1 ? "" : "es");
    }
    out += "\n";
  }
  out += "\n";
}

}  // namespace

std::string findings_text(const WiringReport& report, const Style& style) {
  if (report.findings.empty()) return style.bold("Findings") + "  none\n\n";
  std::string out = style.bold(fmt::format("Findings ({})", report.findings.size()));
  if (!report.job.empty()) out += fmt::format("  costs for {}{}", report.job, report.own_cluster ? "" : " on the job's own cluster");
  out += "\n";
  for (const findings::Finding& finding : report.findings) add_finding(out, finding, style);
  return out + "\n";
}

std::string wiring_text(const WiringReport& report, const Style& style, bool quiet) {
  const assemble::Assembly& assembly = report.assembly;
  std::string out;
  const bool plain = assembly.documents.size() == 1 && report.unreadable.empty() && !assembly.cluster.hosts.empty() && assembly.documents.front().notes.empty();
  if (!quiet && !plain) add_files(out, report, style);
  out += wiring_text(assembly.cluster, style, quiet);
  if (!out.empty() && out.back() == '\n' && (out.size() < 2 || out[out.size() - 2] != '\n')) out += "\n";
  add_fabric(out, assembly, style);
  out += findings_text(report, style);
  if (quiet) return out;
  if (!assembly.contradictions.empty()) {
    out += style.bold(fmt::format("Contradictions ({})", assembly.contradictions.size())) + "\n";
    for (const assemble::Contradiction& found : assembly.contradictions) out += fmt::format("  - {}  ({} / {})\n", found.what, place(found.first), place(found.second));
    out += "\n";
  }
  if (!assembly.unknown.empty()) {
    out += style.bold(fmt::format("Unknown ({})", assembly.unknown.size())) + "\n";
    for (const std::string& line : assembly.unknown) out += "  - " + line + "\n";
    out += "\n";
  }
  return out;
}

}  // namespace chokepoint::report

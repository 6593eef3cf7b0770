// SPDX-License-Identifier: Apache-2.0
// What `chokepoint wiring` says: the answer and the findings first, then the drawing, the files, what contradicts and what is
// unknown, each as much as fits a screen.
#include <chokepoint/base/units.hpp>
#include <chokepoint/report/wiring_view.hpp>

#include <algorithm>
#include <array>
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

/// "  - line" for each, as many as fit a screen; where the rest is.
void add_list(std::string& out, std::string_view title, const std::vector<std::string>& lines, const Style& style) {
  constexpr std::size_t kShown = 5;
  if (lines.empty()) return;
  out += style.bold(fmt::format("{} ({})", title, lines.size())) + "\n";
  const std::size_t shown = lines.size() <= kShown + 1 ? lines.size() : kShown;  // "1 more" takes as much room as the one
  for (std::size_t i = 0; i < shown; ++i) out += "  - " + lines[i] + "\n";
  if (shown < lines.size()) out += style.dim(fmt::format("  {} more: --markdown or --json has all", lines.size() - shown)) + "\n";
  out += "\n";
}

void add_files(std::string& out, const WiringReport& report, const Style& style) {
  constexpr std::size_t kShown = 8;
  const assemble::Assembly& assembly = report.assembly;
  if (assembly.documents.empty()) return;
  out += style.bold(fmt::format("Files ({})", assembly.documents.size())) + "\n";
  for (std::size_t i = 0; i < assembly.documents.size() && i < kShown; ++i) {
    const wiring::Document& document = assembly.documents[i];
    out += fmt::format("  {}  {}  {}\n", document.file, wiring::name(document.format), style.dim(short_facts(document)));
    for (std::size_t n = 0; n < document.notes.size() && n < 3; ++n) out += "    " + document.notes[n].text + "\n";
    if (document.notes.size() > 3) out += style.dim(fmt::format("    {} more notes", document.notes.size() - 3)) + "\n";
  }
  if (assembly.documents.size() > kShown) out += style.dim(fmt::format("  {} more: --json has all", assembly.documents.size() - kShown)) + "\n";
  for (const Error& error : report.unreadable) out += fmt::format("  {}  {}: {}\n", place(error.pos), style.red("not read"), error.message);
  for (std::size_t i = 0; i < assembly.matched.size() && i < kShown; ++i) out += "  " + assembly.matched[i] + "\n";
  out += "\n";
}

/// The answer: what is wrong, worst first, by name.
void add_verdict(std::string& out, const WiringReport& report, const Style& style) {
  std::array<int, 3> counts{};  // by severity
  std::string first;
  for (const findings::Finding& finding : report.findings) {
    if (first.empty()) first = finding.id + " at " + finding.where;
    ++counts.at(static_cast<std::size_t>(finding.severity));
  }
  std::string words;
  const auto add = [&words](int count, std::string_view what, bool plural) {
    if (count > 0) words += fmt::format("{}{} {}{}", words.empty() ? "" : ", ", count, what, plural && count > 1 ? "s" : "");
  };
  add(counts[0], "critical", false);
  add(counts[1], "warning", true);
  const bool faults = !words.empty();
  if (!faults) words = "no fault found";
  add(counts[2], "for information", false);
  add(static_cast<int>(report.unreadable.size()), "file not read", false);
  add(static_cast<int>(report.assembly.unknown.size()), "unknown", false);
  words = counts[0] > 0 ? style.red(words) : faults ? style.yellow(words) : style.green(words);
  out += style.bold("Wiring") + "  " + words + (faults ? "; first: " + first : "") + "\n\n";
}

std::string with_position(const Note& note, const Style& style) {
  return note.pos.line > 0 ? note.text + style.dim(fmt::format("  ({}:{})", note.pos.file, note.pos.line)) : note.text;
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
  constexpr std::size_t kInFull = 4;
  constexpr std::size_t kByName = 8;
  if (report.findings.empty()) return style.bold("Findings") + "  none\n\n";
  std::string out = style.bold(fmt::format("Findings ({})", report.findings.size()));
  if (!report.job.empty()) out += fmt::format("  costs for {}{}", report.job, report.own_cluster ? "" : " on the job's own cluster");
  out += "\n";
  for (std::size_t i = 0; i < report.findings.size() && i < kInFull + kByName; ++i) {
    const findings::Finding& finding = report.findings[i];
    if (i < kInFull) add_finding(out, finding, style);
    else out += fmt::format("  {}  {}  {}\n", severity_text(finding.severity, style), style.bold(finding.id), finding.where);
  }
  if (report.findings.size() > kInFull + kByName) out += style.dim(fmt::format("  {} more", report.findings.size() - kInFull - kByName)) + "\n";
  if (report.findings.size() > kInFull) out += style.dim("  --markdown or --json has all in full") + "\n";
  return out + "\n";
}

std::string wiring_text(const WiringReport& report, const Style& style, bool quiet) {
  constexpr std::size_t kKindsDrawn = 2;
  const assemble::Assembly& assembly = report.assembly;
  std::string out;
  add_verdict(out, report, style);
  if (!report.findings.empty()) out += findings_text(report, style);
  Cluster drawn = assembly.cluster;
  if (drawn.hosts.size() > kKindsDrawn) drawn.hosts.resize(kKindsDrawn);
  out += wiring_text(drawn, style, true);
  if (!out.empty() && out.back() == '\n' && (out.size() < 2 || out[out.size() - 2] != '\n')) out += "\n";
  if (assembly.cluster.hosts.size() > kKindsDrawn) out += style.dim(fmt::format("{} more kinds of hosts: --json has all", assembly.cluster.hosts.size() - kKindsDrawn)) + "\n\n";
  add_fabric(out, assembly, style);
  if (quiet) return out;
  const bool plain = assembly.documents.size() == 1 && report.unreadable.empty() && !assembly.cluster.hosts.empty() && assembly.documents.front().notes.empty();
  if (!plain) add_files(out, report, style);
  std::vector<std::string> contradictions;
  for (const assemble::Contradiction& found : assembly.contradictions) contradictions.push_back(fmt::format("{}  ({} / {})", found.what, place(found.first), place(found.second)));
  add_list(out, "Contradictions", contradictions, style);
  std::vector<std::string> notes;
  for (const Note& note : assembly.cluster.notes) notes.push_back(with_position(note, style));
  for (const HostGroup& group : assembly.cluster.hosts) {
    for (const Note& note : group.host.notes) notes.push_back(with_position(note, style));
  }
  add_list(out, "Not known or assumed", notes, style);
  add_list(out, "Unknown", assembly.unknown, style);
  return out;
}

}  // namespace chokepoint::report

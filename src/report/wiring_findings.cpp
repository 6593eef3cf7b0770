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
    case findings::Severity::kCritical: return style.red(style.say("critical"));
    case findings::Severity::kWarning: return style.yellow(style.say("warning"));
    case findings::Severity::kInfo: return style.dim(style.say("info"));
  }
  return {};
}

void paragraph(std::string& out, std::string_view label, std::string_view text, const Style& style) {
  int widest = 6;
  for (const std::string_view any : {"what", "seen", "cost", "fix", "verify"}) widest = std::max(widest, display_width(style.say(any)));
  const int indent = 4 + widest + 2;
  bool first = true;
  for (const std::string& line : wrapped(text, std::max(40, style.width - indent))) {
    out += first ? "    " + pad_right(style.say(label), indent - 4) : std::string(static_cast<std::size_t>(indent), ' ');
    out += line + "\n";
    first = false;
  }
}

void add_finding(std::string& out, const findings::Finding& finding, const Style& style) {
  out += fmt::format("  {}  {}  {}\n", severity_text(finding.severity, style), style.bold(finding.id), style.say(finding.where));
  paragraph(out, "what", style.say(finding.what), style);
  std::string evidence;
  for (std::size_t i = 0; i < finding.evidence.size() && i < 4; ++i) {
    if (!finding.evidence[i].file.empty()) evidence += (evidence.empty() ? "" : ", ") + place(finding.evidence[i]);
  }
  if (!evidence.empty()) paragraph(out, "seen", evidence, style);
  if (finding.cost) {
    const double lost = finding.cost->lost_s();
    paragraph(out, "cost", lost > 0.0005 * finding.cost->step_time_s
                               ? style.say("{} of a step of {} ({} %)", {format_duration(lost), format_duration(finding.cost->step_time_s), fmt::format("{:.1f}", 100 * lost / finding.cost->step_time_s)})
                               : style.say("nothing in this job"), style);
  }
  paragraph(out, "fix", style.say(finding.fix), style);
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
  out += style.bold(fmt::format("{} ({})", style.say(title), lines.size())) + "\n";
  const std::size_t shown = lines.size() <= kShown + 1 ? lines.size() : kShown;  // "1 more" takes as much room as the one
  for (std::size_t i = 0; i < shown; ++i) out += "  - " + lines[i] + "\n";
  if (shown < lines.size()) out += style.dim("  " + style.say("{} more: --markdown or --json has all", {std::to_string(lines.size() - shown)})) + "\n";
  out += "\n";
}

void add_files(std::string& out, const WiringReport& report, const Style& style) {
  constexpr std::size_t kShown = 8;
  const assemble::Assembly& assembly = report.assembly;
  if (assembly.documents.empty()) return;
  out += style.bold(style.say("Files ({})", {std::to_string(assembly.documents.size())})) + "\n";
  for (std::size_t i = 0; i < assembly.documents.size() && i < kShown; ++i) {
    const wiring::Document& document = assembly.documents[i];
    out += fmt::format("  {}  {}  {}\n", document.file, wiring::name(document.format), style.dim(short_facts(document)));
    for (std::size_t n = 0; n < document.notes.size() && n < 3; ++n) out += "    " + style.say(document.notes[n].text) + "\n";
    if (document.notes.size() > 3) out += style.dim("    " + style.say("{} more notes", {std::to_string(document.notes.size() - 3)})) + "\n";
  }
  if (assembly.documents.size() > kShown) out += style.dim("  " + style.say("{} more: --json has all", {std::to_string(assembly.documents.size() - kShown)})) + "\n";
  for (const Error& error : report.unreadable) out += fmt::format("  {}  {}: {}\n", place(error.pos), style.red(style.say("not read")), error.message);
  for (std::size_t i = 0; i < assembly.matched.size() && i < kShown; ++i) out += "  " + style.say(assembly.matched[i]) + "\n";
  out += "\n";
}

/// The answer: what is wrong, worst first, by name.
void add_verdict(std::string& out, const WiringReport& report, const Style& style) {
  std::array<int, 3> counts{};  // by severity
  std::string first;
  for (const findings::Finding& finding : report.findings) {
    if (first.empty()) first = style.say("first: {} at {}", {finding.id, style.say(finding.where)});
    ++counts.at(static_cast<std::size_t>(finding.severity));
  }
  std::string words;
  const auto add = [&words, &style](std::size_t count, std::string_view what) {
    if (count > 0) words += (words.empty() ? "" : ", ") + style.say(what, {std::to_string(count)});
  };
  add(static_cast<std::size_t>(counts[0]), "{} critical");
  add(static_cast<std::size_t>(counts[1]), counts[1] == 1 ? "{} warning" : "{} warnings");
  const bool faults = !words.empty();
  if (!faults) words = style.say("no fault found");
  add(static_cast<std::size_t>(counts[2]), "{} for information");
  add(report.unreadable.size(), "{} file not read");
  add(report.assembly.unknown.size(), "{} unknown");
  words = counts[0] > 0 ? style.red(words) : faults ? style.yellow(words) : style.green(words);
  out += style.bold(style.say("Wiring")) + "  " + words + (faults ? "; " + first : "") + "\n\n";
}

std::string with_position(const Note& note, const Style& style) {
  return style.say(note.text) + (note.pos.line > 0 ? style.dim(fmt::format("  ({}:{})", note.pos.file, note.pos.line)) : "");
}

void add_fabric(std::string& out, const assemble::Assembly& assembly, const Style& style) {
  if (!assembly.fabric) return;
  const FabricShape& shape = assembly.shape;
  const FabricRoutes routes = routes_of(*assembly.fabric, shape);
  out += style.bold(style.say("Discovered fabric")) + "  " +
         style.say(shape.levels == 1 ? "{} hosts, {} adapters, {} switches in {} level, {} cables, {} leaves" : "{} hosts, {} adapters, {} switches in {} levels, {} cables, {} leaves",
                   {std::to_string(shape.hosts), std::to_string(shape.adapters), std::to_string(shape.switches), std::to_string(shape.levels), std::to_string(assembly.fabric->links.size()), std::to_string(shape.leaves.size())}) + "\n";
  if (shape.leaves.size() > 1) {
    out += "  " + style.say("{}:1 at the worst leaf, {} to {} equal ways between leaves", {fmt::format("{:.3g}", shape.oversubscription), std::to_string(routes.fewest_paths), std::to_string(routes.most_paths)});
    for (std::size_t hops = 1; hops < routes.pairs_by_switches.size(); ++hops) {
      if (routes.pairs_by_switches[hops] > 0) out += ", " + style.say(hops == 1 ? "{} adapter pairs over {} switch" : "{} adapter pairs over {} switches", {format_count(routes.pairs_by_switches[hops]), std::to_string(hops)});
    }
    out += "\n";
  }
  out += "\n";
}

}  // namespace

std::string findings_text(const WiringReport& report, const Style& style) {
  constexpr std::size_t kInFull = 4;
  constexpr std::size_t kByName = 8;
  if (report.findings.empty()) return style.bold(style.say("Findings")) + "  " + style.say("none") + "\n\n";
  std::string out = style.bold(style.say("Findings ({})", {std::to_string(report.findings.size())}));
  if (!report.job.empty()) out += "  " + style.say(report.own_cluster ? "costs for {}" : "costs for {} on the job's own cluster", {report.job});
  out += "\n";
  for (std::size_t i = 0; i < report.findings.size() && i < kInFull + kByName; ++i) {
    const findings::Finding& finding = report.findings[i];
    if (i < kInFull) add_finding(out, finding, style);
    else out += fmt::format("  {}  {}  {}\n", severity_text(finding.severity, style), style.bold(finding.id), style.say(finding.where));
  }
  if (report.findings.size() > kInFull + kByName) out += style.dim("  " + style.say("{} more", {std::to_string(report.findings.size() - kInFull - kByName)})) + "\n";
  if (report.findings.size() > kInFull) out += style.dim("  " + style.say("--markdown or --json has all in full")) + "\n";
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
  if (assembly.cluster.hosts.size() > kKindsDrawn) out += style.dim(style.say("{} more kinds of hosts: --json has all", {std::to_string(assembly.cluster.hosts.size() - kKindsDrawn)})) + "\n\n";
  add_fabric(out, assembly, style);
  if (quiet) return out;
  const bool plain = assembly.documents.size() == 1 && report.unreadable.empty() && !assembly.cluster.hosts.empty() && assembly.documents.front().notes.empty();
  if (!plain) add_files(out, report, style);
  std::vector<std::string> contradictions;
  for (const assemble::Contradiction& found : assembly.contradictions) contradictions.push_back(fmt::format("{}  ({} / {})", style.say(found.what), place(found.first), place(found.second)));
  add_list(out, "Contradictions", contradictions, style);
  std::vector<std::string> notes;
  for (const Note& note : assembly.cluster.notes) notes.push_back(with_position(note, style));
  for (const HostGroup& group : assembly.cluster.hosts) {
    for (const Note& note : group.host.notes) notes.push_back(with_position(note, style));
  }
  add_list(out, "Not known or assumed", notes, style);
  std::vector<std::string> unknown;
  for (const std::string& line : assembly.unknown) unknown.push_back(style.say(line));
  add_list(out, "Unknown", unknown, style);
  return out;
}

}  // namespace chokepoint::report

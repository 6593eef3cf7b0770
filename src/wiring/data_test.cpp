// SPDX-License-Identifier: Apache-2.0
// Every collected wiring file against what was counted in it by other means (../shared/wiring/index.csv, column
// `computed`). The collection is not part of the repository: the test skips, loudly, where it is absent.
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <regex>

#include "collection_for_tests.hpp"

namespace chokepoint::wiring {
namespace {

using namespace topology;

/// First number of a pattern's match, -1 without one.
int number_in(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? std::stoi(match[1]) : -1;
}

/// "{'NV12': 28, 'SYS': 4}" after a title -> map.
std::map<std::string, int> counts_in(const std::string& text, const std::string& title) {
  std::map<std::string, int> counts;
  const std::size_t begin = text.find(title + " {");
  if (begin == std::string::npos) return counts;
  const std::string body = text.substr(begin, text.find('}', begin) - begin);
  const std::regex item("'([^']*)': ([0-9]+)");
  for (std::sregex_iterator it(body.begin(), body.end(), item), end; it != end; ++it) counts[(*it)[1]] = std::stoi((*it)[2]);
  return counts;
}

std::map<std::string, int> declared_gpu_pairs(const Host& host) {
  std::map<std::string, int> counts;
  const auto gpu = [&host](int device) { return host.devices[static_cast<std::size_t>(device)].kind == DeviceKind::kGpu; };
  for (const DeclaredPath& path : host.declared) {
    if (gpu(path.a) && gpu(path.b)) ++counts[path_class_name(path.path, path.nvlinks)];
  }
  return counts;
}

/// The nearest NICs of a GPU as index.csv writes them: "PXB=NIC0/NIC1" or "SYS only".
std::string nearest_nics(const Host& host, int gpu) {
  PathClass best = PathClass::kUnknown;
  for (const int nic : host.nics()) best = std::min(best, path_between(host, gpu, nic).path);
  if (best == PathClass::kSys) return "SYS only";
  std::string names;
  for (const int nic : host.nics()) {
    if (path_between(host, gpu, nic).path == best) names += (names.empty() ? "" : "/") + host.devices[static_cast<std::size_t>(nic)].name;
  }
  return path_class_name(best) + "=" + names;
}

void check_matrix(const Host& host, const std::string& computed) {
  EXPECT_EQ(static_cast<int>(host.gpus().size()), number_in(computed, "([0-9]+) GPU columns"));
  EXPECT_EQ(static_cast<int>(host.nics().size()), number_in(computed, "([0-9]+) NIC columns"));
  EXPECT_EQ(declared_gpu_pairs(host), counts_in(computed, "GPU pairs"));
  const std::regex item("GPU([0-9]+):([A-Za-z0-9_=/]+( only)?)");
  for (std::sregex_iterator it(computed.begin(), computed.end(), item), end; it != end; ++it) {
    const int gpu = std::stoi((*it)[1]);
    EXPECT_EQ(nearest_nics(host, gpu), (*it)[2].str()) << "GPU" << gpu;
  }
}

TEST(WiringData, EveryPathMatrixGivesItsCounts) {
  const std::vector<Entry> files = entries_of("topo-m");
  if (files.empty()) GTEST_SKIP() << "no collection at " << kCollection;
  for (const Entry& expected : files) {
    SCOPED_TRACE(expected.file);
    const auto text = read_text_file(kCollection + expected.file);
    ASSERT_TRUE(text);
    EXPECT_EQ(recognise(*text), Format::kTopoMatrix);
    const Result<Host> host = read_topo_matrix(*text, expected.file);
    if (expected.computed == "not parsed as a matrix") {
      ASSERT_FALSE(host);
      EXPECT_GT(host.error().pos.line, 0);
      EXPECT_FALSE(host.error().notes.empty());
      continue;
    }
    ASSERT_TRUE(host) << format(host.error());
    check_matrix(*host, expected.computed);
    for (const int gpu : host->gpus()) {
      for (const int other : host->gpus()) {
        EXPECT_TRUE(gpu == other || route(*host, gpu, other).bytes_per_s > 0) << gpu << " " << other;
      }
    }
  }
}

/// The ways in which people paste: each line gets something before or after it.
struct Paste {
  std::string name;
  std::string before;
  std::string after;
};

TEST(WiringData, PathMatricesSurviveHowPeoplePasteThem) {
  const std::vector<Entry> files = entries_of("topo-m");
  if (files.empty()) GTEST_SKIP() << "no collection at " << kCollection;
  const std::vector<Paste> pastes{{"rank prefix", "node01: ", ""},
                                  {"mpirun", "[1,0]<stdout>:", ""},
                                  {"timestamp", "2024-05-01T10:11:12.123456Z INFO [rank 3] ", ""},
                                  {"ray", "(RayTrainWorker pid=4242, ip=10.0.0.1) ", ""},
                                  {"compose", "worker-0  | ", ""},
                                  {"tab", "node7\t", ""},
                                  {"quote", "> > ", ""},
                                  {"indented", "      ", "   "},
                                  {"windows", "", "\r"},
                                  {"colour", "\x1b[0m", "\x1b[1;32m\x1b[K"},
                                  {"lost escape", "[0m", "^[[0m"},
                                  {"code", "`", "`"}};
  for (const Entry& expected : files) {
    if (expected.computed == "not parsed as a matrix") continue;
    const auto text = read_text_file(kCollection + expected.file);
    ASSERT_TRUE(text);
    for (const Paste& paste : pastes) {
      SCOPED_TRACE(expected.file + ", " + paste.name);
      std::string pasted = "Here is what I get:\n```\nuser@host:~$ nvidia-smi topo -m\n";
      for (const std::string_view line : split_lines(*text)) pasted += paste.before + std::string(line) + paste.after + "\n";
      pasted += "```\nGPU0 and GPU1 look fine, don't they?\n";
      const Result<Host> host = read_topo_matrix(pasted, expected.file);
      ASSERT_TRUE(host) << format(host.error());
      check_matrix(*host, expected.computed);
    }
  }
}

TEST(WiringData, PathMatricesDoWithoutTheirColumns) {
  const std::vector<Entry> files = entries_of("topo-m");
  if (files.empty()) GTEST_SKIP() << "no collection at " << kCollection;
  for (const Entry& expected : files) {
    if (expected.computed == "not parsed as a matrix") continue;
    const auto text = read_text_file(kCollection + expected.file);
    ASSERT_TRUE(text);
    std::string collapsed;  // what a chat program leaves of runs of blanks
    std::string table;      // somebody's Markdown
    for (const std::string_view line : split_lines(*text)) {
      const bool legend = line.find('=') != std::string_view::npos || line.find(':') != std::string_view::npos;
      bool header = true;
      for (const std::string_view word : split_blanks(line)) {
        collapsed += std::string(word) + " ";
        if (header) table += "| ";
        if (header && starts_with_ignoring_case(trim(strip_ansi(line)), "GPU0") && line.find("GPU1") != std::string_view::npos) table += " | ";
        header = false;
        table += legend ? std::string(word) + " " : std::string(word) + " | ";
      }
      collapsed += "\n";
      table += "\n";
    }
    for (const std::string& form : {collapsed, table}) {
      SCOPED_TRACE(expected.file + "\n" + form);
      const Result<Host> host = read_topo_matrix(form, expected.file);
      ASSERT_TRUE(host) << format(host.error());
      check_matrix(*host, expected.computed);
    }
  }
}

/// Sum of links of a kind that GPUs list.
int listed_links(const Host& host, LinkKind kind) {
  int sum = 0;
  for (const Link& link : host.links) {
    if (link.kind == kind && host.devices[static_cast<std::size_t>(link.from)].kind == DeviceKind::kGpu) sum += link.width;
  }
  return sum;
}

bool has_note(const Host& host, std::string_view part) {
  return std::any_of(host.notes.begin(), host.notes.end(), [part](const Note& note) { return note.text.find(part) != std::string::npos; });
}

void check_xml(const Host& host, const std::string& computed) {
  EXPECT_EQ(static_cast<int>(host.of_kind(DeviceKind::kCpu).size()), number_in(computed, "([0-9]+) cpu"));
  const std::map<std::string, int> classes = counts_in(computed, "pci classes");
  const auto count = [&classes](const std::string& type) { return classes.count(type) != 0 ? classes.at(type) : 0; };
  const int gpus = number_in(computed, "([0-9]+) gpu");
  EXPECT_EQ(static_cast<int>(host.gpus().size()), gpus > 0 ? gpus : count("0x0302") + count("0x0380"));
  const int nets = number_in(computed, "([0-9]+) net");
  EXPECT_EQ(static_cast<int>(host.nics().size()), nets > 0 ? nets : count("0x0200") + count("0x0207"));
  if (!has_note(host, "point at their own GPU")) {
    EXPECT_EQ(listed_links(host, LinkKind::kNvLink), number_in(computed, "nvlink total ([0-9]+)"));
  }
  EXPECT_EQ(listed_links(host, LinkKind::kXgmi), number_in(computed, "xgmi total ([0-9]+)"));
  const std::map<std::string, int> gdr = counts_in(computed, "gdr");
  if (gdr.size() == 1 && gdr.count("0") == 1) {
    EXPECT_FALSE(host.gpudirect_rdma);
  }
  std::map<std::string, int> speeds;
  for (const int nic : host.nics()) {
    const double rate = host.devices[static_cast<std::size_t>(nic)].line_bytes_per_s;
    if (rate > 0) ++speeds[std::to_string(static_cast<long>(rate * 8 / 1e6))];
  }
  EXPECT_EQ(speeds, counts_in(computed, "net speeds"));
}

TEST(WiringData, EveryNcclTopologyGivesItsCounts) {
  const std::vector<Entry> files = entries_of("nccl-topo-xml");
  if (files.empty()) GTEST_SKIP() << "no collection at " << kCollection;
  for (const Entry& expected : files) {
    SCOPED_TRACE(expected.file);
    const auto text = read_text_file(kCollection + expected.file);
    ASSERT_TRUE(text);
    EXPECT_EQ(recognise(*text), Format::kNcclTopologyXml);
    const Result<Host> host = read_nccl_xml(*text, expected.file);
    ASSERT_TRUE(host) << format(host.error());
    check_xml(*host, expected.computed);
  }
}

}  // namespace
}  // namespace chokepoint::wiring

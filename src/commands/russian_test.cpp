// SPDX-License-Identifier: Apache-2.0
// What --lang ru prints, word by word: an English word that is no term of the field is a text without its Russian form.
#include <gtest/gtest.h>

#include <algorithm>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/commands/run.hpp>
#include <filesystem>
#include <set>

namespace chokepoint::commands {
namespace {

std::string source(const std::string& path) { return std::string(CHOKEPOINT_SOURCE_DIR) + "/" + path; }

/// Words that Russian engineers write as they are: names of techniques, tools, units and of what can be typed.
const std::set<std::string, std::less<>>& terms() {
  static const std::set<std::string, std::less<>> kTerms{
      "affinity", "algbw", "arithmetic", "attention", "aux", "batch", "bus", "busbw", "calibrate", "capacity", "card", "channels",
      "chokepoint", "context", "count", "ddp", "expert", "fabric", "fsdp", "full", "gathered", "goodput", "graphs",
      "hbm", "ibnetdiscover", "ibstat", "infiniband", "kept", "latency", "link", "loss", "lspci", "manager", "memory",
      "network", "nic", "offload", "ordering", "overlap", "peer", "pipeline", "predict", "recompute", "relaxed",
      "roce", "root", "specialist", "stream", "switch", "tcp", "tensor", "topo", "float"
  };
  return kTerms;
}

/// A line without what stands in quotes, code or tags.
std::string unquoted(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char closer = line[i] == '<' ? '>' : line[i] == '`' || line[i] == '"' || line[i] == '\'' ? line[i] : '\0';
    const std::size_t end = closer == '\0' ? std::string_view::npos : line.find(closer, i + 1);
    if (end != std::string_view::npos) i = end;
    else out += line[i];
  }
  return out;
}

bool is_plain(std::string_view word) {
  return word.size() >= 3 && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

/// English words of a Russian text. Names (with digits, signs or capitals), options, code and paths are none. Left out as
/// well: columns of nccl-tests ("# ..."), facts of a file by their keys, what a tool's own log says, sources as cited.
std::set<std::string> english_words(std::string_view text) {
  constexpr std::size_t kContinued = 10;
  std::set<std::string> found;
  bool cited = false;
  for (std::string_view line : split_lines(text)) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    cited = cited && indent >= kContinued;
    if (cited || line.substr(0, 1) == "#" || (line.substr(indent, 1) == "/" && indent > 0)) continue;
    const std::size_t source = line.find("Источник:");
    cited = source != std::string_view::npos || line.substr(indent).starts_with("как проверить");
    line = line.substr(0, source == std::string_view::npos && cited ? 0 : source);
    std::string word;
    for (const char c : unquoted(line) + " ") {
      if (c != ' ' && c != '|' && c != '*') {
        word += c;
        continue;
      }
      std::string_view bare = word;
      while (!bare.empty() && bare.front() == '(') bare.remove_prefix(1);
      while (!bare.empty() && std::string_view(",.;:)!?").find(bare.back()) != std::string_view::npos) bare.remove_suffix(1);
      if (is_plain(bare) && !terms().contains(bare)) found.emplace(bare);
      word.clear();
    }
  }
  return found;
}

/// What a command prints in Russian; errors fail the test.
std::string printed(std::vector<std::string> words) {
  MemoryFiles files(Disk::kOpen);
  words.insert(words.end(), {"--lang", "ru"});
  std::string line;
  for (const std::string& word : words) line += word + " ";
  const Ended ended = run_in_memory(words, files);
  EXPECT_FALSE(ended.error) << line << format(ended.error.value_or(Error{}));
  const auto text = files.written().find("-");
  return text == files.written().end() ? std::string() : text->second;
}

void expect_russian(const std::vector<std::string>& words) {
  const std::string text = printed(words);
  EXPECT_FALSE(text.empty());
  std::string line;
  for (const std::string& word : words) line += word + " ";
  for (const std::string& word : english_words(text)) {
    const std::size_t at = text.find(word);
    const std::size_t from = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
    ADD_FAILURE() << line << ": '" << word << "' in: " << text.substr(from, text.find('\n', at) - from);
  }
}

std::string job(const std::string& name) { return source("examples/jobs/" + name + ".yaml"); }

TEST(InRussian, Predictions) {
  expect_russian({"predict", job("llama-3-8b-stork-8-ndr"), "--strategy", "tensor=2 pipeline=2 zero=1 microbatch=1", "--measured", "20s"});
  expect_russian({"predict", job("llama-3-8b-heron-2-25g"), "--strategy", "fsdp microbatch=1"});
  expect_russian({"predict", job("gpt2-large-wren-plain"), "--strategy", "ddp microbatch=1"});
  expect_russian({"predict", "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--gpus", "64", "--batch", "512", "--seq", "4096", "--strategy", "tensor=2 expert=8 zero=1 microbatch=1", "--markdown"});
}

TEST(InRussian, Plans) {
  expect_russian({"plan", job("llama-3-8b-sable-1")});
  expect_russian({"plan", job("llama-3-70b-stork-8-ndr"), "--markdown"});
  expect_russian({"plan", "--model", "llama-3-70b", "--cluster", "rtx3090-2", "--batch", "512", "--seq", "4096"});
}

TEST(InRussian, WhatIf) {
  const std::vector<std::string> base{"whatif", job("llama-3-8b-heron-2-25g"), "--strategy", "fsdp microbatch=1", "--change", "nic=100 Gb/s", "--sensitivities", "--scale", "8..64", "--break-even", "--price", "2"};
  expect_russian(base);
  std::vector<std::string> markdown = base;
  markdown.push_back("--markdown");
  expect_russian(markdown);
  for (const char* change : {"straggler=none", "mend=all", "gpus=64", "accelerator=h100-sxm5-80gb", "transport=infiniband", "batch=512"}) {
    expect_russian({"whatif", job("llama-3-8b-heron-2-25g"), "--strategy", "fsdp microbatch=1", "--change", change});
  }
}

TEST(InRussian, Wirings) {
  for (const auto& entry : std::filesystem::directory_iterator(source("examples/wiring"))) expect_russian({"wiring", entry.path().string()});
  for (const auto& entry : std::filesystem::directory_iterator(source("examples/clusters"))) expect_russian({"wiring", entry.path().string(), "--markdown"});
  expect_russian({"wiring", source("examples/clusters/sable-2-100g.yaml"), "--expect", "all_reduce"});
  expect_russian({"wiring", "dgx-h100", "--hosts", "4"});
  expect_russian({"wiring", source("examples/wiring/plover7.topo"), "--job", job("llama-3-8b-plover-1")});
}

TEST(InRussian, BrokenWirings) {
  for (const char* name : {"contradiction.txt", "cut-rows.txt", "empty-cells.txt", "groups-by-hand.txt", "h100-8nic-tabs.topo", "mig-not-available.txt", "no-header.txt",
                           "old-driver-soc.txt", "overlay.xml", "p2p.txt", "run-together.txt", "same-twice.txt", "wrapped.txt", "xgmi-one-sided.xml", "dump.xml", "bridges-markdown.md"}) {
    expect_russian({"wiring", source("tests/data/wiring/" + std::string(name))});
  }
}

TEST(InRussian, Diagnoses) {
  const std::string folder = (std::filesystem::temp_directory_path() / "chokepoint-russian-test").string();
  std::filesystem::create_directories(folder);
  const std::string trace = folder + "/step.json.gz";
  printed({"predict", job("llama-3-8b-heron-1"), "--strategy", "zero=3 microbatch=1 recompute=full", "--imperfection", "slow-rank=5:1.4", "--timeline", trace, "--quiet"});
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--markdown"}}) {
    std::vector<std::string> words{"diagnose", trace};
    words.insert(words.end(), more.begin(), more.end());
    expect_russian(words);
  }
  std::string log;
  for (int k = 1; k <= 60; ++k) log += " iteration " + std::to_string(k) + "/ 500 | elapsed time per iteration (ms): " + (k > 30 ? "1250" : "1000") + ".0 | loss: 2.1 |\n";
  ASSERT_TRUE(write_text_file(folder + "/train.log", log));
  expect_russian({"diagnose", folder + "/train.log"});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace chokepoint::commands

// SPDX-License-Identifier: Apache-2.0
// docs/findings.md is the catalogue, word for word. CHOKEPOINT_UPDATE_DOCS=1 writes it anew.
#include <chokepoint/base/files.hpp>
#include <chokepoint/findings/findings.hpp>

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

namespace chokepoint::findings {
namespace {

std::string page() {
  std::string text =
      "# Findings\n\n"
      "What `chokepoint wiring` checks, in the order in which causes are worth checking. This page is written from\n"
      "`src/findings/catalogue.cpp`; a test holds the two together. Each finding also says where it was seen (file and line), with\n"
      "which numbers, and with `--job` what it costs: the job's step predicted with and without the fault. By design, and so no\n"
      "finding: links that rest at low speed, bridges with some of a GPU's NVLinks, planes that do not meet, mixed generations that\n"
      "nobody slows.\n";
  for (const Severity severity : {Severity::kCritical, Severity::kWarning, Severity::kInfo}) {
    text += "\n## " + std::string(name(severity)) + "\n";
    for (const Check& check : catalogue()) {
      if (check.severity != severity) continue;
      text += "\n### `" + std::string(check.id) + "`\n\n" + std::string(check.title) + ".\n\n- Fix: " + std::string(check.fix) + ".\n- Verify: " + std::string(check.verify) +
              ".\n- Source: " + std::string(check.source) + ".\n";
    }
  }
  return text;
}

TEST(Catalogue, ThePageOfFindingsIsTheCatalogue) {
  const std::string path = std::string(CHOKEPOINT_SOURCE_DIR) + "/docs/findings.md";
  if (std::getenv("CHOKEPOINT_UPDATE_DOCS") != nullptr) {
    ASSERT_TRUE(write_text_file(path, page()));
  }
  const auto found = read_text_file(path);
  ASSERT_TRUE(found) << "no " << path;
  EXPECT_EQ(*found, page()) << "run once with CHOKEPOINT_UPDATE_DOCS=1";
}

TEST(Catalogue, EveryCheckSaysWhatToDoHowToSeeItAndWhereItIsFrom) {
  std::set<std::string_view> ids;
  for (const Check& check : catalogue()) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id;
    for (const std::string_view words : {check.title, check.fix, check.verify, check.source}) EXPECT_FALSE(words.empty()) << check.id;
  }
}

}  // namespace
}  // namespace chokepoint::findings

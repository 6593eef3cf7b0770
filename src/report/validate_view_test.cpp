// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/validate_view.hpp>

#include <algorithm>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace chokepoint::report {
namespace {

using testing::HasSubstr;

const validate::RunsReport& runs() {
  static const validate::RunsReport report = [] {
    const std::string file = std::string(CHOKEPOINT_TEST_DATA) + "/validate/runs.csv";
    return validate::validate_runs(read_text_file(file).value_or(""), file).value_or(validate::RunsReport{});
  }();
  return report;
}

TEST(RunsJson, HasTheContractsNamesForEveryRow) {
  const auto json = nlohmann::json::parse(runs_json(runs()));
  ASSERT_EQ(json["rows"].size(), 7u);
  for (const auto& row : json["rows"]) {
    for (const char* name : {"row", "source_id", "trust", "measured_step_time_s", "predicted_step_time_s",
                             "step_time_error", "peak_memory_error", "reason"}) {
      EXPECT_TRUE(row.contains(name)) << name;
    }
  }
  const auto& first = json["rows"][0];
  EXPECT_NEAR(first["predicted_step_time_s"].get<double>() / 0.2 - 1, first["step_time_error"].get<double>(), 1e-9);
  EXPECT_TRUE(first["reason"].is_null());
  EXPECT_TRUE(json["rows"][3]["predicted_step_time_s"].is_null());
}

/// Commas outside quotes.
long separators(std::string_view line) {
  bool quoted = false;
  return std::count_if(line.begin(), line.end(), [&](char c) {
    if (c == '"') quoted = !quoted;
    return c == ',' && !quoted;
  });
}

TEST(RunsCsv, EveryLineHasTheColumnsOfItsHeader) {
  const std::string text = runs_csv(runs());
  const auto lines = split_lines(text);
  ASSERT_GE(lines.size(), 8u);
  for (const auto line : lines) {
    EXPECT_TRUE(line.empty() || separators(line) == separators(lines[0])) << line;
  }
}

TEST(RunsHtml, IsOneFileWithoutOutsideReferences) {
  const std::string html = runs_html(runs(), "a<b>.csv");
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("a&lt;b&gt;.csv"));
  EXPECT_THAT(html, testing::Not(HasSubstr("http")));
}

TEST(RunsText, NamesCoverageAndReasons) {
  const std::string text = runs_text(runs(), Style{});
  EXPECT_THAT(text, HasSubstr("3 of 7 rows with a measured time predicted"));
  EXPECT_THAT(text, HasSubstr("neither the number of GPUs nor the parameters are stated"));
  EXPECT_THAT(text, HasSubstr("made-up-a"));
}

}  // namespace
}  // namespace chokepoint::report

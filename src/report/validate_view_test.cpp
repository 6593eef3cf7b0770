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

Findings found() {
  Findings findings;
  findings.runs = runs();
  return findings;
}

TEST(ValidationHtml, IsOneFileWithoutOutsideReferences) {
  const std::string html = validation_html(found(), "a</script>.csv");
  for (const char* outside : {"http:", "https:", " src=", " href="}) EXPECT_THAT(html, testing::Not(HasSubstr(outside)));
  EXPECT_THAT(html, testing::Not(HasSubstr("a</script>")));
  EXPECT_THAT(html, HasSubstr("a&lt;/script&gt;.csv"));
}

TEST(ValidationHtml, CarriesEveryRowAndTheFarthestWithTheirBill) {
  const std::string html = validation_html(found(), "t.csv");
  constexpr std::string_view kOpen = "id=\"data\">";
  const std::size_t start = html.find(kOpen) + kOpen.size();
  const auto data = nlohmann::json::parse(html.substr(start, html.find("</script>", start) - start));
  EXPECT_EQ(data["runs"]["rows"].size(), runs().rows.size());
  for (const auto& row : data["runs"]["rows"]) EXPECT_EQ(row.size(), data["runs"]["columns"].size());
  ASSERT_EQ(data["runs"]["farthest"].size(), 3u);
  double sum = 0;
  for (const auto& item : data["runs"]["farthest"][0]["bill"]) sum += item[1].get<double>();
  // Row 2 is the same run as row 1 with twice the time, so it is the farthest; the bill sums to the prediction.
  EXPECT_EQ(data["runs"]["farthest"][0]["row"], 2);
  EXPECT_NEAR(sum, runs().rows[1].prediction->step_time_s, 1e-4 * sum);
}

TEST(ValidationHtml, ShowsEveryRowWithoutItsScript) {
  const std::string html = validation_html(found(), "t.csv");
  const std::size_t start = html.find("<noscript>");
  const std::string plain = html.substr(start, html.find("</noscript>", start) - start);
  EXPECT_THAT(plain, HasSubstr("<h2>Runs</h2>"));
  EXPECT_THAT(plain, HasSubstr("<h2>Step times by source</h2>"));
  for (const auto& row : runs().rows) {
    EXPECT_THAT(plain, HasSubstr("<td style=\"text-align:right\">" + std::to_string(row.row) + "</td><td style=\"text-align:left\">" + row.source_id));
    EXPECT_THAT(plain, HasSubstr(row.reason.substr(0, 20)));
  }
}

TEST(RunsText, NamesCoverageAndReasons) {
  const std::string text = runs_text(runs(), Style{});
  EXPECT_THAT(text, HasSubstr("3 of 6 rows with a measured time predicted"));
  EXPECT_THAT(text, HasSubstr("neither the number of GPUs nor the parameters are stated"));
  EXPECT_THAT(text, HasSubstr("made-up-a"));
  EXPECT_THAT(text, testing::Not(HasSubstr("is missing and counts as empty")));
  EXPECT_THAT(runs_text(runs(), Style{}, true), HasSubstr("column 'where' is missing and counts as empty"));
}

}  // namespace
}  // namespace chokepoint::report

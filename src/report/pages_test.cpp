// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/engine/engine.hpp>
#include <chokepoint/job/read_job.hpp>
#include <chokepoint/report/pages.hpp>
#include <chokepoint/report/whatif_pages.hpp>

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "markup.hpp"
#include "plain_html.hpp"

namespace chokepoint::report {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

parallel::Job small_job() {
  auto file = job::read_job(
      "model: llama-3-8b\ncluster: dgx-a100\nhosts: 2\nbatch: 64\nsequence: 4096\nusd_per_accelerator_hour: 2\n",
      "job.yaml", {});
  return file ? file->job : parallel::Job{};
}

const PredictReport& prediction() {
  static const parallel::Job job = small_job();
  static const simulate::Prediction predicted = [] {
    auto p =
        simulate::Predictor(job).predict(*parallel::parse_strategy("tensor=4 pipeline=2 zero=1 microbatch=1")).value();
    simulate::find_choke_points(job, p);
    return p;
  }();
  static const PredictReport report{job, predicted, std::nullopt, {}};
  return report;
}

/// The page as XML: a page that is not well-formed fails here.
pugi::xml_document parsed(const std::string& page) {
  pugi::xml_document document;
  const auto result =
      document.load_string(page.c_str(), pugi::parse_default | pugi::parse_doctype | pugi::parse_ws_pcdata);
  EXPECT_TRUE(result) << result.description() << " near "
                      << page.substr(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, result.offset - 40)), 80);
  return document;
}

Json data_of(const std::string& page) {
  return Json::parse(
      parsed(page)
          .find_node([](const pugi::xml_node& n) { return std::string_view(n.attribute("id").value()) == "data"; })
          .text()
          .get());
}

TEST(PlainHtml, TablesListsAndTextAreMarkedUpAndUsersTextStaysText) {
  const std::string cell = markdown_cell("a<b>|c & `d` *e* \\ f");
  const std::string html = plain_html("**Best & first**\n\n| x | step |\n|---|---:|\n| " + cell +
                                      " | 3 s |\n\n- one\n- two\n\n`tensor=2`\n<script>alert(1)</script>\n");
  EXPECT_EQ(html,
            "<p><strong>Best &amp; first</strong></p>\n"
            "<table>\n<thead><tr><th style=\"text-align:left\">x</th><th style=\"text-align:right\">step</th></tr>\n"
            "</thead>\n<tbody>\n<tr><td style=\"text-align:left\">a&lt;b&gt;|c &amp; `d` *e* \\ f</td>"
            "<td style=\"text-align:right\">3 s</td></tr>\n</tbody></table>\n"
            "<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n<p><code>tensor=2</code></p>\n"
            "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n");
}

TEST(PredictPage, ReadersWithoutScriptsSeeTheTables) {
  const std::string page = predict_html(prediction());
  const pugi::xml_document document = parsed(page);
  const auto plain = document.find_node([](const pugi::xml_node& n) { return std::string_view(n.name()) == "noscript"; });
  EXPECT_GE(std::distance(plain.children("table").begin(), plain.children("table").end()), 2);
}

TEST(PredictPage, IsWellFormedAndRefersToNothingOutside) {
  const std::string page = predict_html(prediction());
  const pugi::xml_document document = parsed(page);
  EXPECT_FALSE(std::string_view(document.child("html").child("body").child("header").child("h1").text().get()).empty());
  for (const char* outside : {" src=", " href=", "@import", "url(http", "url(//", "import("})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(PredictPage, HasEveryClassOfTheBillAndTheySumToTheStep) {
  const Json data = data_of(predict_html(prediction()))["prediction"];
  double sum = 0;
  for (int i = 0; i < simulate::kBillCount; ++i) {
    const std::string name(simulate::name(static_cast<simulate::Bill>(i)));
    ASSERT_TRUE(data["bill"].contains(name)) << name;
    sum += data["bill"][name].get<double>();
  }
  EXPECT_NEAR(sum, data["step_time_s"].get<double>(), 1e-12);
}

TEST(PredictPage, AsDataNamesItsScriptAndHasTheSameFigures) {
  const Json parts = Json::parse(predict_html(prediction(), Words::english(), PageForm::kData));
  EXPECT_EQ(parts["view"], "prediction");
  EXPECT_FALSE(parts["verdict"].get<std::string>().empty());
  EXPECT_EQ(parts["data"], data_of(predict_html(prediction())));
}

TEST(PredictPage, HasTheMemoryOfEveryStageAndThePriceOfADay) {
  const Json data = data_of(predict_html(prediction()));
  ASSERT_EQ(data["memory_stages"].size(), 2u);
  EXPECT_GT(data["memory_stages"][0]["needed_bytes"].get<double>(), 1e9);
  EXPECT_DOUBLE_EQ(data["usd_per_day"].get<double>(), 2 * 16 * 24);  // 16 accelerators at 2 USD an hour
}

TEST(PredictPage, ShowsUsersTextAsText) {
  parallel::Job job = prediction().job;
  job.model.name = "</script><script>alert(1)</script>&\"<!--]]>";
  job.cluster.hosts.front().host.name = "<img src=x onerror=alert(1)>";
  const std::string page = predict_html({job, prediction().prediction, std::nullopt, {}});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_EQ(data_of(page)["prediction"]["job"]["model"], job.model.name);
}

TEST(PredictPage, LeavesAMarkerInAUsersTextAlone) {
  parallel::Job job = prediction().job;
  job.model.name = "@DATA@";
  EXPECT_EQ(data_of(predict_html({job, prediction().prediction, std::nullopt, {}}))["prediction"]["job"]["model"],
            "@DATA@");
}

const PlanReport& planned() {
  static const parallel::Job& job = prediction().job;
  static const plan::Plan plan = plan::make_plan(job, {}).value();
  static const PlanReport report = [] {
    plan::Options all;
    all.variants = true;
    all.top = 100;
    return PlanReport{job, plan, plan::make_plan(job, all)->candidates, {}};
  }();
  return report;
}

TEST(PlanPage, EveryPointFitsAndNoneIsFasterThanTheBest) {
  const Json data = data_of(plan_html(planned()));
  ASSERT_GT(data["every"].size(), 20u);
  const double best = data["candidates"][0]["step_time_s"].get<double>();
  for (const Json& point : data["every"]) {
    EXPECT_LE(point["needed_bytes"].get<double>(), data["capacity_bytes"].get<double>());
    EXPECT_GE(point["step_time_s"].get<double>(), best);
  }
}

TEST(PlanPage, SaysWhatWouldFitWhenNothingDoes) {
  auto file = job::read_job("model: llama-3-70b\ncluster: rtx3090-2\nbatch: 512\nsequence: 4096\n", "job.yaml", {});
  ASSERT_TRUE(file);
  const auto plan = plan::make_plan(file->job, {});
  ASSERT_TRUE(plan);
  const std::string page = plan_html({file->job, *plan, {}, {}});
  EXPECT_THAT(page, HasSubstr("Nothing fits."));
  EXPECT_FALSE(data_of(page)["would_fit"].empty());
}

/// Cells of every line of the tables: pipes that are not escaped.
void expect_even_tables(const std::string& markdown) {
  long columns = 0;
  for (const std::string_view line : split_lines(markdown)) {
    if (line.empty() || line.front() != '|') {
      columns = 0;
      continue;
    }
    long pipes = 0;
    for (std::size_t i = 0; i < line.size(); ++i) pipes += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    if (columns == 0) columns = pipes;
    EXPECT_EQ(pipes, columns) << line;
  }
}

TEST(Markdown, TablesAreEvenAndCarryTheBillTheLadderAndTheChokePoint) {
  const std::string text = predict_markdown(prediction());
  expect_even_tables(text);
  expect_even_tables(plan_markdown(planned()));
  EXPECT_THAT(text, HasSubstr("| Bill of the step | time | share |"));
  EXPECT_THAT(text, HasSubstr("| From peak to useful work | left | of the step | money a day |"));
  EXPECT_THAT(text, HasSubstr("| Choke point | with | step | change |"));
}

TEST(Markdown, CellsKeepPipesAndMarkupAsText) { EXPECT_EQ(markdown_cell("a|b\nc <b> _x_"), "a\\|b c &lt;b> \\_x\\_"); }

TEST(Csv, QuotesWhatItMust) {
  EXPECT_EQ(csv_line({"plain", "a,b", "say \"no\"", ""}), "plain,\"a,b\",\"say \"\"no\"\"\",\n");
}

TEST(Csv, BillOfThePredictionSumsToTheStep) {
  double step = 0, sum = 0;
  const std::string csv = predict_csv(prediction());
  for (const std::string_view line : split_lines(csv)) {
    const auto cells = split(line, ',');
    if (cells.size() == 4 && cells[0] == "bill") sum += to_number(cells[2]).value_or(0);
    if (cells.size() == 4 && cells[1] == "step_time") step = to_number(cells[2]).value_or(0);
  }
  EXPECT_GT(step, 0);
  EXPECT_NEAR(sum, step, 1e-6 * step);
}

diagnose::Diagnosis two_ranks() {
  diagnose::Diagnosis d;
  for (int r = 0; r < 2; ++r) {
    diagnose::RankResult rank;
    rank.file = "rank<" + std::to_string(r) + ">.json";
    rank.rank = r;
    rank.time.span_ns = 1000000;
    rank.bill.ns[0] = 700000;
    rank.bill.ns[static_cast<std::size_t>(simulate::Bill::kDataReduce)] = 300000;
    rank.bill.wait_ns[static_cast<std::size_t>(simulate::Bill::kDataReduce)] = r == 0 ? 200000 : 0;
    d.ranks.push_back(rank);
  }
  diagnose::MatchedCollective c;
  c.group = "data | <b>";
  c.op_known = true;
  c.bytes = 1 << 20;
  c.group_size = 2;
  c.members = {0, 1};
  c.last_start_ns = 200000;
  c.first_end_ns = c.last_end_ns = 300000;
  c.late = 1;
  d.collectives = {c, c};
  d.causes = {{"slow-rank", "rank 1", "Rank 1 is slow", "exchange it", 2e-4, 8e-4}};
  d.measured_s = 1e-3;
  d.ideal_s = 8e-4;
  d.steps = 1;
  d.world_size = 2;
  d.choke_point = "Rank 1 <slow>";
  return d;
}

TEST(DiagnosePage, CarriesRanksCausesAndSummedCollectives) {
  const std::string page = diagnose_html(two_ranks());
  const Json data = data_of(page);
  EXPECT_THAT(page, HasSubstr("<h1>Rank 1 &lt;slow&gt;</h1>"));
  ASSERT_EQ(data["ranks"].size(), 2u);
  EXPECT_NEAR(data["ranks"][0]["bill"]["compute"].get<double>() + data["ranks"][0]["bill"]["data-reduce"].get<double>(),
              1e-3, 1e-12);
  ASSERT_EQ(data["collective_groups"].size(), 1u);
  const Json& group = data["collective_groups"][0];
  EXPECT_EQ(group["count"], 2);
  EXPECT_NEAR(group["wire_s"].get<double>(), 2e-4, 1e-12);  // twice 300 - 200 us
  EXPECT_NEAR(group["wait_s"].get<double>(), 4e-4, 1e-12);  // twice 200 - 0 us
  EXPECT_EQ(group["late_rank"], 1);
  EXPECT_NEAR(data["measured_s"].get<double>() - data["causes"][0]["cost_s"].get<double>(),
              data["ideal_s"].get<double>(), 1e-12);
}

TEST(DiagnoseFiles, MarkdownTablesAreEvenAndCsvHasALineForEachRank) {
  expect_even_tables(diagnose_markdown(two_ranks()));
  const std::string csv = diagnose_csv(two_ranks());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

WiringReport wired() {
  WiringReport report;
  report.assembly.cluster = small_job().cluster;
  findings::Finding f;
  f.id = "nvlink-inactive";
  f.severity = findings::Severity::kCritical;
  f.where = "GPU3";
  f.what = "link <5> is down";
  f.cost = findings::Cost{2.0, 1.5};
  report.findings.push_back(f);
  return report;
}

TEST(WiringPage, NamesTheDearestFindingAndCarriesTheMap) {
  const std::string page = wiring_html(wired());
  EXPECT_THAT(
      page,
      HasSubstr(
          "<h1>1 critical finding; the dearest: GPU3, link &lt;5&gt; is down, costs 500 ms of a step of 2.00 s.</h1>"));
  const Json data = data_of(page);
  EXPECT_THAT(data["svg"].get<std::string>(), HasSubstr("data-device=\"GPU3\""));
  pugi::xml_document map;
  EXPECT_TRUE(map.load_string(data["svg"].get<std::string>().c_str()));
  expect_even_tables(wiring_markdown(wired()));
}

TEST(WiringPage, RenamesTheDataAndNotTheScript) {
  const std::string page = wiring_html(wired(), [](std::string_view text) {
    std::string out(text);
    for (std::size_t at = out.find("GPU3"); at != std::string::npos; at = out.find("GPU3"))
      out.replace(at, 4, "device-a");
    return out;
  });
  EXPECT_THAT(page, Not(HasSubstr("\"where\":\"GPU3\"")));
  EXPECT_THAT(page, HasSubstr("\"where\":\"device-a\""));
}

TEST(PredictPage, DrawsEveryStageOfThePipelineWithoutOverlap) {
  const auto simulated =
      engine::simulate_step(simulate::Predictor(prediction().job), prediction().prediction.strategy, {});
  ASSERT_TRUE(simulated);
  PredictReport report = prediction();
  report.simulated = &*simulated;
  const Json line = data_of(predict_html(report))["timeline"];
  ASSERT_EQ(line["lanes"].size(), 2u);
  for (const Json& lane : line["lanes"]) {
    double end = 0;
    int forwards = 0;
    for (const Json& span : lane["spans"]) {
      EXPECT_GE(span["start_s"].get<double>(), end - 2e-6);  // rounded to the microsecond
      EXPECT_LE(span["end_s"].get<double>(), simulated->step_s + 1e-6);
      end = span["end_s"];
      forwards += span["kind"] == "forward";
    }
    EXPECT_EQ(forwards, simulated->strategy.accumulate);
  }
}

TEST(WhatIfPage, CarriesTheStudyAndSaysWhatTheChangeGives) {
  whatif::Scenario scenario;
  scenario.job = prediction().job;
  scenario.strategy = prediction().prediction.strategy;
  whatif::StudyOptions options;
  options.sensitivities = true;
  const auto study =
      whatif::make_study(scenario, {whatif::parse_change("nvlink=x2").value()}, whatif::shipped_prices(), options);
  ASSERT_TRUE(study);
  const std::string page = whatif_html(*study);
  const Json data = data_of(page);
  const double now = data["now"]["prediction"]["step_time_s"],
               then = data["answers"][0]["same_strategy"]["prediction"]["step_time_s"];
  EXPECT_LT(then, now);
  EXPECT_THAT(page, HasSubstr("<h1>With nvlink=x2 a step takes "));
  EXPECT_FALSE(data["sensitivities"]["resources"].empty());
  expect_even_tables(whatif_markdown(*study));
  // A head, the step as it is, the change with the same strategy and planned anew, a line for each resource.
  const std::string csv = whatif_csv(*study);
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')),
            4 + data["sensitivities"]["resources"].size());
}

}  // namespace
}  // namespace chokepoint::report

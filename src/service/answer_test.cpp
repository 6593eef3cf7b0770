// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chokepoint/commands/run.hpp>
#include <chokepoint/service/answer.hpp>
#include <nlohmann/json.hpp>

#include "request.hpp"

namespace chokepoint::service {
namespace {

using nlohmann::json;

constexpr std::string_view kPredict =
    R"({"job": {"model": "llama-3-8b", "cluster": "dgx-h100", "batch": 64, "sequence": 4096},
        "options": {"strategy": {"zero": 3, "microbatch": 1}}})";

std::string message(const Answer& answer) { return answer.error ? format(*answer.error) : "no error: " + answer.json; }

TEST(Answer, IsWhatTheCommandLinePrints) {
  MemoryFiles files(Disk::kClosed);
  files.add("job.yaml", "model: llama-3-8b\ncluster: dgx-h100\nbatch: 64\nsequence: 4096\n");
  const auto outcome = commands::run_in_memory({"predict", "--json", "--strategy", "zero=3 microbatch=1", "job.yaml"}, files);
  ASSERT_FALSE(outcome.error);
  const Answer answered = answer("predict", kPredict);
  EXPECT_EQ(answered.code, 0);
  EXPECT_EQ(json::parse(answered.json)["step_time_s"], json::parse(files.written().at("-"))["step_time_s"]);
}

TEST(Answer, AJobIsAMappingATextOrAFileOfTheRequest) {
  const double expected = json::parse(answer("predict", kPredict).json)["step_time_s"];
  const std::string job = "model: llama-3-8b\ncluster: dgx-h100\nbatch: 64\nsequence: 4096\nstrategy: \"zero=3 microbatch=1\"\n";
  EXPECT_EQ(json::parse(answer("predict", json{{"job", job}}.dump()).json)["step_time_s"], expected);
  const json named{{"job", "jobs/mine.yaml"}, {"files", {{"jobs/mine.yaml", job}}}};
  EXPECT_EQ(json::parse(answer("predict", named.dump()).json)["step_time_s"], expected);
}

TEST(Answer, FilesNameEachOtherAsInAFolder) {
  const json request{{"job", "model: llama-3-8b\ncluster: ../clusters/pair.yaml\nbatch: 64\nsequence: 4096\nstrategy: \"zero=3 microbatch=1\"\n"},
                     {"files", {{"../clusters/pair.yaml", "name: pair\nhosts:\n  - template: dgx-a100\n    count: 2\nfabric:\n  template: ib-hdr\n"}}}};
  const Answer answered = answer("predict", request.dump());
  // Whatever the cluster file is found to lack, it was found.
  EXPECT_EQ(message(answered).find("no such file"), std::string::npos) << message(answered);
}

TEST(Answer, AFileThatTheRequestDoesNotHoldIsNotFound) {
  const Answer answered = answer("predict", R"({"job": "model: llama-3-8b\ncluster: /etc/passwd\nbatch: 8\nsequence: 128\n"})");
  EXPECT_EQ(answered.code, 2);
  EXPECT_NE(message(answered).find("no such file: /etc/passwd"), std::string::npos) << message(answered);
}

TEST(Answer, WiringChecksTheFilesOfTheRequest) {
  const json request{{"inputs", "dgx-h100"}, {"options", {{"expect", {"all_reduce", "all_gather"}}}}};
  const json answered = json::parse(answer("wiring", request.dump()).json);
  EXPECT_TRUE(answered.contains("findings"));
  EXPECT_EQ(answered["expected"].size(), 2u);
}

TEST(Answer, WrittenFilesStandBesideTheResult) {
  json request = json::parse(kPredict);
  request["options"]["html"] = "report.html";
  request["options"]["timeline"] = "t.json.gz";
  const Answer answered = answer("predict", request.dump());
  ASSERT_EQ(answered.code, 0) << message(answered);
  const json result = json::parse(answered.json);
  EXPECT_EQ(result["written"]["report.html"].get<std::string>().substr(0, 15), "<!DOCTYPE html>");
  EXPECT_EQ(from_base64(result["written"]["t.json.gz"]["base64"].get<std::string>()).value().substr(0, 2), "\x1F\x8B");
}

TEST(Answer, BadRequestsSayWhatIsWrong) {
  EXPECT_EQ(message(answer("predict", "{\"job\": \n nope}")).substr(0, 46), "request:2:3: error: the request is no valid JS");
  const Answer large = answer("predict", "{\"job\": {\"batch\": 1e999}}");
  EXPECT_EQ(large.code, 2);
  EXPECT_NE(message(large).find("beyond the range"), std::string::npos) << message(large);
}

TEST(Answer, TheErrorDocumentHasItsKeys) {
  const json error = json::parse(answer("predict", R"({"jobb": {}})").json)["error"];
  EXPECT_EQ(error["message"], "unknown key 'jobb' in the request");
  EXPECT_EQ(error["file"], "request");
  EXPECT_EQ(error["line"], nullptr);
  EXPECT_EQ(error["fix"], "did you mean 'job'?\noptions of the command line stand under 'options'");
}

TEST(Answer, OptionsThatNameOutputsOrHelpAreNone) {
  EXPECT_EQ(message(answer("plan", R"({"options": {"out": "x"}})")), "error: 'out' is no option of a request\n");
  EXPECT_EQ(message(answer("plan", R"({"options": {"--top": 3}})")).substr(0, 36), "error: '--top' is no name of an opti");
}

TEST(Answer, NestingHasAnEnd) {
  const std::string deep(100000, '[');
  EXPECT_EQ(message(answer("plan", "{\"job\":" + deep)), "request:1:71: error: nested deeper than 64 levels\n");
}

TEST(Answer, TheCatalogueHoldsAllParts) {
  const json all = json::parse(answer("catalogue", "").json);
  for (const char* part : {"models", "clusters", "accelerators"}) EXPECT_TRUE(all.contains(part)) << part;
}

TEST(Answer, ExamplesAreRequestsThatHoldAllTheirFiles) {
  const json all = json::parse(answer("catalogue", "").json);
  ASSERT_GT(all["examples"].size(), 10u);
  for (const json& example : all["examples"]) {
    json request = example["request"];
    request["options"]["strategy"] = "zero=3 microbatch=1";
    const Answer answered = answer("predict", request.dump());
    EXPECT_FALSE(answered.error) << example["name"] << ": " << message(answered);
  }
}

TEST(Answer, UnknownOperationsHaveNeighbours) {
  EXPECT_EQ(message(answer("predct", "{}")), "error: unknown operation 'predct'\n  did you mean 'predict'?\n");
}

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(to_base64("Man"), "TWFu");  // RFC 4648's neighbour examples: "f" is Zg==, "fo" Zm8=
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_FALSE(from_base64("Zg="));
  EXPECT_FALSE(from_base64("Z"));
  EXPECT_FALSE(from_base64("Z*=="));
}

}  // namespace
}  // namespace chokepoint::service

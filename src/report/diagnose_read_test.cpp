// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/regression.hpp>
#include <chokepoint/report/diagnose_read.hpp>
#include <chokepoint/report/diagnose_view.hpp>

#include <gtest/gtest.h>

namespace chokepoint::report {
namespace {

/// Two ranks, one step of 1 s: 0.6 s of computing on the first and `second_s` on the second, the rest the host's or waiting.
diagnose::Diagnosis job(double second_s) {
  diagnose::Diagnosis d;
  d.measured_s = 1 + second_s - 0.6;
  d.ideal_s = 0.7;
  d.steps = 1;
  d.world_size = 2;
  d.causes = {{"slow-rank", "rank 1", "Rank 1 computes longer", "look at it", second_s - 0.6, 1}, {"host", "host", "Devices idle", "compile", 0.3, 0.7}};
  for (const double compute_s : {0.6, second_s}) {
    diagnose::RankResult rank;
    rank.rank = static_cast<int>(d.ranks.size());
    rank.bill.ns[static_cast<std::size_t>(simulate::Bill::kCompute)] = static_cast<std::int64_t>(1e9 * compute_s);
    rank.bill.ns[static_cast<std::size_t>(simulate::Bill::kHost)] = 400'000'000;
    rank.bill.host_ns[static_cast<std::size_t>(diagnose::HostPart::kLaunch)] = 400'000'000;
    rank.steps.push_back({"0", {0, rank.bill.total_ns()}, rank.bill});
    d.ranks.push_back(rank);
  }
  return d;
}

TEST(SavedDiagnosis, ComparesAsTheDiagnosisItWasSavedFrom) {
  const diagnose::Diagnosis before = job(0.6);
  const diagnose::Diagnosis now = job(0.9);
  const std::string text = diagnose_json(before);
  EXPECT_TRUE(looks_like_saved_diagnosis(text));
  const auto saved = read_saved_diagnosis(text, "old.json");
  ASSERT_TRUE(saved) << format(saved.error());
  const diagnose::Regression direct = diagnose::compare(before, now);
  const diagnose::Regression again = diagnose::compare(std::get<diagnose::Diagnosis>(*saved), now);
  EXPECT_TRUE(again.slower);
  EXPECT_EQ(again.cause, "slow-rank");
  EXPECT_EQ(again.rank, 1);
  EXPECT_EQ(again.what, direct.what);
  ASSERT_EQ(again.classes.size(), direct.classes.size());
  for (std::size_t i = 0; i < direct.classes.size(); ++i) EXPECT_DOUBLE_EQ(again.classes[i].delta_s(), direct.classes[i].delta_s());
}

TEST(SavedDiagnosis, SaysWhatIsWrongWithAFileThatIsNone) {
  const auto message = [](const char* text) { return read_saved_diagnosis(text, "old.json").error().message; };
  EXPECT_EQ(message("{\"schema\": \"chokepoint.diagnose/1\", "), "a saved diagnosis that is not JSON: cut off?");
  EXPECT_EQ(message("{\"schema\": \"other\"}").substr(0, 23), "not a saved diagnosis: ");
  EXPECT_EQ(message("{\"schema\": \"chokepoint.diagnose/1\", \"measured_s\": 1}").substr(0, 35), "a saved diagnosis of another kind: ");
  EXPECT_FALSE(looks_like_saved_diagnosis("{\"traceEvents\": []}"));
  EXPECT_FALSE(looks_like_saved_diagnosis(""));
}

}  // namespace
}  // namespace chokepoint::report

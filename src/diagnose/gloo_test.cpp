// SPDX-License-Identifier: Apache-2.0
// Traces as Debian's PyTorch writes them on CPUs: a bare list without categories, each rank with a clock of its own.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/trace.hpp>

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>

namespace chokepoint::diagnose {
namespace {

/// Events of one rank; its clock reads `ahead` us more than the others'.
class Rank {
 public:
  explicit Rank(int ahead) : ahead_(ahead) {}
  Rank& add(const std::string& name, int ts, int dur, int thread = 1) {
    text_ += (text_.empty() ? "" : ", ") + std::string("{\"name\": \"") + name + "\", \"ph\": \"X\", \"ts\": " + std::to_string(ts + ahead_) +
             ", \"dur\": " + std::to_string(dur) + ", \"tid\": " + std::to_string(thread) + ", \"pid\": \"CPU functions\", \"args\": {}}";
    return *this;
  }
  trace::RankTrace trace(int rank) const {
    auto t = trace::read_chrome_text("[" + text_ + "]", "rank" + std::to_string(rank) + ".json");
    EXPECT_TRUE(t) << format(t.error());
    return std::move(*t);
  }

 private:
  int ahead_;
  std::string text_;
};

Result<Diagnosis> diagnosed(const std::vector<Rank>& ranks) {
  std::vector<trace::RankTrace> traces;
  for (std::size_t i = 0; i < ranks.size(); ++i) traces.push_back(ranks[i].trace(static_cast<int>(i)));
  return diagnose(std::move(traces));
}

const Cause* cause(const Diagnosis& d, const std::string& id) {
  for (const Cause& c : d.causes) {
    if (c.id == id) return &c;
  }
  return nullptr;
}

// Four ranks reduce once per 100 ms step; their threads see the end up to 4 ms apart.
TEST(Gloo, RanksWhoseThreadsWakeLateAreStillOneGroup) {
  std::vector<Rank> ranks;
  for (int r = 0; r < 4; ++r) {
    Rank rank(1000 * r);
    for (int k = 0; k < 6; ++k) {
      rank.add("aten::mm", 1000 + 100'000 * k, 80'000);
      rank.add("gloo:all_reduce", 82'000 + 100'000 * k, 10'000 + 1300 * ((r + k) % 4), 2);
    }
    ranks.push_back(rank);
  }
  const auto d = diagnosed(ranks);
  ASSERT_TRUE(d) << format(d.error());
  ASSERT_EQ(d->collectives.size(), 6u);
  for (const MatchedCollective& c : d->collectives) EXPECT_EQ(c.members.size(), 4u);
}

// Two stages: 0 computes 10 ms and sends, 1 computes 30 and sends back, 0 computes 10 more. The second rank's clock is a
// second ahead, which only the messages tell; a message takes 0.1 ms. The send stays open to the step's end.
TEST(Gloo, MessagesPairRanksAlignTheirClocksAndHoldNobodyUpOnceSent) {
  Rank first(0);
  Rank second(1'000'000);
  for (int k = 0; k < 4; ++k) {
    const int at = 1000 + 60'000 * k;
    first.add("aten::addmm", at, 10'000).add("gloo:send", at + 10'000, 45'000).add("gloo:recv", at + 10'000, 30'200).add("aten::mm", at + 40'200, 10'000);
    second.add("gloo:recv", at, 10'100).add("aten::addmm", at + 10'100, 30'000).add("gloo:send", at + 40'100, 15'000);
  }
  const auto d = diagnosed({first, second});
  ASSERT_TRUE(d) << format(d.error());
  ASSERT_EQ(d->collectives.size(), 8u);
  for (const MatchedCollective& c : d->collectives) {
    EXPECT_EQ(c.dimension, simulate::Bill::kPipeline);
    EXPECT_EQ(c.members.size(), 2u);
  }
  EXPECT_EQ(d->ranks[1].clock_offset_ns, -1'000'000'000);
  EXPECT_EQ(d->ranks[1].clock_error_ns, 100'000);
  const auto waited = d->ranks[0].bill.ns[static_cast<std::size_t>(simulate::Bill::kPipeline)];
  EXPECT_NEAR(static_cast<double>(waited) * 1e-6, 4 * (30.2 + 4.8), 0.1);  // for the answer; for the end of the send, where nothing else runs
}

/// 1F1B over two stages of two ranks each (ranks 0 and 2, 1 and 3 talk to each other), three micro-batches, four steps: 10 ms
/// forward, 20 ms backward, the second stage `load` times as long; messages take 0.1 ms and sends stay open to the step's end.
Result<Diagnosis> pipeline(double load, double rank3 = 1) {
  std::vector<Rank> ranks(4, Rank(0));
  for (int pair = 0; pair < 2; ++pair) {
    Rank& first = ranks[static_cast<std::size_t>(pair)];
    Rank& second = ranks[static_cast<std::size_t>(pair + 2)];
    const double factor = load * (pair == 1 ? rank3 : 1);
    const int forward = static_cast<int>(10'000 * factor);
    const int backward = static_cast<int>(20'000 * factor);
    int at0 = 1000;
    int at1 = 1000;
    for (int step = 0; step < 4; ++step) {
      std::vector<int> forwards, backwards;  // when they were sent
      const auto compute = [](Rank& rank, const char* name, int& at, int us) { rank.add(name, at, us); at += us; };
      const auto receive = [](Rank& rank, int& at, int sent) {
        const int end = std::max(at, sent) + 100;
        rank.add("gloo:recv", at, end - at);
        at = end;
      };
      const auto one_forward = [&] { compute(first, "aten::addmm", at0, 10'000); forwards.push_back(at0); };
      const auto one_backward = [&](std::size_t k) { receive(first, at0, backwards[k]); compute(first, "aten::mm", at0, 20'000); };
      const auto second_stage = [&](std::size_t k) {
        receive(second, at1, forwards[k]);
        compute(second, "aten::addmm", at1, forward);
        compute(second, "aten::mm", at1, backward);
        backwards.push_back(at1);
      };
      one_forward();
      one_forward();
      second_stage(0);
      second_stage(1);
      one_backward(0);
      one_forward();
      second_stage(2);
      one_backward(1);
      one_backward(2);
      for (const int sent : forwards) first.add("gloo:send", sent, at0 - sent);
      for (const int sent : backwards) second.add("gloo:send", sent, at1 + 50 - sent);
      at0 += 100;
      at1 += 100;
    }
  }
  return diagnosed(ranks);
}

// A message sent ahead moves nobody's place: its sender goes through others before it waits for this one's end. One step
// takes 10 + 3 x 30 + 20 ms, with a second stage of 1.5 times 10 + 3 x 45 + 20: 45 ms more.
TEST(Gloo, AHeavierStageCostsWhatItMakesTheStepLonger) {
  const auto even = pipeline(1);
  const auto heavy = pipeline(1.5);
  ASSERT_TRUE(even && heavy);
  const double more = heavy->measured_s - even->measured_s;
  EXPECT_NEAR(more / 4, 0.045, 0.0001);  // the recordings have no steps
  const Cause* slow = cause(*heavy, "slow-rank");
  ASSERT_NE(slow, nullptr);
  EXPECT_NEAR(slow->cost_s, more, 0.02 * more);
  for (const Diagnosis* d : {&*even, &*heavy}) {
    for (const Note& note : d->notes) EXPECT_EQ(note.text.find("the replay gives"), std::string::npos) << note.text;
  }
}

// Ranks 2 and 3 of the second stage look alike but for their speed: paired crosswise, one would receive before the other sent.
TEST(Gloo, MessagesArePairedSoThatNothingArrivesBeforeItIsSent) {
  const auto d = pipeline(1, 1.5);
  ASSERT_TRUE(d);
  for (const MatchedCollective& c : d->collectives) {
    if (c.members.size() != 2) continue;
    EXPECT_EQ(std::abs(c.members[0] - c.members[1]), 2) << c.group;
  }
}

/// Two micro-batches of two ranks: forward, backward, a reduction of 20 ms after each or after the last alone.
Result<Diagnosis> accumulation(bool every) {
  std::vector<Rank> ranks;
  for (int r = 0; r < 2; ++r) {
    Rank rank(0);
    int at = 1000;
    for (int k = 0; k < 4; ++k) {
      const int begin = at;
      for (int micro = 0; micro < 2; ++micro) {
        rank.add("DistributedDataParallel.forward", at, 10'000).add("aten::addmm", at, 10'000).add("aten::mm", at + 10'000, 20'000);
        at += 30'000;
        if (!every && micro == 0) continue;
        rank.add("gloo:all_reduce", at, 20'000, 2);
        at += 20'000;
      }
      rank.add("Optimizer.step#SGD.step", at, 1000).add("aten::add_", at, 1000);
      at += 1000;
      rank.add("ProfilerStep#" + std::to_string(k), begin, at - begin);
    }
    ranks.push_back(rank);
  }
  return diagnosed(ranks);
}

TEST(Gloo, ReducingInEveryMicroStepIsNamedWithWhatItCosts) {
  const auto every = accumulation(true);
  const auto once = accumulation(false);
  ASSERT_TRUE(every && once);
  const Cause* sync = cause(*every, "accumulation-sync");
  ASSERT_NE(sync, nullptr);
  EXPECT_NEAR(sync->cost_s, 0.020, 1e-6);  // one of two reductions of 20 ms
  EXPECT_NEAR(sync->step_time_without_s, once->measured_s, 1e-6);
  EXPECT_EQ(cause(*once, "accumulation-sync"), nullptr);
}

}  // namespace
}  // namespace chokepoint::diagnose

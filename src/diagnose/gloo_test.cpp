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
/// forward, 20 ms backward, the second stage `load` times as long and rank 3 `rank3` times; messages take 0.1 ms, sends stay
/// open to the step's end, where the ranks of a stage reduce in 0.1 ms.
class TwoStages {
 public:
  TwoStages(double load, double rank3) : ranks_(4, Rank(0)), factor_{load, load * rank3} {
    for (int step = 0; step < 4; ++step) {
      const std::vector<int> begin = at_;
      for (std::size_t pair = 0; pair < 2; ++pair) run(pair);
      reduce(0);
      reduce(2);
      for (std::size_t r = 0; r < 4; ++r) ranks_[r].add("ProfilerStep#" + std::to_string(step), begin[r], at_[r] - begin[r]);
    }
  }
  Result<Diagnosis> diagnosed() const { return diagnose::diagnosed(ranks_); }

 private:
  void compute(std::size_t rank, const char* name, double us) {
    ranks_[rank].add(name, at_[rank], static_cast<int>(us));
    at_[rank] += static_cast<int>(us);
  }
  void receive(std::size_t rank, int sent) {
    const int end = std::max(at_[rank], sent) + 100;
    ranks_[rank].add("gloo:recv", at_[rank], end - at_[rank]);
    at_[rank] = end;
  }
  void forward(std::size_t pair) {
    compute(pair, "aten::addmm", 10'000);
    sent_[pair].push_back(at_[pair]);
  }
  void second(std::size_t pair, std::size_t k) {
    receive(pair + 2, sent_[pair][k]);
    compute(pair + 2, "aten::addmm", 10'000 * factor_[pair]);
    compute(pair + 2, "aten::mm", 20'000 * factor_[pair]);
    sent_[pair + 2].push_back(at_[pair + 2]);
  }
  void backward(std::size_t pair, std::size_t k) {
    receive(pair, sent_[pair + 2][k]);
    compute(pair, "aten::mm", 20'000);
  }
  void run(std::size_t pair) {
    sent_[pair].clear();
    sent_[pair + 2].clear();
    forward(pair);
    forward(pair);
    second(pair, 0);
    second(pair, 1);
    backward(pair, 0);
    forward(pair);
    second(pair, 2);
    backward(pair, 1);
    backward(pair, 2);
  }
  void reduce(std::size_t first) {
    const int end = std::max(at_[first], at_[first + 1]) + 150;
    for (const std::size_t rank : {first, first + 1}) {
      for (const int sent : sent_[rank]) ranks_[rank].add("gloo:send", sent, at_[rank] + 50 - sent);
      ranks_[rank].add("gloo:all_reduce", at_[rank] + 50, end - at_[rank] - 50, 2);
      at_[rank] = end;
    }
  }

  std::vector<Rank> ranks_;
  std::vector<double> factor_;
  std::vector<int> at_ = std::vector<int>(4, 1000);
  std::vector<std::vector<int>> sent_ = std::vector<std::vector<int>>(4);
};

// A message sent ahead moves nobody's place: its sender goes through others before it waits for this one's end. One step
// takes 10 + 3 x 30 + 20 ms, with a second stage of 1.5 times 10 + 3 x 45 + 20: 45 ms more.
TEST(Gloo, AHeavierStageCostsWhatItMakesTheStepLonger) {
  const auto even = TwoStages(1, 1).diagnosed();
  const auto heavy = TwoStages(1.5, 1).diagnosed();
  ASSERT_TRUE(even && heavy);
  const double more = heavy->measured_s - even->measured_s;
  EXPECT_NEAR(more, 0.045, 0.001);
  const Cause* stage = cause(*heavy, "heavy-stage");
  ASSERT_NE(stage, nullptr);
  EXPECT_EQ(stage->where, "stage of ranks 2, 3");
  EXPECT_NEAR(stage->cost_s, more, 0.001);
  for (const Diagnosis* d : {&*even, &*heavy}) {
    for (const Note& note : d->notes) EXPECT_EQ(note.text.find("the replay gives"), std::string::npos) << note.text;
  }
}

// Ranks 2 and 3 of the second stage look alike but for their speed: paired crosswise, one would receive before the other sent.
TEST(Gloo, MessagesArePairedSoThatNothingArrivesBeforeItIsSent) {
  const auto d = TwoStages(1, 1.5).diagnosed();
  ASSERT_TRUE(d);
  for (const MatchedCollective& c : d->collectives) {
    if (c.dimension != simulate::Bill::kPipeline) continue;
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

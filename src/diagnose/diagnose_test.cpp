// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/hang.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/straggler.hpp>
#include <chokepoint/trace/trace.hpp>

#include <gtest/gtest.h>

#include "shapley.hpp"

namespace chokepoint::diagnose {
namespace {

using simulate::Bill;

std::string span(const char* category, const char* name, double ts, double dur, const std::string& args) {
  return "{\"ph\":\"X\",\"cat\":\"" + std::string(category) + "\",\"name\":\"" + name + "\",\"pid\":0,\"tid\":1,\"ts\":" + std::to_string(ts) +
         ",\"dur\":" + std::to_string(dur) + ",\"args\":{" + args + "}}";
}
std::string compute(double ts, double dur) { return span("kernel", "gemm", ts, dur, "\"stream\":7"); }
std::string reduce(double ts, double dur) {
  return span("kernel", "ncclDevKernel_AllReduce", ts, dur,
              "\"stream\":9,\"Collective name\":\"allreduce\",\"In msg nelems\":1000000,\"dtype\":\"Float\",\"Group size\":2,\"Process Group Name\":\"0\","
              "\"Process Group Ranks\":\"[0, 1]\"");
}

trace::RankTrace rank(int number, const std::vector<std::string>& events) {
  std::string text = "{\"distributedInfo\":{\"rank\":" + std::to_string(number) + ",\"world_size\":2},\"traceEvents\":[";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i == 0 ? "" : ",\n") + events[i];
  auto trace = trace::read_chrome_text(text + "]}", "rank");
  EXPECT_TRUE(trace) << format(trace.error());
  return std::move(*trace);
}

std::int64_t ns(const MeasuredBill& bill, Bill item) { return bill.ns[static_cast<std::size_t>(item)]; }

// Rank 1 computes 300 us where rank 0 needs 100; both then reduce for 50 us of wire.
//   rank 0: compute 0..100, all-reduce 100..350 (waits 200, wire 50), compute 350..400
//   rank 1: compute 0..300, all-reduce 300..350,                      compute 350..400
Result<Diagnosis> late_rank() {
  std::vector<trace::RankTrace> traces;
  traces.push_back(rank(0, {compute(1000, 100), reduce(1100, 250), compute(1350, 50)}));
  traces.push_back(rank(1, {compute(1000, 300), reduce(1300, 50), compute(1350, 50)}));
  return diagnose(std::move(traces));
}

TEST(Diagnose, WaitingForALateRankIsNotTransfer) {
  const auto d = late_rank();
  ASSERT_TRUE(d) << format(d.error());
  ASSERT_EQ(d->collectives.size(), 1u);
  EXPECT_EQ(d->collectives[0].late, 1);
  EXPECT_EQ(d->collectives[0].wire_ns(), 50'000);
  EXPECT_EQ(d->collectives[0].wait_ns(), 200'000);
  EXPECT_EQ(ns(d->ranks[0].bill, Bill::kDataReduce), 250'000);
  EXPECT_EQ(d->ranks[0].bill.wait_ns[static_cast<std::size_t>(Bill::kDataReduce)], 200'000);
  EXPECT_EQ(d->ranks[1].bill.wait_ns[static_cast<std::size_t>(Bill::kDataReduce)], 0);
  for (const RankResult& r : d->ranks) EXPECT_EQ(r.bill.total_ns(), r.time.span_ns);
}

// Bus bandwidth of two ranks: 4 MB / 50 us x 2(n-1)/n = 80 GB/s x 1.
TEST(Diagnose, BusBandwidthComesFromTheWireNotTheKernel) {
  const auto d = late_rank();
  ASSERT_TRUE(d);
  EXPECT_EQ(d->collectives[0].bytes, 4'000'000);
  EXPECT_NEAR(d->collectives[0].bus_bytes_per_s(), 80e9, 1);
}

// Without slowness rank 1 computes like the median... of two ranks: nth_element takes the larger one, so use three.
TEST(Diagnose, TheSlowRankComesFirstAndItsCostIsWhatReplayingWithoutItSaves) {
  const auto group = [](std::vector<std::string> events) {
    for (std::string& e : events) {
      if (const auto at = e.find("[0, 1]"); at != std::string::npos) e.replace(at, 6, "[0, 1, 2]");
    }
    return events;
  };
  std::vector<trace::RankTrace> traces;
  traces.push_back(rank(0, group({compute(1000, 100), reduce(1100, 250)})));
  traces.push_back(rank(1, group({compute(1000, 300), reduce(1300, 50)})));
  traces.push_back(rank(2, group({compute(1000, 100), reduce(1100, 250)})));
  const auto d = diagnose(std::move(traces));
  ASSERT_TRUE(d) << format(d.error());
  ASSERT_FALSE(d->causes.empty());
  EXPECT_EQ(d->causes[0].id, "slow-rank");
  EXPECT_EQ(d->causes[0].where, "rank 1");
  EXPECT_NEAR(d->causes[0].cost_s, 200e-6, 1e-9);
  EXPECT_NEAR(d->causes[0].step_time_without_s, 150e-6, 1e-9);
  double sum = 0;
  for (const Cause& c : d->causes) sum += c.cost_s;
  EXPECT_NEAR(sum, d->measured_s - d->ideal_s, 1e-12);
}

TEST(Diagnose, GroupsWithoutMetadataAreInferredFromOrderAndEnds) {
  const auto nameless = [](double ts, double dur) { return span("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(x)", ts, dur, "\"stream\":9"); };
  std::vector<trace::RankTrace> traces;
  traces.push_back(rank(0, {compute(1000, 10), nameless(1010, 90), nameless(1200, 50)}));
  traces.push_back(rank(1, {compute(1000, 80), nameless(1080, 20), nameless(1190, 60)}));
  const auto d = diagnose(std::move(traces));
  ASSERT_TRUE(d);
  ASSERT_EQ(d->collectives.size(), 2u);
  EXPECT_TRUE(d->collectives[0].inferred);
  EXPECT_EQ(d->collectives[0].late, 1);
  EXPECT_EQ(d->collectives[1].late, 0);
}

TEST(Diagnose, ClocksOfHostsAreAlignedByTheEndsOfSharedCollectives) {
  std::vector<trace::RankTrace> traces;
  std::vector<std::string> a;
  std::vector<std::string> b;
  for (int k = 0; k < 5; ++k) {
    a.push_back(reduce(1000 + 100 * k, 50));
    b.push_back(reduce(501000 + 100 * k + 20, 30));  // half a second ahead, and 20 us late in each
  }
  traces.push_back(rank(0, a));
  traces.push_back(rank(1, b));
  const auto d = diagnose(std::move(traces));
  ASSERT_TRUE(d);
  EXPECT_EQ(d->ranks[1].clock_offset_ns, -500'000'000);
  EXPECT_EQ(d->collectives[2].wait_ns(), 20'000);
  EXPECT_EQ(d->collectives[2].late, 1);
}

TEST(Diagnose, AGapBelongsToTheHostUntilItsLaunchIsOver) {
  const std::string launch = R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1050,"dur":10,"args":{"correlation":3}})";
  std::vector<trace::RankTrace> traces;
  traces.push_back(rank(0, {compute(1000, 20), launch, span("kernel", "late", 1065, 5, "\"stream\":7,\"correlation\":3")}));
  const auto d = diagnose(std::move(traces));
  ASSERT_TRUE(d);
  EXPECT_EQ(ns(d->ranks[0].bill, Bill::kHost), 45'000);
  EXPECT_EQ(ns(d->ranks[0].bill, Bill::kCompute), 25'000);
  EXPECT_EQ(d->ranks[0].bill.total_ns(), 70'000);
}

TEST(Diagnose, StepsAreFoundFromWhatRepeats) {
  std::vector<std::string> events;
  for (int k = 0; k < 6; ++k) {
    events.push_back(compute(1000 + 100 * k, 30));
    events.push_back(compute(1040 + 100 * k, 30));
    events.push_back(span("kernel", "adam", 1080 + 100 * k, 10, "\"stream\":7"));
  }
  std::vector<trace::RankTrace> traces;
  traces.push_back(rank(0, events));
  const auto d = diagnose(std::move(traces));
  ASSERT_TRUE(d);
  EXPECT_EQ(d->ranks[0].steps.size(), 5u);
  EXPECT_EQ(d->ranks[0].steps[0].bill.total_ns(), 100'000);
}

TEST(Diagnose, TwoTracesOfOneRankAreRefused) {
  std::vector<trace::RankTrace> traces;
  traces.push_back(rank(1, {compute(0.5, 1)}));
  traces.push_back(rank(1, {compute(0.5, 1)}));
  const auto d = diagnose(std::move(traces));
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().message, "rank 1 stands in two traces");
}

// Two causes that hide each other: removing one of them saves 1, both 10; they share.
TEST(Shapley, CausesThatHideEachOtherShareWhatTheyHide) {
  const auto value = shapley(2, [](unsigned mask) { return mask == 3 ? 0.0 : mask == 0 ? 10.0 : 9.0; });
  EXPECT_DOUBLE_EQ(value[0], 5);
  EXPECT_DOUBLE_EQ(value[1], 5);
}

// Two stages, one micro-batch. By hand: f0 1 s, f1 3 s, b1 3 s, b0 1 s, so a step is 8 s; with every forward and backward at
// its mean of 2 s a chain of four is 8 s too: a heavy stage costs nothing where nothing overlaps.
TEST(Stragglers, AChainOfOneMicroBatchHasNoStraggler) {
  const std::string csv =
      "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
      "0,0,0,7,forward-compute,0,1,0,0,0,0\n0,0,0,7,forward-send,1,0,0,-1,-1,-1\n0,1,1,7,forward-recv,0,1,0,-1,-1,-1\n"
      "0,1,1,7,forward-compute,1,3,0,0,0,1\n0,1,1,7,backward-compute,4,3,0,0,0,1\n0,1,1,7,backward-send,7,0,0,-1,-1,-1\n"
      "0,0,0,7,backward-recv,1,6,0,-1,-1,-1\n0,0,0,7,backward-compute,7,1,0,0,0,0\n";
  const auto timeline = trace::read_op_timeline_text(csv, "t.csv");
  ASSERT_TRUE(timeline) << format(timeline.error());
  const auto r = find_stragglers(*timeline);
  ASSERT_TRUE(r) << format(r.error());
  EXPECT_NEAR(r->measured_s, 8, 1e-9);
  EXPECT_NEAR(r->without_delay_s, 8, 1e-9);
  EXPECT_NEAR(r->ideal_s, 8, 1e-9);
  EXPECT_EQ(r->steps[0].number, 7);
}

TEST(Hang, ARankWithNothingPendingStoppedItsHost) {
  const std::string config = R"("pg_config": {"1": {"name": "1", "desc": "TP", "ranks": "[0, 1]"}})";
  const auto waiting = trace::read_flight_text("{" + config + R"(, "entries": [{"process_group": ["1", "TP"], "collective_seq_id": 5,
      "profiling_name": "nccl:all_reduce", "state": "scheduled", "is_p2p": false}]})", "dump_0");
  const auto silent = trace::read_flight_text("{" + config + R"(, "entries": []})", "dump_1.json");
  ASSERT_TRUE(waiting && silent);
  const auto report = find_hang({*waiting, *silent});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->faulty.size(), 1u);
  EXPECT_EQ(report->faulty[0].rank, 1);
  EXPECT_EQ(report->faulty[0].kind, "host-stopped");
  EXPECT_EQ(report->verdict, "The job waits for rank 1: the host no longer issues anything");
  EXPECT_EQ(report->pending.at(0).missing, std::vector<int>{1});
}

TEST(Hang, APickleThatWouldBuildAnObjectIsRefused) {
  const auto dump = trace::read_flight_text(std::string("\x80\x02") + "cos\nsystem\n.", "dump_0");
  ASSERT_FALSE(dump);
  EXPECT_NE(dump.error().message.find("not read, for safety"), std::string::npos);
}

std::string megatron_log(int steps, double (*seconds)(int)) {
  std::string text;
  for (int k = 1; k <= steps; ++k) {
    text += " iteration " + std::to_string(k) + "/ 500 | consumed samples: 8 | elapsed time per iteration (ms): " + std::to_string(1000 * seconds(k)) +
            " | throughput per GPU (TFLOP/s/GPU): 401.5 | loss: 2.1 |\n    forward-compute ................................: (1000.0, 1500.0)\n";
  }
  return text;
}

TEST(Logs, AStepTimeThatStaysHigherIsAChangeOfLevel) {
  const auto log = trace::read_trainer_text(megatron_log(40, [](int k) { return k < 25 ? 1.0 : 1.3; }), "log");
  ASSERT_TRUE(log) << format(log.error());
  const auto r = find_trend(*log);
  ASSERT_TRUE(r) << format(r.error());
  EXPECT_EQ(r->change_step, 25);
  EXPECT_EQ(r->causes.front().id, "level-change");
  EXPECT_NEAR(r->causes.front().cost_s, 0.3 * 16 / 40, 1e-9);
  EXPECT_EQ(r->timers.at(0).name, "forward-compute");
  EXPECT_DOUBLE_EQ(r->timers.at(0).most_s, 1.5);
}

TEST(Logs, SlowStepsAtEqualDistancesAreAPeriodicStall) {
  const auto log = trace::read_trainer_text(megatron_log(40, [](int k) { return k % 10 == 0 ? 5.0 : 1.0; }), "log");
  ASSERT_TRUE(log);
  const auto r = find_trend(*log);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->stall_period, 10);
  EXPECT_EQ(r->change_step, -1);
  EXPECT_EQ(r->causes.front().id, "periodic-stall");
}

TEST(Logs, EveryTrainersLineIsRead) {
  const auto steps = [](const char* text) { return trace::read_trainer_text(text, "log"); };
  EXPECT_DOUBLE_EQ(steps("steps: 10 loss: 1.2 iter time (s): 2.5 samples/sec: 102.4")->steps.at(0).seconds, 2.5);
  EXPECT_DOUBLE_EQ(steps("[titan] INFO - step: 10  loss: 8.1  memory: 40GiB(42%)  tps: 5,432  tflops: 250.5  mfu: 25.3%")->steps.at(0).rate, 5432);
  EXPECT_DOUBLE_EQ(steps("  2%|2   | 12/500 [00:24<16:16,  2.00s/it]")->steps.at(0).seconds, 2);
  EXPECT_DOUBLE_EQ(steps("[timer.py:260:stop] epoch=0/micro_step=100/global_step=50, RunningAvgSamplesPerSec=109.1, CurrSamplesPerSec=110.5")->steps.at(0).rate, 110.5);
  EXPECT_EQ(steps("Training epoch 0, iteration 9/99 | global_step: 9 | train_step_timing in s: 2.31 | consumed_samples: 80")->steps.at(0).step, 9);
  const auto old = steps(" iteration 5/ 10 | elapsed time per iteration (ms): 100.0 |\ntime (ms) | forward-compute: 60.0 | backward-compute: 40.0");
  EXPECT_EQ(old->timers.at(1).name, "backward-compute");
  EXPECT_DOUBLE_EQ(old->timers.at(1).most_s, 0.04);
  const auto bars = steps("Map: 100%|#| 4/4 [00:01<00:00,  3.0it/s]\r  2%|2| 12/500 [00:24<16:16,  2.00s/it]\nEval: 2/9 [00:01<00:00, 9.0it/s]");
  ASSERT_EQ(bars->steps.size(), 1u);  // the longest bar trains
  EXPECT_EQ(bars->steps.at(0).step, 12);
  const auto summary = steps("{'loss': 1.9, 'epoch': 0.5}\n{'train_runtime': '312.5', 'train_steps_per_second': 1.6, 'train_loss': 1.9}");
  EXPECT_DOUBLE_EQ(summary->mean_step_s, 0.625);
  EXPECT_EQ(summary->step_count, 500);
  EXPECT_DOUBLE_EQ(find_trend(*summary)->mean_s, 0.625);
  EXPECT_EQ(format(steps("hello").error()).substr(0, 48), "log: error: no line with a step's time or rate\n ");
}

}  // namespace
}  // namespace chokepoint::diagnose

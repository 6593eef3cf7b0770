// SPDX-License-Identifier: Apache-2.0
// Simulated steps written as traces and read back by diagnose: the bill must come back, and a planted fault must be
// named.
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/slow_link.hpp>
#include <chokepoint/report/simulate_view.hpp>
#include <chokepoint/trace/trace.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <optional>
#include <random>
#include <set>

#include "test_jobs.hpp"

namespace chokepoint::report {
namespace {

using engine::Imperfections;
using engine::Simulated;
using simulate::Bill;

parallel::Job job_on(const char* cluster, int hosts, const char* model, double batch) { return chokepoint::job_on(cluster, hosts, model, 4096, batch); }

Result<Simulated> simulated(const parallel::Job& job, const std::string& strategy,
                            const Imperfections& imperfections = {}) {
  TRY_INTO(const parallel::Strategy s, parallel::parse_strategy(strategy));
  engine::SimulateOptions options;
  options.imperfections = imperfections;
  return engine::simulate_step(simulate::Predictor(job), s, options);
}

/// Every rank's own file, read and diagnosed; with `network` against what the wiring gives.
diagnose::Diagnosis read_back(const parallel::Job& job, const Simulated& s, const collective::Network* network = nullptr) {
  std::vector<trace::RankTrace> traces;
  for (int rank = 0; rank < s.layout.ranks(); ++rank) {
    auto trace =
        trace::read_chrome_text(timeline_json(job, s, std::span(&s.run, 1), {rank}), "rank" + std::to_string(rank));
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
    EXPECT_EQ(trace->defects.dropped(), 0u);
    traces.push_back(std::move(*trace));
  }
  diagnose::Options options;
  options.network = network;
  options.gpus_per_host = s.layout.gpus_per_host;
  auto d = diagnose::diagnose(std::move(traces), options);
  EXPECT_TRUE(d) << (d ? "" : d.error().message);
  return std::move(*d);
}

double item(const diagnose::MeasuredBill& bill, Bill b, bool wait) {
  const auto i = static_cast<std::size_t>(b);
  return static_cast<double>(wait ? bill.wait_ns[i] : bill.ns[i]) * 1e-9;
}

TEST(Timeline, ReadsBackToTheBillOfTheSimulation) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 32);
  for (const char* strategy :
       {"tensor=2 pipeline=2 zero=1 microbatch=1", "pipeline=4 microbatch=1", "tensor=4 microbatch=1 recompute=full",
        "pipeline=2 virtual=2 microbatch=1", "tensor=2 context=2 microbatch=1"}) {
    const auto s = simulated(job, strategy);
    ASSERT_TRUE(s) << strategy << (s ? "" : s.error().message);
    const diagnose::Diagnosis d = read_back(job, *s);
    const diagnose::RankResult& rank = d.ranks[static_cast<std::size_t>(s->busiest_rank)];
    const auto mine = [&s](Bill b) { return s->bill[static_cast<std::size_t>(b)]; };
    const double rounding = 1e-4 * s->step_s;  // whole nanoseconds, some thousand events
    EXPECT_NEAR(static_cast<double>(rank.bill.total_ns()) * 1e-9, s->step_s, rounding) << strategy;
    // Kernels slowed by transfers beside them count as kernels in a trace, as that transfer in the simulation.
    const double kernels = mine(Bill::kCompute) + mine(Bill::kRecompute);
    const double measured = item(rank.bill, Bill::kCompute, false) + item(rank.bill, Bill::kRecompute, false);
    EXPECT_GE(measured, kernels - rounding) << strategy;
    EXPECT_LE(measured, kernels + mine(Bill::kDataReduce) + mine(Bill::kDataGather) + rounding) << strategy;
    EXPECT_NEAR(item(rank.bill, Bill::kOptimizer, false), mine(Bill::kOptimizer), rounding) << strategy;
    // Of two transfers at a time the one that began first owns it, which may be a gradient's.
    const double beside = item(rank.bill, Bill::kDataReduce, false) + item(rank.bill, Bill::kDataGather, false);
    for (const Bill b : {Bill::kTensor, Bill::kContext}) {
      EXPECT_LE(item(rank.bill, b, false), mine(b) + rounding) << strategy << simulate::name(b);
      EXPECT_GE(item(rank.bill, b, false), mine(b) - beside - rounding) << strategy << simulate::name(b);
    }
    // Bubble is waiting for a neighbour's message, or for the others' gradient norm at the end.
    EXPECT_NEAR(item(rank.bill, Bill::kPipeline, true) + item(rank.bill, Bill::kDataReduce, true), mine(Bill::kBubble),
                0.01 * s->step_s)
        << strategy;
    EXPECT_NEAR(item(rank.bill, Bill::kHost, false), mine(Bill::kHost) + mine(Bill::kOther), rounding) << strategy;
  }
}

TEST(Timeline, GzipRoundTripsAndFilesOfManyRanksNameThem) {
  const parallel::Job job = job_on("dgx-a100", 1, "llama-2-7b", 16);
  const auto s = simulated(job, "tensor=2 microbatch=1");
  ASSERT_TRUE(s);
  const std::vector<int> ranks = timeline_ranks(*s, 64);
  EXPECT_EQ(ranks.size(), 8u);
  EXPECT_EQ(timeline_ranks(*s, 4).size(), s->fold.classes.size());
  const std::string text = timeline_json(job, *s, std::span(&s->run, 1), ranks);
  EXPECT_NE(text.find("\"name\":\"rank 7 (stage 0)\""), std::string::npos);
  const std::string packed = gzipped(text);
  ASSERT_GT(packed.size(), 18u);
  EXPECT_LT(packed.size(), text.size() / 5);
  EXPECT_EQ(static_cast<unsigned char>(packed[0]), 0x1f);
  EXPECT_EQ(static_cast<unsigned char>(packed[1]), 0x8b);
  EXPECT_EQ(packed, gzipped(text));
}

TEST(Timeline, PipelineChartHasARowPerStage) {
  const parallel::Job job = job_on("dgx-a100", 1, "llama-2-7b", 16);
  const auto s = simulated(job, "pipeline=4 microbatch=1");
  ASSERT_TRUE(s);
  const std::string svg = pipeline_svg(*s);
  for (const char* part : {"<svg", ">stage 0<", ">stage 3<", "forward 0, ", "backward 7, ", "</svg>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

/// One fault, how strong, and the cause that must come first.
struct Planted {
  Imperfections imperfections;
  std::string cause;
  std::string where;  ///< of the cause; empty: any
};

class Faults {
 public:
  explicit Faults(unsigned seed) : random_(seed) {}

  /// A random job with one fault that costs more than everything that holds back the healthy job, or nothing.
  std::optional<bool> try_one(std::string& told) {
    const int hosts = 1 << draw(0, 1);
    const parallel::Job job =
        job_on(draw(0, 1) == 0 ? "dgx-a100" : "dgx-h100", hosts, "llama-2-7b", 8 * hosts * (1 << draw(0, 1)));
    const int stages = 1 << draw(0, 2);
    const std::string strategy = "tensor=" + std::to_string(1 << draw(0, 1)) + " pipeline=" + std::to_string(stages) +
                                 " zero=" + std::to_string(draw(0, 1)) + " microbatch=1";
    const auto healthy = simulated(job, strategy);
    if (!healthy) return std::nullopt;
    const Planted fault = plant(*healthy, stages, hosts);
    if (fault.cause.empty()) return std::nullopt;
    const auto sick = simulated(job, strategy, fault.imperfections);
    EXPECT_TRUE(sick);
    const diagnose::Diagnosis before = read_back(job, *healthy);
    const double largest = before.causes.empty() ? 0 : before.causes.front().cost_s;
    if (sick->step_s - healthy->step_s < 1.5 * largest + 0.02 * healthy->step_s)
      return std::nullopt;  // not what holds this job back most
    const diagnose::Diagnosis d = read_back(job, *sick);
    if (d.causes.empty()) return false;
    told = strategy + " on " + std::to_string(hosts) + " hosts: planted " + fault.cause + " " + fault.where +
           ", named " + d.causes.front().id + " " + d.causes.front().where;
    return d.causes.front().id == fault.cause && (fault.where.empty() || d.causes.front().where == fault.where);
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

  Planted plant(const Simulated& healthy, int stages, int hosts) {
    Planted p;
    const int rank = draw(0, healthy.layout.ranks() - 1);
    switch (draw(0, 3)) {
      case 0:
        p.imperfections.slow_ranks = {{rank, real(1.3, 2.5)}};
        p.cause = "slow-rank";
        p.where = "rank " + std::to_string(rank);
        break;
      case 1:
        if (hosts < 2) break;
        p.imperfections.slow_hosts = {{draw(0, hosts - 1), real(0.005, 0.1)}};
        p.cause = "wire";
        break;
      case 2:
        if (stages < 2) break;
        p.imperfections.stage_load = real(1.3, 2);
        p.cause = "heavy-stage";
        break;
      default:
        p.imperfections.stalls = {{rank, real(0.2, 1) * healthy.step_s, 1}};
        p.cause = "host";
    }
    return p;
  }

  std::mt19937 random_;
};

/// Cases of the tests below; CHOKEPOINT_FAULT_CASES=500 is the full count of docs/validation-diagnosis.md.
int cases() {
  const char* asked = std::getenv("CHOKEPOINT_FAULT_CASES");
  return asked != nullptr ? std::max(1, std::atoi(asked)) : 40;
}

TEST(Timeline, DiagnoseNamesThePlantedFaultFirst) {
  Faults faults(2026);
  const int wanted = cases();
  int tried = 0;
  int named = 0;
  std::string misses;
  for (int round = 0; round < 10 * wanted && tried < wanted; ++round) {
    std::string told;
    const std::optional<bool> right = faults.try_one(told);
    if (!right) continue;
    ++tried;
    named += *right ? 1 : 0;
    if (!*right) misses += told + "\n";
  }
  std::cout << named << " of " << tried << " planted faults named first\n" << misses;
  EXPECT_EQ(tried, wanted);
  EXPECT_GE(named, 0.98 * tried - 0.5) << misses;
}

// What a layout costs by its nature (exposed transfers at full speed, launching, the copy of the loss, the logits that the
// last of even stages computes beside its layers) is no fault.
TEST(Timeline, HealthyJobsShowNoFaultAboveTwoPercent) {
  const std::set<std::string> faults{"slow-rank", "heavy-stage", "imbalance", "data-loader", "slow-wire", "accumulation-sync", "idle"};
  int told = 0;  // that the last stage has the head besides
  std::mt19937 random(7);
  const auto draw = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int tried = 0;
  std::string found;
  for (int round = 0; tried < cases() / 2 && round < 10 * cases(); ++round) {
    const int hosts = 1 << draw(0, 1);
    const parallel::Job job = job_on(draw(0, 1) == 0 ? "dgx-a100" : "dgx-h100", hosts, "llama-2-7b", 8 * hosts * (1 << draw(0, 1)));
    const std::string strategy = "tensor=" + std::to_string(1 << draw(0, 2)) + " pipeline=" + std::to_string(1 << draw(0, 2)) + " zero=" + std::to_string(draw(0, 3)) + " microbatch=1";
    const auto s = simulated(job, strategy);
    if (!s) continue;
    ++tried;
    const collective::Network network(job.cluster, job.accelerator);
    const diagnose::Diagnosis d = read_back(job, *s, &network);
    for (const Note& note : d.notes) told += note.text.find("for what it alone runs (output layer") != std::string::npos ? 1 : 0;
    for (const diagnose::Cause& c : d.causes) {
      if (faults.count(c.id) == 0 || c.cost_s <= 0.02 * d.measured_s) continue;
      found += strategy + " on " + std::to_string(hosts) + " hosts: " + c.id + " " + c.where + " " + std::to_string(100 * c.cost_s / d.measured_s) + " %\n";
    }
  }
  EXPECT_EQ(found, "");
  EXPECT_GT(told, 0);
  EXPECT_GT(tried, told);
}

// Four stages, a host each: the messages from 1 to 2 and from 2 to 3 pass host 2's NICs, those from 0 to 1 do not.
TEST(Timeline, ASlowHostsLinksAreNamedWhereTheWiringIsGiven) {
  const parallel::Job job = job_on("dgx-a100", 4, "llama-2-7b", 16);
  Imperfections slow;
  slow.slow_hosts = {{2, 0.02}};
  const auto s = simulated(job, "tensor=8 pipeline=4 microbatch=1", slow);
  ASSERT_TRUE(s);
  const collective::Network network(job.cluster, job.accelerator);
  diagnose::Diagnosis d = read_back(job, *s, &network);
  const auto link = diagnose::find_slow_link(d, job.cluster);
  ASSERT_TRUE(link);
  EXPECT_EQ(link->where.substr(0, 18), "the NICs of host 2") << link->where;
  diagnose::name_slow_link(d, job.cluster);
  ASSERT_FALSE(d.causes.empty());
  EXPECT_EQ(d.causes.front().id, "slow-wire");
  EXPECT_EQ(d.causes.front().where, link->where);
}

TEST(Timeline, OneFileOfAllRanksGivesTheSameDiagnosisAsAFileForEach) {
  const parallel::Job job = job_on("dgx-a100", 1, "llama-2-7b", 16);
  Imperfections slow;
  slow.slow_ranks = {{5, 1.4}};
  const auto s = simulated(job, "tensor=2 pipeline=2 microbatch=1", slow);
  ASSERT_TRUE(s);
  const diagnose::Diagnosis apart = read_back(job, *s);
  auto traces = trace::read_chrome_ranks_text(timeline_json(job, *s, std::span(&s->run, 1), timeline_ranks(*s, 64)), "step.json");
  ASSERT_TRUE(traces) << format(traces.error());
  ASSERT_EQ(traces->size(), 8u);
  const auto together = diagnose::diagnose(std::move(*traces));
  ASSERT_TRUE(together);
  EXPECT_EQ(together->choke_point, apart.choke_point);
  EXPECT_EQ(together->measured_s, apart.measured_s);
  ASSERT_EQ(together->causes.size(), apart.causes.size());
  for (std::size_t i = 0; i < apart.causes.size(); ++i) EXPECT_EQ(together->causes[i].cost_s, apart.causes[i].cost_s);
  for (std::size_t r = 0; r < 8; ++r) EXPECT_EQ(together->ranks[r].bill.ns, apart.ranks[r].bill.ns);
}

}  // namespace
}  // namespace chokepoint::report

// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/simulate/predict.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <gtest/gtest.h>
#include <numeric>

#include "test_jobs.hpp"

namespace chokepoint::simulate {
namespace {

Prediction predicted(const parallel::Job& job, const char* strategy) {
  const auto parsed = parallel::parse_strategy(strategy);
  EXPECT_TRUE(parsed) << strategy;
  const auto p = Predictor(job).predict(*parsed);
  EXPECT_TRUE(p) << (p ? "" : format(p.error()));
  return *p;
}

const char* const kStrategies[] = {"ddp microbatch=1", "zero=1 microbatch=1", "fsdp microbatch=1", "hsdp microbatch=1",
                                   "tensor=8 zero=1 microbatch=1", "tensor=4 pipeline=2 zero=1 microbatch=1 recompute=full",
                                   "pipeline=8 virtual=2 zero=1 microbatch=1", "context=2 zero=1 microbatch=1"};

TEST(Step, BillSumsToTheStepTimeAndNothingIsNegative) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 128);
  for (const char* strategy : kStrategies) {
    const Prediction p = predicted(job, strategy);
    EXPECT_NEAR(std::accumulate(p.bill.begin(), p.bill.end(), 0.0), p.step_time_s, 1e-12 * p.step_time_s) << strategy;
    for (const double item : p.bill) EXPECT_GE(item, 0) << strategy;
    EXPECT_LT(p.step_time_low_s, p.step_time_s);
    EXPECT_GT(p.step_time_high_s, p.step_time_s);
  }
}

TEST(Step, FasterWiresNeverLengthenAStep) {
  const parallel::Job job = job_on("pcie-a100-8", 2, "llama-2-7b", 4096, 128);
  collective::Scale faster;
  faster.nic = faster.pcie = faster.nvlink = faster.fabric = 4;
  for (const char* strategy : kStrategies) {
    const auto parsed = parallel::parse_strategy(strategy);
    const double before = Predictor(job).predict(*parsed)->step_time_s;
    EXPECT_LE(Predictor(job, faster).predict(*parsed)->step_time_s, before * (1 + 1e-12)) << strategy;
  }
}

TEST(Step, LaunchesThatBlockAddTheHostsTimeToTheDevices) {
  // Megatron-DeepSpeed's pipelines of 2022 ran under CUDA_LAUNCH_BLOCKING=1. A layer: 17 fused kernels and 5 of unfused
  // attention forward, twice as many backward, 19.5 us each in 2022 (25 us x 0.78), and Python once a pass. Four sequences
  // keep the device longer than that, so nothing of it shows where the host runs ahead.
  parallel::Job job = job_on("dgx-a100", 1, "gpt2-medium", 1024, 64);
  job.framework = parallel::Framework::kMegatronDeepspeed;
  job.attention = compute::AttentionKernel::kUnfused;
  job.year = 2022;
  const double layer = 3 * 22 * 25e-6 * 0.78 + Constants{}.python_forward_s + Constants{}.python_backward_s;
  const Prediction blocking = predicted(job, "zero=1 sharder=deepspeed microbatch=4");
  EXPECT_NEAR(blocking.item(Bill::kHost), 2 * 24 * layer, 1e-9);
  job.year = 2021;
  EXPECT_NEAR(predicted(job, "zero=1 sharder=deepspeed microbatch=4").item(Bill::kHost), 0, 1e-9);
}

TEST(Step, ZeroOfNanotronReducesOnceAndCopiesEverySlice) {
  // Nothing of the whole-buffer all-reduce hides, so more micro-steps to hide behind change neither it nor the gather; each
  // of the layers' six tensors comes in one slice per rank: 32 layers x 6 x 16 ranks.
  parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 16);
  job.framework = parallel::Framework::kNanotron;
  const Prediction one = predicted(job, "zero=1 microbatch=1");
  job.global_batch = 64;
  const Prediction four = predicted(job, "zero=1 microbatch=1");
  EXPECT_NEAR(one.item(Bill::kDataReduce), four.item(Bill::kDataReduce), 1e-9);
  EXPECT_NEAR(one.item(Bill::kDataGather), four.item(Bill::kDataGather), 1e-9);
  const double bytes = 4 * model::count_parameters(job.model).total;
  const collective::Network network(job.cluster, job.accelerator);
  EXPECT_NEAR(one.item(Bill::kDataReduce), network.cost(collective::Op::kAllReduce, bytes, {.ranks = 16, .ranks_per_host = 8}).time_s, 1e-9);
  EXPECT_GT(one.item(Bill::kDataGather), 32 * 6 * 16 * Constants{}.slice_copy_s);
}

TEST(Step, TheEmbeddingsGradientComesLastAndHidesBehindNothing) {
  // Ten times the vocabulary: DDP's last bucket is the whole embedding, fp32 here (autocast keeps fp32 parameters).
  parallel::Job job = job_on("dgx-a100", 2, "gpt2-medium", 1024, 64);
  job.framework = parallel::Framework::kPytorch;
  const double small = predicted(job, "ddp microbatch=4").item(Bill::kDataReduce);
  job.model.vocab *= 10;
  const double large = predicted(job, "ddp microbatch=4").item(Bill::kDataReduce);
  const double bytes = 4 * model::count_parameters(job.model).embedding;
  const collective::Network network(job.cluster, job.accelerator);
  const double alone_s = network.cost(collective::Op::kAllReduce, bytes, {.ranks = 16, .ranks_per_host = 8}).time_s;
  EXPECT_GE(large, alone_s);
  EXPECT_GT(large - small, 0.5 * alone_s);
}

TEST(Step, QuantisedCollectivesMoveAFractionThroughASlowNic) {
  // Two hosts with one 10 Gb/s port each: the wire is all that counts. Eight bits instead of sixteen halve the forward's
  // gather, the secondary shard takes the backward's off the wire, so a quarter remains; four bits of an eighth of the
  // gradients, all-to-all over two hosts (half stays), against sixteen bits of all, is a small part.
  parallel::Job job = job_on("hgx-a100-8", 2, "llama-3-8b", 4096, 16);
  for (auto& group : job.cluster.hosts) wiring::set_nics(group.host, *hardware::find_nic("ethernet-10g"));
  job.cluster.fabric.transport = topology::Transport::kTcp;
  job.framework = parallel::Framework::kDeepspeed;
  const auto item = [&](const char* strategy, Bill bill) { return predicted(job, strategy).bill[static_cast<std::size_t>(bill)]; };
  const double gather = item("zero=3 microbatch=1", Bill::kDataGather);
  const double reduce = item("zero=3 microbatch=1", Bill::kDataReduce);
  EXPECT_NEAR(item("zero=3 qwz=on microbatch=1", Bill::kDataGather) / gather, 0.5, 0.1);
  EXPECT_NEAR(item("zero=3 zero++=on microbatch=1", Bill::kDataGather) / gather, 0.25, 0.1);
  EXPECT_LT(item("zero=3 qgz=on microbatch=1", Bill::kDataReduce), 0.3 * reduce);
}

TEST(Step, OneGpuHasNoCommunication) {
  parallel::Job job = job_on("dgx-a100", 1, "gpt2", 1024, 8);
  job.gpus = 1;
  const Prediction p = predicted(job, "ddp microbatch=8");
  for (const Bill item : {Bill::kTensor, Bill::kPipeline, Bill::kDataGather, Bill::kDataReduce, Bill::kBubble, Bill::kExpert}) {
    EXPECT_EQ(p.item(item), 0) << name(item);
  }
}

TEST(Step, FullRecomputationAddsAboutAForward) {
  // Forward is a third of forward + backward, so recomputation adds about a third of the compute.
  const parallel::Job job = job_on("dgx-a100", 1, "llama-2-7b", 4096, 64);
  const Prediction p = predicted(job, "tensor=8 microbatch=1 recompute=full");
  EXPECT_NEAR(p.item(Bill::kRecompute) / p.item(Bill::kCompute), 1.0 / 3.0, 0.06);
}

TEST(Step, TwiceTheBatchTakesAboutTwiceAsLong) {
  const parallel::Job one = job_on("dgx-a100", 1, "llama-2-7b", 4096, 64);
  const parallel::Job two = job_on("dgx-a100", 1, "llama-2-7b", 4096, 128);
  const double ratio = predicted(two, "fsdp microbatch=1").step_time_s / predicted(one, "fsdp microbatch=1").step_time_s;
  EXPECT_GT(ratio, 1.9);
  EXPECT_LE(ratio, 2.0);
}

TEST(Step, TensorParallelismAcrossHostsRuinsTheStep) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 64);
  EXPECT_GT(predicted(job, "tensor=16 sp=off microbatch=1").item(Bill::kTensor),
            3 * predicted(job, "tensor=8 sp=off microbatch=1").item(Bill::kTensor) / 2);
}

TEST(Step, ReducingEveryMicroStepPaysTheSynchronisationEachTime) {
  // C060: 4 x (compute + sync) against 4 x compute + sync.
  const parallel::Job job = job_on("pcie-a100-8", 2, "gpt2-xl", 1024, 64);
  const Prediction each = predicted(job, "ddp microbatch=1 accumulate=4 sync=each");
  const Prediction last = predicted(job, "ddp microbatch=1 accumulate=4");
  EXPECT_NEAR(each.item(Bill::kDataReduce), 4 * last.item(Bill::kDataReduce), 1e-9);
}

TEST(Step, HybridShardingCanReduceOnceAStep) {
  // no_sync under HSDP: one reduction instead of four, at the price of whole gradients.
  const parallel::Job job = job_on("pcie-a100-8", 2, "llama-2-7b", 2048, 64);
  const Prediction each = predicted(job, "hsdp microbatch=1 accumulate=4");
  const Prediction last = predicted(job, "hsdp microbatch=1 accumulate=4 sync=last");
  EXPECT_NEAR(each.item(Bill::kDataReduce), 4 * last.item(Bill::kDataReduce), 0.02 * each.item(Bill::kDataReduce));
  EXPECT_GT(last.memory.reserved_bytes, each.memory.reserved_bytes);
}

TEST(Step, MeasuredStepGivesTheBandwidthThatExplainsIt) {
  const parallel::Job job = job_on("dgx-h100", 4, "llama-3-8b", 8192, 32);
  const Prediction p = predicted(job, "fsdp microbatch=1");
  const Implied implied = implied_bandwidth(job, p, 4 * p.step_time_s);
  EXPECT_TRUE(implied.explained_by_wires);
  EXPECT_LT(implied.bytes_per_s, 0.2 * implied.expected_bytes_per_s);
  EXPECT_FALSE(implied.inside_band);
  EXPECT_TRUE(implied_bandwidth(job, p, p.step_time_s).inside_band);
}

TEST(Step, LadderFallsFromThePeakToTheUsefulWork) {
  const parallel::Job job = job_on("dgx-a100", 2, "llama-2-7b", 4096, 128);
  for (const char* strategy : kStrategies) {
    const Prediction p = predicted(job, strategy);
    ASSERT_FALSE(p.ladder.empty());
    EXPECT_EQ(p.ladder.front().fraction, 1);
    for (std::size_t i = 1; i < p.ladder.size(); ++i) EXPECT_LE(p.ladder[i].fraction, p.ladder[i - 1].fraction) << strategy;
    EXPECT_NEAR(p.ladder.back().fraction, p.mfu, 1e-9) << strategy;
  }
}

TEST(ChokePoint, NamesTheNicThatASlowNetworkHas) {
  // FSDP over two hosts with one 10 Gb/s port each gathers 16 GB a pass through it: nothing else can matter as much.
  parallel::Job job;
  job.model = *model::find_model("llama-3-8b");
  job.cluster = *wiring::build_cluster("hgx-a100-8", 2);
  for (auto& group : job.cluster.hosts) wiring::set_nics(group.host, *hardware::find_nic("ethernet-10g"));
  job.cluster.fabric.transport = topology::Transport::kTcp;
  job.accelerator = *hardware::find_accelerator("a100-sxm4-80gb");
  job.gpus = 16;
  job.sequence = 4096;
  job.global_batch = 64;
  auto prediction = Predictor(job).predict(*parallel::parse_strategy("fsdp microbatch=1"));
  ASSERT_TRUE(prediction);
  find_choke_points(job, *prediction);
  ASSERT_FALSE(prediction->choke_points.empty());
  EXPECT_NE(prediction->choke_points[0].where.find("10 Gb/s NIC"), std::string::npos) << prediction->choke_points[0].where;
}

TEST(Step, OffloadUsesTheLinkBetweenGraceAndItsGpu) {
  // NVLink-C2C carries 450 GB/s each way, PCIe 5.0 x16 63 GB/s; the rest of the parts is the same generation.
  parallel::Job grace = job_on("dgx-h100", 1, "llama-2-7b", 4096, 64);
  const double over_pcie = predicted(grace, "zero=2 microbatch=1 offload=optimizer").item(Bill::kOffload);
  grace.accelerator.host_link_bytes_per_s = 450e9;
  EXPECT_LT(predicted(grace, "zero=2 microbatch=1 offload=optimizer").item(Bill::kOffload), over_pcie);
}

TEST(Step, ExpertCopiesCostMoreWithPrimitiveKernels) {
  parallel::Job job = job_on("dgx-h100", 1, "mixtral-8x7b", 4096, 64);
  job.framework = parallel::Framework::kTorchtitan;
  const double primitive = predicted(job, "fsdp expert=8 microbatch=1").item(Bill::kCompute);
  job.token_once_per_host = true;  // DeepEP sorts with kernels of its own
  EXPECT_LT(predicted(job, "fsdp expert=8 microbatch=1").item(Bill::kCompute), primitive);
}

}  // namespace
}  // namespace chokepoint::simulate

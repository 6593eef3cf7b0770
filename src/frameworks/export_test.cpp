// SPDX-License-Identifier: Apache-2.0
// Writing a strategy and reading it back gives the same strategy, for every framework and whatever strategy is legal.
#include <chokepoint/frameworks/export.hpp>
#include <chokepoint/frameworks/frameworks.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace chokepoint::frameworks {
namespace {

using parallel::Strategy;

parallel::Job job_of(const std::string& model, int hosts) {
  parallel::Job job;
  job.model = *model::find_model(model);
  job.cluster = *wiring::build_cluster("dgx-h100", hosts);
  job.accelerator = *hardware::find_accelerator("h100-sxm5-80gb");
  job.gpus = 8 * hosts;
  job.sequence = 4096;
  job.global_batch = 128;
  return job;
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool coin() { return below(2) == 1; }
  int power(int most) { return 1 << below(most + 1); }

 private:
  std::mt19937 random_;
};

Strategy random_strategy(Draw& draw, const parallel::Job& job) {
  Strategy s;
  s.tensor = draw.power(3);
  s.pipeline = draw.power(2);
  s.virtual_stages = s.pipeline > 1 ? draw.power(2) : 1;
  s.context = draw.power(1);
  s.expert = job.model.moe ? draw.power(2) : 1;
  s.data = 0;
  s.accumulate = 0;
  s.micro_batch = draw.power(2);
  s.sequence_parallel = s.tensor > 1 && draw.coin();
  s.zero = draw.below(4);
  constexpr parallel::Sharder kShardersOfStage1[] = {parallel::Sharder::kMegatronOptimizer,
                                                     parallel::Sharder::kDeepspeed};
  s.sharder = s.zero == 0   ? parallel::Sharder::kDdp
              : s.zero == 1 ? kShardersOfStage1[draw.below(2)]
              : draw.coin() ? parallel::Sharder::kFsdp
                            : parallel::Sharder::kDeepspeed;
  if (s.zero == 3 && draw.coin()) s.shard_ranks = draw.power(2);
  if (s.zero == 3 && s.sharder == parallel::Sharder::kDeepspeed)
    s.quantised_gathers = draw.coin(), s.secondary_shard = draw.coin(), s.quantised_reduction = draw.coin();
  s.reshard_after_forward = s.zero != 2 && (s.zero < 3 || draw.coin());
  s.recompute = static_cast<parallel::Recompute>(draw.below(3));
  s.offload = static_cast<parallel::Offload>(std::max(0, draw.below(8) - 3));
  s.schedule = s.virtual_stages > 1 ? parallel::Schedule::kInterleaved
               : draw.coin()        ? parallel::Schedule::kOneForwardOneBackward
                                    : parallel::Schedule::kGpipe;
  if (s.pipeline == 1) s.schedule = parallel::Schedule::kOneForwardOneBackward;
  s.overlap_grad_reduce = draw.coin();
  s.overlap_param_gather = draw.coin();
  s.overlap_tensor = s.tensor > 1 && draw.coin();
  s.sync_last_only = s.zero == 3 && draw.coin();
  s.sync_every_micro_step = s.zero < 3 && draw.coin();
  if (s.pipeline > 1 && draw.below(4) == 0) {
    s.stage_layers = parallel::layers_per_stage(job, s);
    --s.stage_layers.front();
    ++s.stage_layers.back();
  }
  return s;
}

Open files_of(const Export& written) {
  return [files = written.files](const std::string& path) -> Result<std::string> {
    for (const File& file : files) {
      if (file.name == path) return file.text;
    }
    return fail("no such file: " + path);
  };
}

void check_round_trip(const parallel::Job& job, const Strategy& asked, Target target, int& written_count) {
  const auto written = export_settings(job, asked, target);
  if (!written) return;  // the framework has nothing like it, and says so
  ++written_count;
  auto reading = read(written->files.front().text, written->files.front().name, files_of(*written));
  ASSERT_TRUE(reading) << format(reading.error()) << written->files.front().text;
  parallel::Job again = job;
  again.global_batch = 1;
  const auto settled = settle(*reading, again, false);
  ASSERT_TRUE(settled) << format(settled.error()) << parallel::to_text(asked) << "\n" << written->files.front().text;
  const auto back = parallel::completed(again, *settled);
  ASSERT_TRUE(back) << format(back.error()) << written->files.front().text;
  const auto expressed = parallel::completed(job, written->expressed);
  ASSERT_TRUE(expressed) << format(expressed.error());
  EXPECT_EQ(parallel::to_text(*back), parallel::to_text(*expressed)) << name(target) << "\n"
                                                                     << written->files.front().text;
  EXPECT_TRUE(*back == *expressed) << name(target) << ": " << parallel::to_text(*back) << "\n"
                                   << written->files.front().text << written->files.back().text;
  EXPECT_EQ(again.global_batch, job.global_batch);
  if (parallel::to_text(*expressed) != parallel::to_text(asked)) {
    const bool said = !written->notices.empty() || asked.accumulate == 1 || asked.zero == 0;
    EXPECT_TRUE(said) << name(target) << ": " << parallel::to_text(asked) << " became "
                      << parallel::to_text(*expressed);
  }
  for (const Setting& setting : reading->settings)
    EXPECT_NE(setting.use, Use::kUnknown) << name(target) << " " << setting.key;
}

void round_trips(const std::string& model, Target target, int wanted) {
  const parallel::Job job = job_of(model, 4);
  Draw draw(static_cast<unsigned>(target) + 1);
  int written = 0;
  for (int i = 0; i < 4000 && written < wanted && !testing::Test::HasFailure(); ++i) {
    const auto legal = parallel::completed(job, random_strategy(draw, job));
    if (legal) check_round_trip(job, *legal, target, written);
  }
  EXPECT_EQ(written, wanted);
}

TEST(Export, MegatronReadsBack) { round_trips("llama-3-8b", Target::kMegatron, 150); }
TEST(Export, MegatronReadsBackWithExperts) { round_trips("mixtral-8x7b", Target::kMegatron, 60); }
TEST(Export, NemoReadsBack) { round_trips("llama-3-8b", Target::kNemo, 100); }
TEST(Export, TorchtitanReadsBack) {
#if !__has_include(<toml++/toml.h>)
  GTEST_SKIP() << "built without toml++";
#endif
  round_trips("llama-3-8b", Target::kTorchtitan, 100);
}
TEST(Export, DeepspeedReadsBack) { round_trips("llama-3-8b", Target::kDeepspeed, 100); }
TEST(Export, AccelerateReadsBack) { round_trips("llama-3-8b", Target::kAccelerate, 60); }

TEST(Export, TheModelReadsBackExactly) {
  for (const char* name : {"llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gpt3-13b", "qwen2.5-7b", "nemotron-3-nano", "nemotron-3-super"}) {
    parallel::Job job = job_of(name, 1);
    Strategy s;
    s.data = 8;
    s.accumulate = 16;
    const auto written = export_settings(job, s, Target::kMegatron);
    ASSERT_TRUE(written);
    const auto reading = read(written->files.front().text, "train.sh", files_of(*written));
    ASSERT_TRUE(reading && reading->model) << name;
    EXPECT_EQ(model::count_parameters(*reading->model).total, model::count_parameters(job.model).total) << name;
    EXPECT_TRUE(reading->model->kinds() == job.model.kinds()) << name;
    EXPECT_EQ(model::count_parameters(*reading->model).further, model::count_parameters(job.model).further) << name;
    EXPECT_TRUE(written->notices.empty()) << name << ": " << written->notices.front();
  }
}

TEST(Export, WhatAFrameworkHasNotIsRefusedWithAWayOut) {
  const parallel::Job job = job_of("llama-3-8b", 1);
  Strategy s;
  s.pipeline = 2;
  s.data = 4;
  s.accumulate = 32;
  const auto written = export_settings(job, s, Target::kDeepspeed);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message,
            "DeepSpeed's JSON has no settings for pipeline parallelism: its stages are written in the model's code");
  EXPECT_FALSE(written.error().notes.empty());
}

TEST(Export, HostfileCountsEveryGpuOnce) {
  EXPECT_EQ(hostfile(job_of("llama-3-8b", 2)), "host-1 slots=8\nhost-2 slots=8\n");
}

TEST(Export, RankMapPutsTensorFastestAndPipelineSlowest) {
  const parallel::Job job = job_of("llama-3-8b", 1);
  Strategy s;
  s.tensor = 2;
  s.pipeline = 2;
  s.data = 2;
  EXPECT_EQ(rank_map(job, s),
            "rank,host,local_rank,tensor,context,data,pipeline\n0,host-1,0,0,0,0,0\n1,host-1,1,1,0,0,0\n2,host-1,2,0,0,"
            "1,0\n3,host-1,3,1,0,1,0\n"
            "4,host-1,4,0,0,0,1\n5,host-1,5,1,0,0,1\n6,host-1,6,0,0,1,1\n7,host-1,7,1,0,1,1\n");
}

TEST(Export, VariablesComeOnlyWithAReason) {
  const parallel::Job job = job_of("llama-3-8b", 1);
  Strategy s;
  s.data = 8;
  EXPECT_TRUE(environment(job, s, Target::kMegatron).empty());
  s.tensor = 8;
  s.data = 1;
  ASSERT_EQ(environment(job, s, Target::kMegatron).size(), 1u);
  EXPECT_EQ(environment(job, s, Target::kMegatron).front().name, "CUDA_DEVICE_MAX_CONNECTIONS");
}

TEST(Hostfile, ListsHostsLeafByLeafWhereTheyFillSeveral) {
  parallel::Job job = job_of("llama-3-8b", 4);
  job.cluster.fabric.hosts_per_leaf = 2;
  EXPECT_EQ(hostfile(job), "# leaf 1\nhost-1 slots=8\nhost-2 slots=8\n# leaf 2\nhost-3 slots=8\nhost-4 slots=8\n");
  job.cluster.fabric.hosts_per_leaf = 4;
  EXPECT_EQ(hostfile(job), "host-1 slots=8\nhost-2 slots=8\nhost-3 slots=8\nhost-4 slots=8\n");
}

TEST(Environment, SaysWhatNcclCannotKnowOfTheNetwork) {
  parallel::Job job = job_of("llama-3-8b", 2);
  const auto value_of = [&job](std::string_view name) -> std::string {
    for (const Variable& v : environment(job, {}, Target::kTorchtitan)) {
      if (v.name == name) return v.value;
    }
    return "";
  };
  job.cluster.fabric.kind = topology::FabricKind::kFatTree;
  job.cluster.fabric.transport = topology::Transport::kRoce;
  job.year = 2023;
  EXPECT_EQ(value_of("NCCL_IB_GID_INDEX"), "3");
  job.year = 2026;
  EXPECT_EQ(value_of("NCCL_IB_GID_INDEX"), "");
  job.cluster.fabric.transport = topology::Transport::kEfa;
  EXPECT_EQ(value_of("FI_PROVIDER"), "efa");
  // One host: nothing leaves it.
  job.gpus = 8;
  EXPECT_EQ(value_of("FI_PROVIDER"), "");
}

}  // namespace
}  // namespace chokepoint::frameworks

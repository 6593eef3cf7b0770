// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/frameworks/frameworks.hpp>
#include <chokepoint/frameworks/not_settings.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

namespace chokepoint::frameworks {
namespace {

/// A file reader over texts in memory.
Open files(std::map<std::string, std::string> texts) {
  return [texts = std::move(texts)](const std::string& path) -> Result<std::string> {
    const auto found = texts.find(path);
    if (found == texts.end()) return fail("no such file: " + path);
    return found->second;
  };
}

Reading must_read(std::string_view text, std::map<std::string, std::string> texts = {}) {
  const auto reading = read(text, "in", files(std::move(texts)));
  EXPECT_TRUE(reading) << (reading ? "" : format(reading.error()));
  return reading ? *reading : Reading{};
}

bool finds(const Reading& reading, std::string_view id) {
  return std::any_of(reading.findings.begin(), reading.findings.end(), [&](const Finding& f) { return f.id == id; });
}

Use use_of(const Reading& reading, std::string_view key) {
  for (const Setting& setting : reading.settings) {
    if (setting.key == key) return setting.use;
  }
  ADD_FAILURE() << "no setting " << key;
  return Use::kUnknown;
}

TEST(NotSettings, NamesWhatAFileIsInsteadAndWhatToDo) {
  const auto said = [](std::string_view text) {
    const auto wrong = not_settings(text, "in");
    return wrong ? format(*wrong) : "";
  };
  EXPECT_EQ(said(" \n\n"), "in:1:1: error: is empty, expected a job or a framework's settings\n"
                            "  an interrupted download or a full disk leaves such a file: fetch it again\n");
  EXPECT_NE(said("<!DOCTYPE html>\n<html>").find("a web page (HTML)"), std::string::npos);
  EXPECT_NE(said("version https://git-lfs.github.com/spec/v1\noid sha256:0\n").find("git lfs pull"), std::string::npos);
  EXPECT_NE(said("\x89PNG\r\n").find("picture"), std::string::npos);
  EXPECT_NE(said("{\"model_type\": \"llama\"}").find("--model in"), std::string::npos);
  EXPECT_NE(said("import torch\n").find("Python source"), std::string::npos);
  EXPECT_EQ(said("model: llama-3-8b\n"), "");
}

std::string error_of(std::string_view text) {
  const auto reading = read(text, "in", [](const std::string& path) -> Result<std::string> { return fail("no such file: " + path); });
  return reading ? "" : format(reading.error());
}

TEST(Broken, JsonCutShortPointsAtTheBracketThatStaysOpen) {
  EXPECT_EQ(error_of("{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 3"),
            "in:2:23: error: not valid JSON: the '{' here is never closed\n"
            "  the file is cut short, or a bracket or quote is missing\n");
  EXPECT_EQ(error_of("{\"train_batch_size\": 8]}"), "in:1:23: error: not valid JSON: ']' closes nothing that is open\n");
}

TEST(Broken, TomlErrorsHaveLineAndColumn) {
  if (error_of("[training]\n").find("without toml++") != std::string::npos) GTEST_SKIP() << "built without toml++";
  EXPECT_EQ(error_of("[training]\nseq_len = = 3\n").substr(0, 28), "in:2:11: error: not valid TO");
  EXPECT_EQ(error_of("[training]\nx = 1\n[<a]\n").substr(0, 14), "in:3:2: error:");
}

constexpr std::string_view kArguments =
    "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
    "--vocab-size 50257 "
    "--micro-batch-size 2 --global-batch-size 64 --bf16 ";

std::string megatron(std::string_view more) {
  return "torchrun --nproc_per_node 8 pretrain_gpt.py " + std::string(kArguments) + std::string(more);
}

parallel::Job job_of(const Reading& reading, int gpus) {
  parallel::Job job;
  job.model = reading.model ? *reading.model : *model::find_model("llama-3-8b");
  job.gpus = gpus;
  job.sequence = 2048;
  return job;
}

parallel::Strategy must_settle(Reading& reading, int gpus) {
  parallel::Job job = job_of(reading, gpus);
  const auto strategy = settle(reading, job, false);
  EXPECT_TRUE(strategy) << (strategy ? "" : format(strategy.error()));
  return strategy ? *strategy : parallel::Strategy{};
}

TEST(Recognise, ByContent) {
  EXPECT_EQ(recognise("{\"zero_optimization\": {\"stage\": 2}}"), Format::kDeepspeedJson);
  EXPECT_EQ(recognise("# c\n[training]\nseq_len = 1\n"), Format::kTorchtitan);
  EXPECT_EQ(recognise("distributed_type: FSDP\n"), Format::kAccelerateYaml);
  EXPECT_EQ(recognise("model:\n  tensor_model_parallel_size: 2\n"), Format::kNemoYaml);
  EXPECT_EQ(recognise("#!/bin/sh\ntorchrun --nproc_per_node 8 train.py --bf16"), Format::kScript);
  EXPECT_EQ(recognise("--num-layers 2 --hidden-size 8"), Format::kScript);
}

TEST(Recognise, AJobFileIsNone) {
  EXPECT_FALSE(
      recognise("# chokepoint predict --json, or python x.py --y\nmodel: llama-3-8b\ncluster: dgx-h100\nbatch: 1\n"));
  EXPECT_FALSE(recognise("{\"hidden_size\": 8}"));
  EXPECT_FALSE(recognise(""));
}

TEST(Megatron, SizesGiveTheExactModel) {
  const Reading reading = must_read(megatron(""));
  ASSERT_TRUE(reading.model);
  // GPT-2 XL's relatives: 24 layers of 12 h^2 + 13 h, positions, vocabulary, final norm.
  const double h = 2048;
  EXPECT_EQ(model::count_parameters(*reading.model).total, 24 * (12 * h * h + 13 * h) + (2048 + 50257) * h + 2 * h);
  EXPECT_EQ(reading.sequence, 2048);
  EXPECT_EQ(reading.batch, 64);
  EXPECT_EQ(reading.gpus, 8);
}

TEST(Megatron, DegreesAndTheRestOfTheRanks) {
  Reading reading = must_read(megatron(
      "--tensor-model-parallel-size=2 --pipeline-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer "
      "--overlap-grad-reduce --overlap-param-gather"));
  const parallel::Strategy strategy = must_settle(reading, 8);
  EXPECT_EQ(parallel::to_text(strategy), "tensor=2 pipeline=2 data=2 zero=1 microbatch=2 accumulate=16");
}

TEST(Megatron, DegreesThatDoNotMultiplyAreAnErrorWithItsPlace) {
  Reading reading = must_read(megatron("--tensor-model-parallel-size 3"));
  parallel::Job job = job_of(reading, 8);
  const auto strategy = settle(reading, job, false);
  ASSERT_FALSE(strategy);
  EXPECT_EQ(
      strategy.error().message,
      "the degrees do not multiply to the world size: tensor 3 x pipeline 1 x context 1 = 3 does not divide 8 GPUs");
  EXPECT_EQ(strategy.error().pos.line, 1);
}

TEST(Megatron, FlagsThatDoNothingAreFindings) {
  EXPECT_TRUE(
      finds(must_read(megatron("--overlap-param-gather")), "overlap_param_gather_without_distributed_optimizer"));
  EXPECT_TRUE(finds(must_read(megatron("--sequence-parallel")), "sequence_parallel_without_tensor_parallel"));
  EXPECT_TRUE(finds(must_read(megatron("--tp-comm-overlap")), "tp_comm_overlap_without_sequence_parallel"));
  EXPECT_TRUE(
      finds(must_read(megatron("--recompute-granularity full --recompute-method uniform --recompute-activations")),
            "recompute_full_and_selective"));
  EXPECT_TRUE(finds(must_read(megatron("--recompute-method uniform")), "recompute_options_without_granularity"));
  EXPECT_TRUE(finds(must_read(megatron("--data-parallel-sharding-strategy optim")), "sharding_strategy_without_fsdp"));
  EXPECT_TRUE(finds(must_read(megatron("--distributed-backend gloo")), "backend_is_not_nccl"));
  EXPECT_TRUE(finds(must_read(megatron("--tensor-model-parallel-size 2")), "tensor_overlap_needs_one_connection"));
  EXPECT_TRUE(finds(must_read("export CUDA_DEVICE_MAX_CONNECTIONS=8\n" + megatron("--tensor-model-parallel-size 2")),
                    "tensor_overlap_needs_one_connection"));
}

TEST(Megatron, AGoodScriptHasNoFindings) {
  const Reading reading =
      must_read("export CUDA_DEVICE_MAX_CONNECTIONS=1\n" +
                megatron("--tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer "
                         "--overlap-grad-reduce --overlap-param-gather --recompute-activations"));
  EXPECT_TRUE(reading.findings.empty()) << reading.findings.front().what;
}

TEST(Megatron, EverySettingHasAFate) {
  const Reading reading =
      must_read(megatron("--lr 1e-4 --ddp-bucket-size 1000 --no-such-flag --recompute-activations"));
  EXPECT_EQ(use_of(reading, "lr"), Use::kNoEffect);
  EXPECT_EQ(use_of(reading, "ddp_bucket_size"), Use::kNotModelled);
  EXPECT_EQ(use_of(reading, "no_such_flag"), Use::kUnknown);
  EXPECT_EQ(use_of(reading, "recompute_activations"), Use::kUsed);
}

TEST(Megatron, ANumberThatIsAVariableSaysSo) {
  const auto reading = read(megatron("--tensor-model-parallel-size $TP"), "in", files({}));
  ASSERT_FALSE(reading);
  EXPECT_EQ(format(reading.error()),
            "in:1:" + std::to_string(megatron("").size() + 1) +
                ": error: tensor_model_parallel_size is '$TP', expected a whole number\n"
                "  the script does not set this variable: set it above, or write the number\n");
}

TEST(Megatron, UnevenStages) {
  // 24 layers with embedding and loss counted: 26 over 2 stages is 13 each, of which one is the embedding, one the
  // loss.
  Reading counted =
      must_read(megatron("--pipeline-model-parallel-size 2 --account-for-embedding-in-pipeline-split "
                         "--account-for-loss-in-pipeline-split"));
  EXPECT_TRUE(must_settle(counted, 8).stage_layers.empty());
  Reading first = must_read(megatron("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3"));
  EXPECT_EQ(must_settle(first, 8).stage_layers, (std::vector<int>{3, 7, 7, 7}));
  Reading layout =
      must_read(megatron("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*10|t*14L'"));
  EXPECT_EQ(must_settle(layout, 8).stage_layers, (std::vector<int>{10, 14}));
}

TEST(Megatron, LayersOfAVirtualStageGiveTheirNumber) {
  Reading reading = must_read(megatron("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3"));
  EXPECT_EQ(must_settle(reading, 8).virtual_stages, 4);  // 24 / 3 = 8 pieces on 2 stages
}

TEST(Deepspeed, StagesAndZeroPlusPlus) {
  Reading reading =
      must_read(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3, "bf16": {"enabled": true},
    "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8, "zero_quantized_weights": true, "offload_param": {"device": "cpu"}}})");
  const parallel::Strategy strategy = must_settle(reading, 8);
  EXPECT_EQ(parallel::to_text(strategy),
            "data=8 zero=3 qwz=on hpz=on microbatch=2 accumulate=3 sync=each offload=params");
}

TEST(Deepspeed, OverlapDependsOnTheStageWhereNothingIsSaid) {
  EXPECT_FALSE(must_read(R"({"zero_optimization": {"stage": 2}})").strategy.overlap_grad_reduce);
  EXPECT_TRUE(must_read(R"({"zero_optimization": {"stage": 3}})").strategy.overlap_grad_reduce);
}

TEST(Deepspeed, BatchArithmeticThatDisagrees) {
  Reading reading =
      must_read(R"({"train_batch_size": 100, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})");
  parallel::Job job = job_of(reading, 8);
  (void)settle(reading, job, false);
  EXPECT_TRUE(finds(reading, "batch_arithmetic_disagrees"));  // 2 x 3 x 8 = 48
}

TEST(Deepspeed, TheMissingFactorFollows) {
  Reading reading =
      must_read(R"({"train_batch_size": 96, "gradient_accumulation_steps": 3, "zero_optimization": {"stage": 1}})");
  EXPECT_EQ(must_settle(reading, 8).micro_batch, 4);  // 96 / (3 x 8)
}

TEST(Deepspeed, AutoIsNotedAndTakenFromTheTrainer) {
  Reading reading = must_read(
      "deepspeed --num_gpus 8 train.py --deepspeed ds.json --per_device_train_batch_size 4 "
      "--gradient_accumulation_steps 2 "
      "--gradient_checkpointing --bf16",
      {{"ds.json",
        R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}})"}});
  EXPECT_EQ(parallel::to_text(must_settle(reading, 8)),
            "data=8 zero=2 microbatch=4 accumulate=2 sync=each recompute=full overlap-reduce=off");
  EXPECT_EQ(reading.dtype, hardware::Dtype::kBf16);
}

TEST(Deepspeed, AFileThatIsNotThereIsNamed) {
  const auto reading = read("deepspeed train.py --deepspeed ds.json --bf16", "in", files({}));
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().message, "the settings name 'ds.json', which cannot be read");
}

class Torchtitan : public testing::Test {
 protected:
  void SetUp() override {
#if !__has_include(<toml++/toml.h>)
    GTEST_SKIP() << "built without toml++";
#endif
  }
};

TEST_F(Torchtitan, BothDialectsOfDegrees) {
  Reading old = must_read(
      "[training]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 2\nbatch_size = 4\nseq_len = 2048\n"
      "[experimental]\npipeline_parallel_degree = 1\n");
  EXPECT_EQ(parallel::to_text(must_settle(old, 8)),
            "tensor=2 data=4 fsdp microbatch=4 accumulate=1 recompute=selective");
  Reading newer = must_read(
      "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b "
      "--parallelism.tensor_parallel_degree 2 "
      "--training.num_tokens_per_microbatch_per_dp_rank 8192 --training.max_context_length 2048 --compile.enable "
      "--parallelism.fsdp_reshard_after_forward never");
  ASSERT_TRUE(newer.model_name);
  EXPECT_EQ(model::find_model(*newer.model_name)->name, "llama-3-8b");
  EXPECT_EQ(newer.compiled, true);
  EXPECT_EQ(parallel::to_text(must_settle(newer, 8)), "tensor=2 data=4 fsdp reshard=off microbatch=4 accumulate=1");
}

TEST_F(Torchtitan, BytesThatAreNoTextAreRefused) {
  const auto reading = read("[training]\nseq\xff_len = 1\n[#\xc0]\n", "a.toml", files({}));
  ASSERT_FALSE(reading);
  EXPECT_EQ(format(reading.error()), "a.toml:2: error: holds a byte that is no UTF-8 text, expected a TOML file\n");
}

TEST_F(Torchtitan, ABrokenFileIsShownWithItsPlace) {
  const auto reading = read("[training]\nseq_len =\n", "a.toml", files({}));
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().pos.line, 2);
}

TEST_F(Torchtitan, ATableWithoutANameIsRefused) {
  for (const char* header : {"[<a]", "[#a]", "[[=]]", "[ ]", "[a.]", "[a.=]"}) {
    EXPECT_FALSE(read(std::string("[training]\nseq_len = 1\n") + header + "\n", "a.toml", files({}))) << header;
  }
}

TEST_F(Torchtitan, ReplicasTimesShardsMustBeTheRest) {
  Reading reading = must_read(
      "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 8\n[training]\nlocal_batch_size "
      "= 1\n");
  EXPECT_EQ(must_settle(reading, 16).shard_ranks, 8);
  parallel::Job job = job_of(reading, 8);
  EXPECT_FALSE(settle(reading, job, false));
}

TEST_F(Torchtitan, EmbeddingAndHeadCountAsLayersOfAPipeline) {
  // 32 layers + 2 over 4 stages: 9, 9, 8, 8, less the embedding and the head.
  Reading reading = must_read("[parallelism]\npipeline_parallel_degree = 4\n[training]\nlocal_batch_size = 4\n");
  const parallel::Strategy strategy = must_settle(reading, 4);
  EXPECT_EQ(strategy.stage_layers, (std::vector<int>{8, 9, 8, 7}));
  EXPECT_EQ(strategy.accumulate, 4);
}

TEST(Accelerate, HybridShardsInsideAHost) {
  Reading reading = must_read(
      "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nmixed_precision: bf16\n"
      "fsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_activation_checkpointing: true\n");
  EXPECT_EQ(reading.gpus, 16);
  EXPECT_EQ(reading.strategy.shard_ranks, -1);
  EXPECT_EQ(reading.strategy.recompute, parallel::Recompute::kFull);
}

TEST(Accelerate, AccumulationSkipsTheReductionUnlessItIsToldNotTo) {
  const std::string line =
      "accelerate launch --config_file a.yaml train.py --per_device_train_batch_size 1 --gradient_accumulation_steps 4";
  const std::map<std::string, std::string> config = {{"a.yaml", "distributed_type: MULTI_GPU\nnum_processes: 8\n"}};
  EXPECT_FALSE(must_read(line, config).strategy.sync_every_micro_step);
  const Reading each = must_read(
      line + " --accelerator_config '{\"gradient_accumulation_kwargs\": {\"sync_each_batch\": true}}'", config);
  EXPECT_TRUE(each.strategy.sync_every_micro_step);
  EXPECT_TRUE(finds(each, "accumulation_without_no_sync"));
}

TEST(Deepspeed, MegatronsForkTakesTheLayoutFromTheArgumentsAndTheRestFromTheFileTheScriptWrites) {
  Reading reading = must_read(
      "STAGE=1\ncat <<EOT > ds.json\n{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, "
      "\"zero_optimization\": {\"stage\": $STAGE}}\nEOT\n" +
      megatron("--tensor-model-parallel-size 2 --deepspeed --deepspeed_config ds.json --zero-stage 1"));
  EXPECT_EQ(reading.software, parallel::Framework::kMegatronDeepspeed);
  EXPECT_EQ(parallel::to_text(must_settle(reading, 8)),
            "tensor=2 sp=off data=4 zero=1 sharder=deepspeed microbatch=2 accumulate=8");
}

TEST(Launcher, DisagreementWithSlurmIsAFinding) {
  const Reading reading = must_read("#SBATCH --nodes=4\n#SBATCH --gpus-per-node=4\n" + megatron("--bf16"));
  EXPECT_TRUE(finds(reading, "launcher_disagrees_with_slurm"));  // 8 processes on hosts of 4
}

TEST(Launcher, TasksOfSlurmAreRanksWhereNothingElseStartsThem) {
  const Reading reading =
      must_read("srun -N 4 --ntasks-per-node 8 python -u pretrain_gpt.py " + std::string(kArguments));
  EXPECT_EQ(reading.gpus, 32);
  EXPECT_EQ(reading.hosts, 4);
}

TEST(Environment, WhatMakesJobsSlowIsNamed) {
  EXPECT_TRUE(finds(must_read("export NCCL_P2P_DISABLE=1\n" + megatron("")), "nccl_p2p_disabled"));
  EXPECT_TRUE(finds(must_read("NCCL_IB_DISABLE=1 " + megatron("")), "nccl_ib_disabled"));
}

TEST(Nemo, SectionsAreMegatronsWords) {
  Reading reading = must_read(
      "model:\n  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n  num_query_groups: 8\n  vocab_size: "
      "32000\n"
      "  tensor_model_parallel_size: 2\n  sequence_parallel: true\n  seq_length: 4096\ntrain:\n  micro_batch_size: 1\n "
      " global_batch_size: 32\n"
      "ddp:\n  overlap_grad_reduce: true\n  overlap_param_gather: true\n  use_distributed_optimizer: "
      "true\nmixed_precision: bf16_mixed\n");
  EXPECT_EQ(reading.dtype, hardware::Dtype::kBf16);
  EXPECT_EQ(reading.model->kv_heads, 8);
  EXPECT_EQ(parallel::to_text(must_settle(reading, 8)), "tensor=2 data=4 zero=1 microbatch=1 accumulate=8");
}

// Ways of writing launches that public repositories have.

TEST(Megatron, DeclaredArraysAndDefaultsOfALaunchScript) {
  Reading reading = must_read(
      "#SBATCH --nodes=2\n: \"${TENSOR:=4}\"\n: \"${LAYERS:=36}\"\n"
      "declare -a RUN=(\n  --nproc_per_node=8\n  --nnodes=$SLURM_JOB_NUM_NODES\n  --rdzv_endpoint=$(hostname)\n)\n"
      "declare -a ARGS=(\n  --num-layers $LAYERS --hidden-size 4096 --num-attention-heads 32 --seq-length 2048\n"
      "  --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 288 --vocab-size 50257 --fp16\n"
      "  --tensor-model-parallel-size $TENSOR --pipeline-model-parallel-size 2 )\n"
      "srun ${RESUME} -l \"${WRAP[@]}\" python -m torch.distributed.run \"${RUN[@]}\" /w/pretrain_gpt.py \"${ARGS[@]}\"\n");
  EXPECT_EQ(reading.framework, "Megatron-LM");
  EXPECT_EQ(reading.gpus, 16);
  ASSERT_TRUE(reading.model);
  EXPECT_EQ(reading.model->layers, 36);
  EXPECT_EQ(parallel::to_text(must_settle(reading, 16)),
            "tensor=4 sp=off pipeline=2 data=2 ddp microbatch=1 accumulate=144 overlap-reduce=off");
}

TEST(Megatron, ASlurmLineThatRunsAStringInAShell) {
  Reading reading = must_read(
      "#SBATCH -N 4\n#SBATCH --ntasks-per-node=8\n#SBATCH --gres=gpu:h100:8\nDIR=`pwd`\noptions=\" \\\n\t--tensor-model-parallel-size 8 "
      "\\\n\t" + std::string(kArguments) + "\"\nrun_cmd=\"python -u ${DIR}/pretrain_gpt.py $@ ${options}\"\n"
      "srun -l --output=$DIR/logs/%x.log sh -c \"${run_cmd}\"\n");
  EXPECT_EQ(reading.gpus, 32);
  EXPECT_EQ(reading.strategy.tensor, 8);
  for (const Setting& s : reading.settings) EXPECT_NE(s.use, Use::kUnknown) << s.key << " " << s.value;
}

TEST(Megatron, TheBranchThatIsRunDecides) {
  const std::string script =
      "AC=${6:-sel}\nif [ $AC = full ]; then\n  AC_OPTIONS=\" --recompute-method uniform --recompute-granularity full\"\n"
      "elif [ $AC = sel ]; then\n  AC_OPTIONS=\" --recompute-activations\"\nfi\n" + megatron("${AC_OPTIONS}");
  EXPECT_EQ(must_read(script).strategy.recompute, parallel::Recompute::kSelective);
  const std::string open =
      "if [ $SIZE = 8B ]; then\n  TP=2\nelif [ $SIZE = 70B ]; then\n  TP=8\nfi\n" + megatron("--tensor-model-parallel-size $TP --sequence-parallel");
  EXPECT_TRUE(finds(must_read(open), "script_branch_left_open"));
}

TEST(Trainer, AWorldSizeThatExprWorksOut) {
  const Reading reading = must_read(
      "#SBATCH --nodes=4\n#SBATCH --gpus-per-node=4\nGPUS_PER_NODE=4\nNNODES=$SLURM_NNODES\n"
      "NUM_PROCESSES=$(expr $NNODES \\* $GPUS_PER_NODE)\n"
      "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)\n"
      "LAUNCHER=\"accelerate launch --config_file a.yaml --main_process_ip $MASTER_ADDR --num_processes $NUM_PROCESSES "
      "--num_machines $NNODES --machine_rank \\$SLURM_PROCID \"\n"
      "CMD=\"train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 2 --bf16\"\n"
      "srun --jobid $SLURM_JOB_ID bash -c \"$LAUNCHER $CMD\" 2>&1 | tee -a log.txt\n",
      {{"a.yaml", "distributed_type: MULTI_GPU\nmixed_precision: bf16\ndowncast_bf16: 'no'\n"}});
  EXPECT_EQ(reading.gpus, 16);
  for (const Setting& s : reading.settings) EXPECT_NE(s.use, Use::kUnknown) << s.key << " " << s.value;
}

TEST(Trainer, LlamaFactorysAndAxolotlsFiles) {
  const Reading factory = must_read(
      "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: full\ndeepspeed: z3.json\n"
      "cutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nbf16: true\n",
      {{"z3.json", "{\"train_micro_batch_size_per_gpu\": \"auto\", \"zero_optimization\": {\"stage\": 3}}"}});
  EXPECT_EQ(factory.sequence, 2048);
  EXPECT_EQ(factory.strategy.zero, 3);
  EXPECT_EQ(factory.strategy.sharder, parallel::Sharder::kDeepspeed);
  EXPECT_EQ(factory.strategy.accumulate, 2);
  Reading axolotl = must_read(
      "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 4096\nsample_packing: true\nmicro_batch_size: 2\n"
      "gradient_accumulation_steps: 4\nbf16: auto\ngradient_checkpointing: true\nflash_attention: true\n"
      "fsdp_version: 2\nfsdp_config:\n  offload_params: false\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
      "  reshard_after_forward: true\n");
  EXPECT_EQ(axolotl.sequence, 4096);
  EXPECT_EQ(parallel::to_text(must_settle(axolotl, 8)), "data=8 fsdp microbatch=2 accumulate=4 sync=last recompute=full");
}

TEST(Accelerate, DeepspeedsOwnOverlapAndOldNames) {
  const auto stage = [](int n) {
    return must_read("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: " + std::to_string(n) + "\nnum_processes: 8\n");
  };
  EXPECT_TRUE(stage(3).strategy.overlap_grad_reduce);
  EXPECT_FALSE(stage(2).strategy.overlap_grad_reduce);
  const Reading old = must_read("distributed_type: FSDP\nfsdp_config:\n  fsdp_backward_prefetch_policy: NO_PREFETCH\n  fsdp_sharding_strategy: 1\n");
  EXPECT_TRUE(finds(old, "no_prefetch"));
}

TEST(Nemo, TheTokenizerInsideTheModelSaysItsEntries) {
  const Reading reading = must_read(
      "trainer:\n  devices: 8\n  num_nodes: 4\n  precision: bf16\nmodel:\n  micro_batch_size: 2\n  global_batch_size: 256\n"
      "  tensor_model_parallel_size: 4\n  encoder_seq_length: 4096\n  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n"
      "  max_position_embeddings: 4096\n  tokenizer:\n    library: megatron\n    type: GPT2BPETokenizer\n");
  ASSERT_TRUE(reading.model);
  EXPECT_EQ(reading.model->vocab, 50257);
  EXPECT_EQ(reading.gpus, 32);
}

TEST_F(Torchtitan, ItsOwnLauncherNamesTheFileInTheEnvironment) {
  const Reading reading = must_read(
      "NGPU=8 CONFIG_FILE=\"a.toml\" ./run_train.sh --model.flavor 8B --parallelism.tensor-parallel-degree 4 "
      "--parallelism.no-enable-sequence-parallel\n",
      {{"a.toml", "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n[parallelism]\n"
                  "tensor_parallel_degree = 8\n"}});
  EXPECT_EQ(reading.gpus, 8);
  EXPECT_EQ(reading.strategy.tensor, 4);
  EXPECT_FALSE(reading.strategy.sequence_parallel);
  ASSERT_TRUE(reading.model_name);
  EXPECT_EQ(model::find_model(*reading.model_name)->name, "llama-3-8b");
}

TEST_F(Torchtitan, PipelineMicroBatchesOfTheNewerKeysMakeTheStep) {
  // 65,536 tokens a micro-batch of 8,192 each: 8 sequences, 8 of them through the pipeline, on 2 x 2 ranks of data.
  Reading reading = must_read(
      "torchrun --nnodes 4 --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_70b "
      "--parallelism.tensor_parallel_degree=8 --parallelism.pipeline_parallel_degree=2 --parallelism.pipeline_parallel_schedule=ZBVZeroBubble "
      "--parallelism.num_pp_microbatches 8 --training.num_tokens_per_microbatch_per_dp_rank=65536 --training.max_context_length=8192\n");
  EXPECT_EQ(reading.strategy.accumulate, 8);
  EXPECT_EQ(reading.strategy.schedule, parallel::Schedule::kZeroBubbleV);
  EXPECT_EQ(reading.strategy.virtual_stages, 2);
}

TEST(TorchtitanStages, SplitPointsAreTaken) {
  // 32 layers: 0-9, 10-19, 20-27, 28-31.
  const std::string config = "[training]\nlocal_batch_size = 4\nseq_len = 2048\n[parallelism]\npipeline_parallel_degree = 4\n"
                             "pipeline_parallel_split_points = [\"layers.10\", \"layers.20\", \"layers.28\"]\n";
  if (!read(config, "in", files({}))) GTEST_SKIP() << "built without toml++";
  Reading reading = must_read(config);
  EXPECT_EQ(use_of(reading, "parallelism.pipeline_parallel_split_points"), Use::kUsed);
  EXPECT_EQ(must_settle(reading, 8).stage_layers, (std::vector<int>{10, 10, 8, 4}));
}

}  // namespace
}  // namespace chokepoint::frameworks

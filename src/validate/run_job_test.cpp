// SPDX-License-Identifier: Apache-2.0
#include "run_job.hpp"
#include "run_words.hpp"

#include <chokepoint/validate/validate.hpp>
#include <gmock/gmock.h>
#include <map>
#include <string>

namespace chokepoint::validate {
namespace {

using parallel::Framework;
using testing::HasSubstr;

/// A dense GPT row on two A100 hosts; `changes` replaces or adds fields.
RunFields fields(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> values = {
      {"n_layers", "24"}, {"hidden", "2048"}, {"n_heads", "16"}, {"vocab", "51200"}, {"mlp", "gelu"}, {"seq_len", "2048"},
      {"precision", "bf16"}, {"accelerator", "A100-SXM4-80GB"}, {"n_gpus", "16"}, {"gpus_per_node", "8"},
      {"intra_link", "NVLink3+NVSwitch"}, {"inter_link", "8xHDR200-IB per node"}, {"framework", "Megatron-LM"},
      {"source", "A paper, 2022"}, {"tp", "2"}, {"pp", "2"}, {"cp", "1"}, {"micro_batch", "2"}, {"global_batch", "64"},
      {"recompute", "full"}, {"shard", "none"}};
  for (const auto& [name, value] : changes) values[name] = value;
  std::string header, line;
  for (const auto& [name, value] : values) {
    header += (header.empty() ? "" : ",") + name;
    line += (line.empty() ? "\"" : ",\"") + value + "\"";
  }
  const auto table = CsvTable::parse(header + "\n" + line + "\n", "row.csv");
  EXPECT_TRUE(table);
  const auto row = read_run_fields(*table, table->rows()[0]);
  EXPECT_TRUE(row) << (row ? "" : format(row.error()));
  return row.value_or(RunFields{});
}

MappedRun mapped(const std::map<std::string, std::string>& changes) {
  auto run = map_run(fields(changes));
  EXPECT_TRUE(run) << (run ? "" : format(run.error()));
  return run.value_or(MappedRun{});
}

std::string refusal(const std::map<std::string, std::string>& changes) {
  const auto run = map_run(fields(changes));
  return run ? "mapped" : run.error().message;
}

std::string assumptions(const MappedRun& run) {
  std::string all;
  for (const Note& note : run.job.assumptions) all += note.text + "\n";
  return all;
}

TEST(MapRun, DerivesDataDegreeAndAccumulation) {
  // 16 GPUs / (2 x 2) = 4 replicas; 64 sequences / 4 replicas / 2 per micro-batch = 8 micro-steps.
  const MappedRun run = mapped({});
  EXPECT_EQ(run.strategy.data, 4);
  EXPECT_EQ(run.strategy.accumulate, 8);
  EXPECT_EQ(run.strategy.micro_batch, 2);
  EXPECT_EQ(run.job.model.ffn_hidden, 4 * 2048);
  EXPECT_EQ(run.job.model.head_dim, 128);
  EXPECT_EQ(run.job.cluster.host_count(), 2);
}

TEST(MapRun, DerivesTheBatchFromMicroBatchAndAccumulation) {
  const MappedRun run = mapped({{"global_batch", ""}, {"grad_accum", "3"}});
  EXPECT_DOUBLE_EQ(run.job.global_batch, 2 * 3 * 4);
  EXPECT_FALSE(run.batch_assumed);
}

TEST(MapRun, AnOpenDegreeFollowsFromTheOthers) {
  const MappedRun run = mapped({{"pp", ""}, {"dp", "2"}});  // 16 = 2 x pipeline x 2
  EXPECT_EQ(run.strategy.pipeline, 4);
}

TEST(MapRun, RefusesDegreesThatContradictTheGpus) {
  EXPECT_THAT(refusal({{"dp", "8"}}), HasSubstr("data degree 8 contradicts 16 GPUs"));
  EXPECT_THAT(refusal({{"tp", "3"}}), HasSubstr("does not divide 16 GPUs"));
}

TEST(MapRun, SaysWhatIsMissing) {
  EXPECT_THAT(refusal({{"accelerator", ""}}), HasSubstr("accelerator is not stated"));
  EXPECT_THAT(refusal({{"n_layers", ""}, {"hidden", ""}}), HasSubstr("nor a parameter count"));
}

TEST(MapRun, AdaptersLeaveTheWeightsFrozen) {
  EXPECT_TRUE(mapped({{"model", "Some 7B LoRA"}}).job.frozen_weights);
  EXPECT_FALSE(mapped({}).job.frozen_weights);
}

TEST(MapRun, OpenGpusAndSequenceAreAssumedAndNoted) {
  const MappedRun run = mapped({{"n_gpus", ""}, {"seq_len", ""}, {"params_b", "7"}});
  EXPECT_GE(run.job.gpus, 8);
  EXPECT_GE(run.job.sequence, 1024);
  EXPECT_THAT(assumptions(run), HasSubstr("GPUs not stated"));
  EXPECT_THAT(assumptions(run), HasSubstr("sequence length not stated"));
}

TEST(MapRun, HybridShardingStaysInsideTheHost) {
  const MappedRun run = mapped({{"shard", "hsdp"}, {"framework", "PyTorch FSDP"}, {"tp", "1"}, {"pp", "1"}});
  EXPECT_EQ(run.strategy.zero, 3);
  EXPECT_EQ(run.strategy.shard_ranks, 8);
  EXPECT_EQ(strategy_kind(run.strategy), "hsdp");
}

TEST(MapRun, ShardGradOpKeepsTheParametersAfterForward) {
  const MappedRun run = mapped({{"shard", "fsdp-shard-grad-op"}, {"framework", "PyTorch FSDP"}, {"tp", "1"}, {"pp", "1"}});
  EXPECT_EQ(run.strategy.zero, 3);
  EXPECT_FALSE(run.strategy.reshard_after_forward);
}

TEST(MapRun, MeasuredBandwidthGoesToTheCluster) {
  const MappedRun run = mapped({{"bw_all_reduce_GBs", "175.5"}, {"bw_intra_all_gather_GBs", "263"}});
  EXPECT_DOUBLE_EQ(run.job.cluster.measured.all_reduce.value(), 175.5e9);
  EXPECT_DOUBLE_EQ(run.job.cluster.measured.host_all_gather.value(), 263e9);
  EXPECT_FALSE(run.job.cluster.measured.all_gather.has_value());
}

TEST(MapRun, EveryDefaultIsNoted) {
  const MappedRun run = mapped({{"recompute", ""}, {"shard", ""}, {"precision", ""}, {"vocab", ""}, {"micro_batch", ""}});
  const std::string said = assumptions(run);
  for (const char* word : {"recomputation not stated", "sharding not stated", "precision not stated",
                           "vocabulary not stated", "micro-batch not stated"}) {
    EXPECT_THAT(said, HasSubstr(word));
  }
  EXPECT_TRUE(run.recompute_assumed);
}

TEST(MapRun, PlainMegatronReducesAfterTheBackwardAndCoreOverlaps) {
  EXPECT_FALSE(mapped({}).strategy.overlap_grad_reduce);
  EXPECT_TRUE(mapped({{"framework", "Megatron-LM (Megatron-Core)"}}).strategy.overlap_grad_reduce);
}

TEST(MapRun, StagesAsTheNotesDescribeThem) {
  // 30 layers over 8 stages: 4 each, the outer ones 3.
  const MappedRun run = mapped({{"n_layers", "30"}, {"pp", "8"}, {"tp", "1"},
                                {"notes", "Pure pipeline. First and last stage have one layer less."}});
  EXPECT_EQ(run.strategy.stage_layers, (std::vector<int>{3, 4, 4, 4, 4, 4, 4, 3}));
}

TEST(ModelOf, ShapeFromTheParameterCountAlone) {
  // 12 l h^2 with h = 128 l: h = cbrt(13e9 x 128 / 12) = 5,177 -> 5,120; (13e9 - 50,257 x 5,120) / (12 x 5,120^2) = 40.5
  std::vector<Note> notes;
  const auto model = model_of(fields({{"n_layers", ""}, {"hidden", ""}, {"n_heads", ""}, {"vocab", ""}, {"params_b", "13"}}), notes);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->hidden, 5120);
  EXPECT_EQ(model->layers, 41);
  EXPECT_EQ(model->heads, 40);
  EXPECT_NEAR(model::count_parameters(*model).total / 13e9, 1, 0.05);
}

TEST(ModelOf, UnstatedMlpFromTheParameterCount) {
  // Embedding 131,072 x 2,048 once, and 16 x (4 h^2 + 3 x h x 8,192): 1.342 B, as printed.
  std::vector<Note> notes;
  const auto model = model_of(fields({{"n_layers", "16"}, {"n_heads", "32"}, {"vocab", "131072"}, {"mlp", ""}, {"params_b", "1.34"}}), notes);
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->gated_mlp);
  EXPECT_EQ(model->ffn_hidden, 8192);
  EXPECT_TRUE(model->tied_embeddings);
}

TEST(ModelOf, TheWidthOfAGatedFamilyFollowsFromItsName) {
  // 12 h^2 a layer either way: two matrices of 4h, or three of 8/3 h. A Llama has the three.
  const std::map<std::string, std::string> open = {{"mlp", ""},        {"n_layers", "28"},  {"hidden", "3072"},
                                                   {"n_heads", "32"},  {"vocab", "131072"}, {"params_b", "3.57"}};
  auto named = open;
  named["model"] = "Llama-like 3.57B";
  EXPECT_EQ(mapped(open).job.model.ffn_hidden, 4 * 3072);
  EXPECT_EQ(mapped(named).job.model.ffn_hidden, 8192);
  EXPECT_TRUE(mapped(named).job.model.gated_mlp);
  // Llama 3: 3.5 h. 32 layers x (4 x 4096^2 + 3 x 4096 x 14336) + 2 x 131072 x 4096 = 8.86 B.
  named["n_layers"] = "32";
  named["hidden"] = "4096";
  named["params_b"] = "8.86";
  EXPECT_EQ(mapped(named).job.model.ffn_hidden, 14336);
}

TEST(ModelOf, ADenseFirstLayerAndSharedExpertsAreRead) {
  const std::map<std::string, std::string> mixture = {{"mlp", "swiglu"},      {"ffn_hidden", "8192"},
                                                      {"moe_experts", "16"},  {"moe_topk", "2"},
                                                      {"moe_ffn_hidden", "1024"}, {"model", "cut mixture (first layer dense)"},
                                                      {"notes", "top-2, shared expert ffn 512"}};
  const model::Model model = mapped(mixture).job.model;
  ASSERT_TRUE(model.moe);
  EXPECT_EQ(model.moe->first_layer, 1);
  EXPECT_EQ(model.moe->shared_ffn_hidden, 512);
}

TEST(MapRun, NoSequenceIsLongerThanTheTableOfPositions) {
  // GPT-2 XL has 1,024 learned positions; the usual length of 2023 and later is 4,096.
  const MappedRun run = mapped({{"model", "GPT-2 XL"}, {"n_layers", ""}, {"hidden", ""}, {"n_heads", ""}, {"vocab", ""}, {"tp", "1"},
                                {"pp", "1"}, {"seq_len", ""}, {"source", "A paper, 2024"}});
  EXPECT_EQ(run.job.sequence, 1024);
}

TEST(MapRun, SoftwareThatANoteNamesChangesWhatIsKept) {
  EXPECT_TRUE(mapped({{"notes", "Liger kernels"}}).job.fused_operators);
  EXPECT_FALSE(mapped({}).job.fused_operators);
  EXPECT_FALSE(mapped({{"framework", "Megatron-Bridge"}, {"precision", "bf16"}}).job.fp32_gradients);
  EXPECT_TRUE(mapped({}).job.fp32_gradients);
}

TEST(ModelOf, GatedMlpDefaultsToTwoThirds) {
  std::vector<Note> notes;
  const auto model = model_of(fields({{"hidden", "4096"}, {"n_heads", "32"}, {"mlp", "swiglu"}}), notes);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->ffn_hidden, 11008);  // Llama 7B
}

TEST(Words, Frameworks) {
  EXPECT_EQ(framework_from_words("Megatron-LM + DeepSpeed 3D"), Framework::kMegatronDeepspeed);
  EXPECT_EQ(framework_from_words("HF Trainer + DeepSpeed ZeRO-3"), Framework::kDeepspeed);
  EXPECT_EQ(framework_from_words("NeMo Automodel (PyTorch FSDP2)"), Framework::kTorchtitan);
  EXPECT_EQ(framework_from_words("metaseq (FSDP + Megatron TP)"), Framework::kPytorch);
  EXPECT_EQ(framework_from_words("MaxText (JAX)"), Framework::kMaxtext);
  EXPECT_FALSE(framework_from_words("in-house").has_value());
}

TEST(Words, Years) {
  RunFields row;
  row.source = "A summary 24.07, pre-training";
  EXPECT_EQ(year_from_words(row), 2024);
  row.source = "A paper (SC21)";
  row.notes = "commit abc (2023-05-03), seq 2048, 1920 sequences";
  EXPECT_EQ(year_from_words(row), 2023);
  row.notes = "2048 tokens, 2050 GPUs";
  EXPECT_FALSE(year_from_words(row).has_value());
}

TEST(Words, NumbersBesidePhrases) {
  EXPECT_EQ(number_after("x; hw_tflops_gpu=131. Next", "hw_tflops_gpu="), 131.0);
  EXPECT_EQ(number_before("about 2K tokens per GPU", "k tokens per gpu"), 2.0);
  EXPECT_FALSE(number_after("hw_tflops_gpu=n/a", "hw_tflops_gpu=").has_value());
}

TEST(Words, FlopConventions) {
  RunFields row;
  row.notes = "FLOPS=HARDWARE: multiply by 0.75 for model FLOPs";
  EXPECT_EQ(flops_counted(row), FlopsCounted::kHardware);
  row.notes = "model TFLOPS with causal attention, recompute excluded";
  EXPECT_EQ(flops_counted(row), FlopsCounted::kModelCausal);
  row.notes = "";
  EXPECT_EQ(flops_counted(row), FlopsCounted::kModel);
  EXPECT_EQ(flops_per_parameter_and_token("by 8*P*tokens/time").value(), 8);
}

}  // namespace
}  // namespace chokepoint::validate

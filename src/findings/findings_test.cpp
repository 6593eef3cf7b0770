// SPDX-License-Identifier: Apache-2.0
// Small inputs of our own, each with one fault or none.
#include <chokepoint/findings/findings.hpp>

#include <chokepoint/job/read_job.hpp>
#include <gtest/gtest.h>
#include <set>

namespace chokepoint::findings {
namespace {

struct Input {
  const char* file;
  std::string text;
};

assemble::Assembly assembled(const std::vector<Input>& inputs) {
  std::vector<wiring::Document> documents;
  for (const Input& input : inputs) {
    auto found = wiring::read_documents(input.text, input.file);
    EXPECT_TRUE(found) << input.file << (found ? "" : format(found.error()));
    if (found) documents.insert(documents.end(), found->begin(), found->end());
  }
  auto assembly = assemble::assemble(std::move(documents));
  EXPECT_TRUE(assembly);
  return assembly ? std::move(*assembly) : assemble::Assembly{};
}

std::vector<Finding> found_in(const std::string& text) { return check(assembled({{"in.txt", text}})); }

std::string first_id(const std::string& text) {
  const std::vector<Finding> found = found_in(text);
  return found.empty() ? "" : found.front().id;
}

TEST(Catalogue, EveryCheckSaysHowToMendAndVerify) {
  std::set<std::string_view> ids;
  for (const Check& check : catalogue()) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id;
    EXPECT_FALSE(check.fix.empty() || check.verify.empty() || check.source.empty() || check.title.empty()) << check.id;
  }
}

TEST(Findings, InactiveLinksAmongActiveOnesAreAFault) {
  const auto found = found_in("GPU 3: Tesla V100-SXM2-32GB (UUID: GPU-1)\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "nvlink-inactive");
  EXPECT_EQ(found[0].where, "GPU3");
  ASSERT_EQ(found[0].evidence.size(), 1U);
  EXPECT_EQ(found[0].evidence[0].line, 3);
}

std::string nvlink_of(const char* name, int gpus, int up, int all) {
  std::string text;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += "GPU " + std::to_string(gpu) + ": " + name + " (UUID: GPU-" + std::to_string(gpu) + ")\n";
    for (int link = 0; link < all; ++link) text += "\t Link " + std::to_string(link) + (link < up ? ": 26.562 GB/s\n" : ": <inactive>\n");
  }
  return text;
}

TEST(Findings, TwelveOfEighteenLinksOfAnNvlPairAreByDesign) { EXPECT_EQ(first_id(nvlink_of("NVIDIA H100 NVL", 2, 12, 18)), ""); }
TEST(Findings, NoLinkOnAPcieBoardIsByDesign) { EXPECT_EQ(first_id(nvlink_of("NVIDIA A100 80GB PCIe", 1, 0, 12)), ""); }
TEST(Findings, NoLinkOnAModuleIsAFault) { EXPECT_EQ(first_id(nvlink_of("NVIDIA H100 80GB HBM3", 1, 0, 18)), "nvlink-absent"); }

std::string smi(int generation, int width, const char* state, int utilization) {
  return "==============NVSMI LOG==============\nGPU 00000000:3B:00.0\n    Product Name                          : NVIDIA A100-PCIE-40GB\n    PCI\n        GPU Link Info\n            PCIe Generation\n"
         "                Max                       : 4\n                Current                   : " + std::to_string(generation) + "\n            Link Width\n                Max                       : 16x\n"
         "                Current                   : " + std::to_string(width) + "x\n    Performance State                     : " + state + "\n    Utilization\n        Gpu                               : " + std::to_string(utilization) + " %\n";
}

TEST(Findings, ARestingLinkIsNoFault) { EXPECT_EQ(first_id(smi(1, 16, "P8", 0)), ""); }
TEST(Findings, ANarrowLinkIsAFaultEvenAtRest) { EXPECT_EQ(first_id(smi(1, 8, "P8", 0)), "pcie-link-narrow"); }
TEST(Findings, ASlowLinkAtWorkIsAFault) { EXPECT_EQ(first_id(smi(2, 16, "P0", 97)), "pcie-link-slow"); }

std::string lspci(const char* access, const char* state) {
  return std::string("00:01.0 PCI bridge: Vendor Root\n\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00\n\t\tACSCtl:\t") + access +
         "\n01:00.0 3D controller: NVIDIA Corporation GA100\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n\t\tLnkSta:\t" + state + "\n";
}

TEST(Findings, AcsAboveAGpuIsAFault) {
  const auto found = found_in(lspci("SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+", "Speed 16GT/s, Width x16"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id, "acs-redirect");
  EXPECT_EQ(found[0].evidence[0].line, 4);
}
TEST(Findings, ClearedAcsAndARestingGpuAreNoFault) { EXPECT_EQ(first_id(lspci("SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd+", "Speed 2.5GT/s (downgraded), Width x16")), ""); }
TEST(Findings, LinkThatTrainedAtHalfWidth) { EXPECT_EQ(first_id(lspci("SrcValid+ ReqRedir-", "Speed 16GT/s, Width x8 (downgraded)")), "pcie-link-narrow"); }

TEST(Findings, SocketsNameTheSettingThatCausedThem) {
  const auto found = found_in("n0:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\nn0:1:2 [0] NCCL INFO Using network Socket\nn0:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 8[0] [send] via NET/Socket/0\n");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id, "socket-fallback");
  EXPECT_NE(found[0].what.find("NCCL_IB_DISABLE=1"), std::string::npos);
  EXPECT_EQ(found[0].evidence[0].line, 2);
}

TEST(Findings, GpuDirectOnEveryConnectionIsFine) {
  EXPECT_EQ(first_id("n0:1:2 [0] NCCL INFO Using network IB\nn0:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3/GDRDMA\n"), "");
  EXPECT_EQ(first_id("n0:1:2 [0] NCCL INFO Using network IB\nn0:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3\n"), "gdr-off");
}

TEST(Findings, PeerToPeerSlowerThanWithoutIsADetour) {
  EXPECT_EQ(first_id("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1\n     0 600.0  13.0\n     1  13.0 600.0\n"
                     "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1\n     0 600.0   2.0\n     1   2.0 600.0\n"),
            "p2p-detour");
  EXPECT_EQ(first_id("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1\n     0 600.0  13.0\n     1  13.0 600.0\n"
                     "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1\n     0 600.0  25.0\n     1  25.0 600.0\n"),
            "");
}

/// 4 GPUs in pairs 0-1, 2-3: `near` inside a pair, `far` elsewhere.
std::string pairs_of(double near, double far) {
  std::string text = "Unidirectional Bandwidth Matrix (GB/s)\n   D\\D     0      1      2      3\n";
  for (int i = 0; i < 4; ++i) {
    text += "     " + std::to_string(i);
    for (int j = 0; j < 4; ++j) text += " " + std::to_string(i == j ? 600.0 : i / 2 == j / 2 ? near : far);
    text += "\n";
  }
  return text;
}

TEST(Findings, NearPairsSlowerThanFarOnes) {
  EXPECT_EQ(first_id(pairs_of(25, 50)), "acs-redirect");   // half: up to the root complex and down again
  EXPECT_EQ(first_id(pairs_of(9.9, 11.4)), "uplink-shared");
  EXPECT_EQ(first_id(pairs_of(50, 25)), "");               // the usual order
  EXPECT_EQ(first_id(pairs_of(50, 50.5)), "");             // noise
}

TEST(Findings, GpusAcrossTheSocketsFromTheNic) {
  EXPECT_EQ(first_id("        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity\nGPU0     X      SYS     PIX     0-15    0\nGPU1    SYS      X      SYS     16-31    1\nmlx5_0  PIX     SYS      X\n"), "gpu-nic-far");
}

TEST(Findings, RankListThatContradictsTheRatio) {
  const std::string rows = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n  1073741824     268435456     float     sum      -1   2000.0  536.87  1006.6      0   2000.0  536.87  1006.6      0\n";
  // 1006.6 / 536.87 = 1.875 = 2 (n - 1) / n  ->  16 ranks.
  EXPECT_EQ(first_id("#  Rank 23 Group  0 Pid  1 on      n5 device  3 [0x01] NVIDIA GB200\n" + rows), "rank-list-contradicts");
  EXPECT_EQ(first_id("#  Rank 15 Group  0 Pid  1 on      n3 device  3 [0x01] NVIDIA GB200\n" + rows), "");
}

/// Two leaves, `uplinks` cables from the second to the spine instead of four.
std::string fabric(int uplinks, const char* slow_rate) {
  std::string text;
  int guid = 100;
  for (int leaf = 0; leaf < 6; ++leaf) {
    text += "Switch\t40 \"S-" + std::to_string(leaf + 10) + "\"\t\t# \"leaf" + std::to_string(leaf) + "\" base port 0 lid 1 lmc 0\n";
    for (int host = 0; host < 4; ++host) {
      const std::string name = "n" + std::to_string(leaf * 4 + host);
      text += "[" + std::to_string(host + 1) + "]\t\"H-" + std::to_string(guid++) + "\"[1](1)\t# \"" + name + " mlx5_0\" lid 2 4x" + (leaf == 5 && host == 3 ? slow_rate : "HDR") + "\n";
    }
    for (int up = 0; up < (leaf == 5 ? uplinks : 4); ++up) {
      text += "[" + std::to_string(up + 20) + "]\t\"S-1\"[" + std::to_string(leaf * 4 + up + 1) + "]\t# \"spine\" lid 9 4xHDR\n";
    }
  }
  return text;
}

TEST(Findings, FabricWithEqualCablesIsFine) { EXPECT_EQ(first_id(fabric(4, "HDR")), ""); }
TEST(Findings, MissingUplinksAreNamed) {
  const auto found = found_in(fabric(2, "HDR"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id, "uplinks-missing");
  EXPECT_EQ(found[0].where, "leaf5");
}
TEST(Findings, ACableBelowItsLikeIsNamedWithItsPorts) {
  const auto found = found_in(fabric(4, "SDR"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id, "fabric-link-degraded");
  EXPECT_NE(found[0].what.find("n23 mlx5_0"), std::string::npos);
}

std::string rails(bool swapped) {
  std::string text;
  for (int rail = 0; rail < 2; ++rail) {
    text += "Switch\t40 \"S-" + std::to_string(rail + 1) + "\"\t\t# \"rail" + std::to_string(rail) + "\" base port 0 lid 1 lmc 0\n";
    for (int host = 0; host < 5; ++host) {
      const int card = swapped && host == 4 ? 1 - rail : rail;
      text += "[" + std::to_string(host + 1) + "]\t\"H-" + std::to_string(host * 2 + card + 100) + "\"[1](1)\t# \"n" + std::to_string(host) + " mlx5_" + std::to_string(card) + "\" lid 2 4xNDR\n";
    }
  }
  return text;
}

TEST(Findings, SwappedRailsAreNamed) {
  const auto found = found_in(rails(true));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id, "rail-miscabled");
  EXPECT_EQ(found[0].where, "n4");
  EXPECT_EQ(first_id(rails(false)), "");  // two planes without a cable between them are fine
}

TEST(Findings, ADownPortAmongActiveOnes) {
  EXPECT_EQ(first_id("CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\nCA 'mlx5_1'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n"), "port-down");
}

TEST(Findings, LargeMessagesFarBelowExpected) {
  const SourcePos at{"t.txt", 1, 0};
  EXPECT_TRUE(judge({{1e9, 20e9, 50e9}}, "all_reduce", "NIC", at));
  EXPECT_FALSE(judge({{1e9, 45e9, 50e9}}, "all_reduce", "NIC", at));
  EXPECT_FALSE(judge({{1e3, 1e6, 50e9}}, "all_reduce", "NIC", at));  // small messages are latency
}

TEST(Price, SocketsCostMoreThanNothing) {
  job::Options options;
  options.hosts = 2;
  options.strategy = "zero=3 microbatch=1";
  const auto file = job::read_job("model: llama-3-8b\ncluster: dgx-h100\nbatch: 64\nsequence: 4096\n", "job.yaml", options);
  ASSERT_TRUE(file) << format(file.error());
  assemble::Assembly assembly = assembled({{"job.out", "n0:1:2 [0] NCCL INFO Using network Socket\n"}});
  std::vector<Finding> found = check(assembly);
  ASSERT_FALSE(found.empty());
  const auto priced = price(found, assembly, file->job, *file->strategy);
  ASSERT_TRUE(priced) << format(priced.error());
  ASSERT_TRUE(found[0].cost);
  EXPECT_GT(found[0].cost->lost_s(), 0);
}

}  // namespace
}  // namespace chokepoint::findings

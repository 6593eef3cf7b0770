// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/assemble/assemble.hpp>

#include <gtest/gtest.h>

namespace chokepoint::assemble {
namespace {

using namespace wiring;

struct Input {
  const char* file;
  std::string text;
};

Assembly assembled(const std::vector<Input>& inputs) {
  std::vector<Document> documents;
  for (const Input& input : inputs) {
    auto found = read_documents(input.text, input.file);
    EXPECT_TRUE(found) << input.file << (found ? "" : format(found.error()));
    if (found) documents.insert(documents.end(), found->begin(), found->end());
  }
  auto assembly = assemble(std::move(documents));
  EXPECT_TRUE(assembly);
  return assembly ? std::move(*assembly) : Assembly{};
}

const std::string kMatrix =
    "        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity\nGPU0     X      NODE    PIX     0-15    0\nGPU1    NODE     X      NODE    0-15    0\nmlx5_0  PIX     NODE     X\n";

std::string smi(int gpus, int width_of_last) {
  std::string text = "==============NVSMI LOG==============\nAttached GPUs : " + std::to_string(gpus) + "\n";
  for (int i = 0; i < gpus; ++i) {
    text += "GPU 00000000:" + std::to_string(10 + i) + ":00.0\n    Product Name                          : NVIDIA A100-PCIE-40GB\n    PCI\n        GPU Link Info\n            PCIe Generation\n"
            "                Max                       : 4\n                Current                   : 4\n            Link Width\n                Max                       : 16x\n                Current                   : " +
            std::to_string(i + 1 == gpus ? width_of_last : 16) + "x\n    Performance State                     : P0\n";
  }
  return text;
}

double slot_of(const topology::Host& host, int gpu) {
  for (const topology::Link& link : host.links) {
    if (link.from == gpu && link.kind == topology::LinkKind::kPcie) return link.bandwidth.effective();
  }
  return 0;
}

TEST(Assemble, ASecondToolAddsToTheSameHost) {
  const Assembly assembly = assembled({{"node.topo", kMatrix}, {"node.smi", smi(2, 8)}});
  ASSERT_EQ(assembly.cluster.hosts.size(), 1U);
  const topology::Host& host = assembly.cluster.hosts[0].host;
  EXPECT_EQ(host.accelerator, "a100-pcie-40gb");
  EXPECT_EQ(host.devices[static_cast<std::size_t>(host.gpus()[1])].bus_id, "0000:11:00.0");
  // x8 of x16: half the rate of the other GPU's slot.
  EXPECT_NEAR(slot_of(host, host.gpus()[1]) * 2, slot_of(host, host.gpus()[0]), 1);
  ASSERT_EQ(assembly.matched.size(), 1U);
  EXPECT_TRUE(assembly.contradictions.empty());
}

TEST(Assemble, OtherGpuCountsAreOtherHosts) {
  const Assembly assembly = assembled({{"a.topo", kMatrix}, {"b.smi", smi(4, 16)}});
  EXPECT_EQ(assembly.cluster.hosts.size(), 2U);
}

TEST(Assemble, TheSamePromptWithOtherCountsIsAContradiction) {
  const Assembly assembly = assembled({{"a.topo", "root@n7:~# nvidia-smi topo -m\n" + kMatrix}, {"b.smi", "root@n7:~# nvidia-smi -q\n" + smi(4, 16)}});
  ASSERT_EQ(assembly.cluster.hosts.size(), 1U);
  ASSERT_FALSE(assembly.contradictions.empty());
  EXPECT_EQ(assembly.contradictions[0].what, "2 GPUs here, 4 there");
  EXPECT_EQ(assembly.contradictions[0].second.file, "b.smi");
}

TEST(Assemble, TwoMatricesAreTwoHosts) { EXPECT_EQ(assembled({{"a.topo", kMatrix}, {"b.topo", kMatrix}}).cluster.hosts.size(), 2U); }

TEST(Assemble, MeasuredPairsLandOnTheLinksTheyUsed) {
  const std::string matrix = "        GPU0    GPU1\nGPU0     X      NV4\nGPU1    NV4     X\n";
  const std::string pairs = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1\n     0 600.00  52.50\n     1  52.30 600.00\n";
  const Assembly assembly = assembled({{"a.topo", matrix}, {"a.p2p", pairs}});
  ASSERT_EQ(assembly.cluster.hosts.size(), 1U);
  double measured = 0;
  for (const topology::Link& link : assembly.cluster.hosts[0].host.links) {
    if (link.kind == topology::LinkKind::kNvLink && link.bandwidth.measured_bytes_per_s) measured = std::max(measured, *link.bandwidth.measured_bytes_per_s);
  }
  EXPECT_DOUBLE_EQ(measured, 52.5e9);
}

TEST(Assemble, ALogWithoutGpuDirectTurnsItOff) {
  const std::string log =
      "n0:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.1<0>\nn0:1:2 [0] NCCL INFO Using network IB\n"
      "n0:1:2 [0] NCCL INFO Channel 00 : 1[b000] -> 2[7000] [send] via NET/IB/0\nn1:1:2 [0] NCCL INFO Channel 00 : 1[b000] -> 2[7000] [receive] via NET/IB/0\n"
      "n0:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE\n";
  const Assembly assembly = assembled({{"a.topo", kMatrix}, {"job.out", log}});
  ASSERT_EQ(assembly.cluster.hosts.size(), 1U);
  EXPECT_EQ(assembly.cluster.hosts[0].count, 2);
  EXPECT_FALSE(assembly.cluster.hosts[0].host.gpudirect_rdma);
}

TEST(Assemble, AFabricAloneGivesHostsWithTheirAdapters) {
  const std::string fabric =
      "Switch\t4 \"S-1\"\t\t# \"leaf\" base port 0 lid 1 lmc 0\n[1]\t\"H-2\"[1](3)\t# \"n0 mlx5_0\" lid 2 4xHDR\n[2]\t\"H-4\"[1](5)\t# \"n1 mlx5_0\" lid 3 4xHDR\n";
  Assembly assembly = assembled({{"fabric.txt", fabric}});
  ASSERT_EQ(assembly.cluster.hosts.size(), 1U);
  EXPECT_EQ(assembly.cluster.hosts[0].count, 2);
  const topology::Host& host = assembly.cluster.hosts[0].host;
  ASSERT_EQ(host.nics().size(), 1U);
  EXPECT_DOUBLE_EQ(host.devices[static_cast<std::size_t>(host.nics()[0])].line_bytes_per_s, 25e9);
  EXPECT_EQ(assembly.cluster.fabric.kind, topology::FabricKind::kSingleSwitch);
  list_unknown(assembly);
  EXPECT_FALSE(assembly.unknown.empty());
}

TEST(Assemble, DeviceListsOfABenchmarkGiveTheHosts) {
  std::string table = "# nThread 1 nGpus 1 minBytes 1 maxBytes 2\n# Using devices\n";
  for (int rank = 0; rank < 4; ++rank) {
    table += "#  Rank  " + std::to_string(rank) + " Group  0 Pid 1 on      n" + std::to_string(rank / 2) + " device  " + std::to_string(rank % 2) + " [0000:1" + std::to_string(rank % 2) + ":00] NVIDIA H200\n";
  }
  const Assembly assembly = assembled({{"t.txt", table}});
  ASSERT_EQ(assembly.cluster.hosts.size(), 1U);
  EXPECT_EQ(assembly.cluster.hosts[0].count, 2);
  EXPECT_EQ(assembly.cluster.hosts[0].host.accelerator, "h200-sxm-141gb");
  EXPECT_EQ(assembly.cluster.gpu_count(), 4);
}

}  // namespace
}  // namespace chokepoint::assemble

// SPDX-License-Identifier: Apache-2.0
// The cases of ../shared/wiring/diagnosed_cases.md whose input is at hand: the established cause is named first, and what
// turned out to be no fault raises no alarm. Skips, loudly, where the collection is absent.
#include <chokepoint/base/files.hpp>
#include <chokepoint/findings/findings.hpp>

#include <cstdio>
#include <gtest/gtest.h>

namespace chokepoint::findings {
namespace {

const std::string kCollection = std::string(CHOKEPOINT_SOURCE_DIR) + "/../shared/wiring/";

struct Case {
  int number;                       ///< in diagnosed_cases.md; 0: a file whose fault the index states
  std::vector<std::string> files;
  std::string cause;                ///< id that must come first; empty: no alarm
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {15, {"topo-m/v100-hybridcube-2ib-old-1.txt"}, "nic-shared"},
      {16, {"topo-m/v100-pcie-8gpu-group-shorthand-1.txt"}, "gpu-nic-bridge"},
      {19, {"topo-m/a100-10nic-runtogether-1.txt"}, "nic-choice-ambiguous"},
      {22, {"nccl-topo-xml/azure-ndv4-1.xml"}, "topology-overlay"},
      {27, {"nvlink/v100-gpu3-inactive-1.txt"}, "nvlink-inactive"},
      {36, {"lspci/rtxpro6000-asus-gpus-idle-1.txt"}, ""},
      {36, {"smi-q/rtxpro6000-asus-8gpu-idle-1.txt"}, ""},
      {48, {"nccl-graph-xml/dgx-spark-ring-1.xml"}, "ring-cross-port"},
      {54, {"nccl-tests/aws-batch-8rank-1.txt"}, "rank-count-derived"},
      {0, {"p2p-bandwidth/a6000-3gpu-p2p-broken-1.txt"}, "p2p-detour"},
      {0, {"nccl-info/jz-a100-4node-1.log"}, "gdr-off"},
      {0, {"nccl-info/jz-v100-4node-1.log"}, "gdr-off"},
      {0, {"nccl-info/jz-v100-16node-1.log"}, "gdr-off"},
      {0, {"nccl-topo-xml/rtx4090-2gpu-cx4-1.xml"}, "gdr-off"},
      {0, {"topo-p2p/pcie-4gpu-islands-1.txt"}, "p2p-islands"},
      {0, {"topo-m/a100-3nic-one-socket-1.txt"}, "gpu-nic-far"},
      {0, {"topo-m/dgx2-16gpu-truncated-1.txt"}, ""},
      {0, {"topo-m/h100-18nic-shifted-1.txt"}, ""},
      {0, {"lspci/rtxpro6000-asus-full-1.txt"}, ""},
      {0, {"nccl-topo-xml/oci-h100-1.xml"}, "topology-uplink-slow"},
      {0, {"topo-m/rtxpro6000-asus-8gpu-ansi-1.txt", "p2p-bandwidth/rtxpro6000-asus-bidir-matrix-1.txt"}, ""},
      {0, {"nvlink/a10-1gpu-empty-1.txt"}, ""},
      {0, {"nvlink/a100-sxm4-8gpu-1.txt"}, ""},
      {0, {"nvlink/h100-elided-1.txt"}, ""},
      {0, {"nvlink/h100-errors-elided-1.txt"}, ""},
      {0, {"nvlink/p4de-gpu0-1.txt"}, ""},
      {0, {"topo-m/dgx-a100-10nic-1.txt"}, ""},
      {0, {"topo-m/dgx-a100-12nic-1.txt"}, ""},
      {0, {"topo-m/h100-vm-9nic-1.txt"}, ""},
      {0, {"topo-m/gb200-4gpu-6nic-1.txt"}, ""},
      {0, {"topo-m/gke-a4-b200-1.txt"}, ""},
      {0, {"topo-m/a100-container-2of8-1.txt"}, ""},
      {0, {"topo-m/ws-2gpu-nobridge-1.txt"}, ""},
      {0, {"topo-m/rtx2080ti-10gpu-nv2-cross-1.txt"}, ""},
      {0, {"topo-m/v100-sxm2-8gpu-1ib-1.txt"}, "nic-shared"},
      {0, {"nccl-topo-xml/h800-8gpu-1.xml"}, ""},
      {0, {"nccl-topo-xml/oci-h100-k8s-1.xml"}, ""},
      {0, {"nccl-tests/aws-p5-2node-allreduce-1.txt"}, ""},
      {0, {"nccl-tests/h100-8gpu-nvls-1.txt"}, ""},
      {0, {"nccl-tests/coreweave-gb200-1rack-1.txt"}, ""},
      {0, {"p2p-bandwidth/rtxpro6000-6gpu-uni-bidir-1.txt"}, ""},
      {0, {"p2p-bandwidth/rtx4090-2gpu-p2ptest-1.txt"}, ""},
      {0, {"rocm-smi/mi300x-8gpu-showtopo-1.txt"}, ""},
  };
  return kCases;
}

TEST(DiagnosedCases, TheEstablishedCauseComesFirstAndDesignIsNoAlarm) {
  if (!file_exists(kCollection + "diagnosed_cases.md")) GTEST_SKIP() << "no collection at " << kCollection;
  int hits = 0;
  int misses = 0;
  int silent = 0;
  int alarms = 0;
  for (const Case& entry : cases()) {
    SCOPED_TRACE(entry.files.front());
    std::vector<wiring::Document> documents;
    for (const std::string& file : entry.files) {
      const auto text = read_text_file(kCollection + file);
      ASSERT_TRUE(text);
      auto found = wiring::read_documents(*text, file);
      ASSERT_TRUE(found) << format(found.error());
      documents.insert(documents.end(), found->begin(), found->end());
    }
    const auto assembly = assemble::assemble(std::move(documents));
    ASSERT_TRUE(assembly);
    const std::vector<Finding> found = check(*assembly);
    if (!entry.cause.empty()) {
      const bool hit = !found.empty() && found.front().id == entry.cause;
      EXPECT_TRUE(hit) << "first: " << (found.empty() ? "nothing" : found.front().id + ": " + found.front().what);
      ++(hit ? hits : misses);
      continue;
    }
    const bool alarm = !found.empty() && found.front().severity != Severity::kInfo;
    EXPECT_FALSE(alarm) << found.front().id << ": " << found.front().what;
    ++(alarm ? alarms : silent);
  }
  std::printf("  diagnosed cases: %d hits, %d misses; %d without fault: %d silent, %d false alarms\n", hits, misses, silent + alarms, silent, alarms);
}

}  // namespace
}  // namespace chokepoint::findings

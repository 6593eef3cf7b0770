// SPDX-License-Identifier: Apache-2.0
// Every collected file of every kind: recognised by content, and its facts as index.csv has them (counted by other
// means). The collection is not part of the repository: the tests skip, loudly, where it is absent.
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <chokepoint/wiring/document.hpp>

#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <regex>

#include "collection_for_tests.hpp"

namespace chokepoint::wiring {
namespace {

using Values = std::map<std::string, std::string>;

std::string shown(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

Values facts_by_name(const Document& document) {
  Values values;
  for (const Fact& fact : facts_of(document)) values[fact.name] = fact.number ? shown(*fact.number) : fact.text;
  return values;
}

/// What `computed` says about a file, in the names of our facts.
class Expectation {
 public:
  explicit Expectation(const Entry& entry) : text_(entry.computed) {}

  void number(const std::string& fact, const std::string& pattern, double scale = 1) {
    std::smatch match;
    if (std::regex_search(text_, match, std::regex(pattern))) values[fact] = shown(std::stod(match[1]) * scale);
  }
  void items(const std::string& prefix, const std::string& title) {
    const std::size_t begin = text_.find(title + " {");
    if (begin == std::string::npos) return;
    const std::string body = text_.substr(begin, text_.find('}', begin) - begin);
    const std::regex item("'([^']*)': ([0-9]+)");
    for (std::sregex_iterator it(body.begin(), body.end(), item), end; it != end; ++it) values[prefix + "." + (*it)[1].str()] = (*it)[2];
  }
  void list(const std::string& fact, const std::string& title) {
    const std::size_t begin = text_.find(title + " [");
    if (begin == std::string::npos) return;
    std::string body = text_.substr(begin + title.size() + 2, text_.find(']', begin) - begin - title.size() - 2);
    body = std::regex_replace(body, std::regex("'"), "");
    if (!body.empty()) values[fact] = body;
  }
  Values values;

 private:
  std::string text_;
};

Values expected_of(const Entry& entry) {
  Expectation e(entry);
  if (entry.kind == "nvlink") {
    e.number("gpus", "([0-9]+) GPU");
    e.number("links_up", "([0-9]+) links up");
    e.number("links_inactive", "([0-9]+) inactive");
  } else if (entry.kind == "topo-p2p") {
    e.number("gpus", "([0-9]+) GPU columns");
    e.items("gpu_pairs", "GPU pairs");
  } else if (entry.kind == "smi-q") {
    e.number("gpus", "([0-9]+) GPU sections");
  } else if (entry.kind == "nccl-info") {
    e.list("versions", "version");
    e.list("networks", "network");
    e.items("via", "via");
    e.number("warnings", "NCCL WARN ([0-9]+)");
  } else if (entry.kind == "nccl-tests") {
    e.number("rows", "([0-9]+) rows");
    e.number("smallest_bytes", "rows, ([0-9]+)\\.\\.");
    e.number("largest_bytes", "\\.\\.([0-9]+) B");
    e.number("largest_time_s", "largest: ([0-9.]+) us", 1e-6);
    e.number("largest_algorithm_bytes_per_s", "algbw ([0-9.]+)", 1e9);
    e.number("largest_bus_bytes_per_s", "busbw ([0-9.]+)", 1e9);
    e.number("peak_bus_bytes_per_s", "peak busbw ([0-9.]+)", 1e9);
    e.number("average_bus_bytes_per_s", "printed average ([0-9.]+)", 1e9);
  } else if (entry.kind == "hwloc") {
    for (const char* type : {"Package", "NUMANode", "Core", "PU", "PCIDev", "Bridge"}) e.number(std::string("objects.") + type, std::string(type) + " ([0-9]+)");
    e.items("os_devices", "OS devices");
    e.list("distances", "distances");
  } else if (entry.kind == "lspci") {
    e.number("link_states", "([0-9]+) LnkSta");
    e.number("speed_downgraded", "([0-9]+) speed downgraded");
    e.number("width_downgraded", "([0-9]+) width downgraded");
    e.number("acs_request_redirect", "ReqRedir\\+ ([0-9]+)");
  } else if (entry.kind == "ib-fabric") {
    e.number("switch_blocks", "([0-9]+) Switch blocks");
    e.number("adapter_blocks", "([0-9]+) Ca blocks");
    e.items("ports_per_switch", "ports per switch");
  } else if (entry.kind == "slurm-topology") {
    if (entry.file.find(".conf") != std::string::npos) e.number("switches", "SwitchName ([0-9]+)");
    if (entry.file.find(".conf") != std::string::npos) e.number("switches_with_nodes", "with Nodes= ([0-9]+)");
  } else if (entry.kind == "training-log") {
    e.number("iterations", "([0-9]+) iteration lines");
  } else if (entry.kind == "nccl-graph-xml") {
    std::smatch match;
    std::string text = entry.computed;
    const std::regex graph("graph ([0-9]+): ([0-9]+) channels, intra ([0-9.]+) ([A-Z0-9]+), inter ([0-9.]+) ([A-Z0-9]+)");
    for (std::sregex_iterator it(text.begin(), text.end(), graph), end; it != end; ++it) {
      const std::string prefix = "graph" + (*it)[1].str() + ".";
      e.values[prefix + "channels"] = (*it)[2];
      e.values[prefix + "intra_bytes_per_s"] = shown(std::stod((*it)[3]) * 1e9);
      e.values[prefix + "intra_type"] = (*it)[4];
      e.values[prefix + "inter_type"] = (*it)[6];
    }
  }
  return e.values;
}

/// Facts of column `truth` that its words leave no doubt about, for kinds without computed counts.
const std::map<std::string, Values>& truths() {
  static const std::map<std::string, Values> kTruths{
      {"rocm-smi/4gpu-pcie-showtopo-1.txt", {{"gpus", "4"}, {"links.PCIE", "6"}, {"weights.52", "6"}, {"hops.3", "6"}}},
      {"rocm-smi/4gpu-showtopo-oldwidth-1.txt", {{"gpus", "4"}, {"links.XGMI", "6"}}},
      {"rocm-smi/8gpu-two-hives-showtopo-1.txt", {{"gpus", "8"}, {"links.XGMI", "12"}, {"links.PCIE", "16"}, {"hops.3", "16"}}},
      {"rocm-smi/mi210-8gpu-rocm-smi-1.txt", {{"gpus", "8"}}},
      {"rocm-smi/mi210-8gpu-showtoponuma-1.txt", {{"gpus", "8"}, {"numa_by_gpu", "3, 2, 1, 0, 7, 6, 5, 4"}}},
      {"rocm-smi/mi300a-4apu-showtopo-1.txt", {{"gpus", "4"}, {"links.XGMI", "6"}, {"weights.15", "6"}, {"hops.1", "6"}, {"numa_by_gpu", "0, 1, 2, 3"}}},
      {"rocm-smi/mi300x-1gpu-vm-1.txt", {{"gpus", "1"}}},
      {"rocm-smi/mi300x-8gpu-showtopo-1.txt", {{"gpus", "8"}, {"links.XGMI", "28"}}},
      {"nvlink/h100-elided-1.txt", {{"gpu0.links_by_highest_number", "18"}, {"link_bytes_per_s", "2.6562e+10"}}},
      {"nvlink/h100-errors-elided-1.txt", {{"errors", "0"}}},
      {"nvlink/v100-gpu3-inactive-1.txt", {{"gpu3.inactive", "2"}}},
      {"smi-q/rtxpro6000-asus-8gpu-idle-1.txt", {{"links.gen1x16_of_gen5x16", "8"}, {"performance_state.P8", "8"}}},
      {"lspci/gpud-nn-a10-1.txt", {{"nvswitches", "0"}}},
      {"lspci/gpud-nn-a100-1.txt", {{"nvswitches", "6"}, {"gpus", "8"}}},
      {"lspci/rtxpro6000-asus-full-1.txt", {{"gpus", "8"}}},
      {"hwloc/dgx2h-nvml-ib-1.xml", {{"gpus", "16"}, {"nics", "12"}}},
      {"hwloc/power8gpudistances-1.xml", {{"gpus", "4"}}},
      {"hwloc/16intel64-manyvfs-1.xml", {{"gpus", "0"}}},
      {"hwloc/96em64t-4n4d3ca2co-pci-1.xml", {{"gpus", "0"}, {"nics", "8"}}},
      {"ib-fabric/azure-ndv4-vm-ibstat-guids-1.txt", {{"hosts", "10"}, {"guids", "10"}}},
      {"ib-fabric/ibnetdiscover-p-test2-1.out", {{"open_ports", "3"}}},
      {"ib-fabric/ibnetdiscover-p-test3-1.out", {{"open_ports", "1"}, {"cables", "0"}}},
      {"ib-fabric/ibsim-net-2sw2path-1.net", {{"cables", "4"}, {"hosts", "2"}, {"leaves", "2"}}},
      {"ib-fabric/ibsim-net-2sw2path4hca-1.net", {{"cables", "6"}, {"hosts", "4"}}},
      {"ib-fabric/perfquery-506b4b-1.out", {{"ports", "1"}, {"counter.PortXmitDiscards", "20046"}, {"counter.LinkDownedCounter", "1"}}},
      {"slurm-topology/slurm-doc-4.conf", {{"rings", "2"}, {"nodes", "16"}}},
      {"slurm-topology/slurm-test-6-1.conf", {{"islands", "3"}, {"nodes", "40"}}},
      {"slurm-topology/topograph-model-medium-1.yaml", {{"nodes", "8"}, {"blocks", "4"}, {"levels", "3"}}},
      {"slurm-topology/topograph-model-nvl72-1.yaml", {{"nodes", "72"}, {"blocks", "4"}}},
      {"slurm-topology/topograph-model-irregular-1.yaml", {{"islands", "1"}}},
      {"nccl-graph-xml/ncv4-from-script-1.xml", {{"truncated", "1"}, {"graph0.channels", "2"}, {"graph0.first_channel", "gpu 0 - gpu 1 - gpu 2 - gpu 3"}}},
      {"nccl-graph-xml/dgx-spark-ring-1.xml", {{"graph0.channels", "8"}, {"graph0.first_channel", "net 0 - gpu 0 - net 1"}}},
      {"nccl-info/jz-a100-4node-1.log", {{"ranks", "32"}, {"hosts", "4"}, {"gpudirect_connections", "0"}, {"ring_channels", "2"}}},
      {"nccl-info/jz-v100-16node-1.log", {{"ranks", "64"}, {"hosts", "16"}, {"gpudirect_connections", "0"}}},
      {"nccl-info/jz-v100-4node-1.log", {{"ranks", "16"}, {"hosts", "4"}, {"gpudirect_connections", "0"}}},
      {"nccl-info/jz-megatron-v100-16node-head-1.log", {{"hosts", "16"}}},
      {"nccl-info/rtx3090-4x8-mpi-firstrun-1.log", {{"ranks", "32"}}},
      {"nccl-tests/aws-batch-8rank-1.txt", {{"ranks_by_ratio", "8"}, {"op", "all_reduce"}}},
      {"nccl-tests/aws-p5-2node-allreduce-1.txt", {{"ranks_by_ratio", "16"}, {"op", "all_reduce"}}},
      {"nccl-tests/coreweave-gb200-1rack-1.txt", {{"ranks_listed", "72"}}},
      {"nccl-tests/coreweave-h100-1.txt", {{"op", "all_reduce"}}},
      {"nccl-tests/h800-8gpu-reducescatter-1.txt", {{"op", "reduce_scatter"}, {"ranks_listed", "8"}}},
      {"nccl-tests/rtx4090-2gpu-broadcast-1.txt", {{"op", "broadcast"}, {"ranks_listed", "2"}}},
      {"nccl-tests/rtx3090-4node-allreduce-1.txt", {{"op", "all_reduce"}, {"ranks_listed", "32"}, {"hosts", "4"}}},
      {"nccl-tests/superbench-a100x8-reduce-1.txt", {{"op", "reduce"}}},
      {"nccl-tests/superbench-a100x8-broadcast-1.txt", {{"op", "broadcast"}}},
      {"nccl-tests/superbench-a100x8-reducescatter-1.txt", {{"op", "reduce_scatter"}}},
      {"nccl-tests/gke-a4-b200-4pod-misaligned-1.txt", {{"rows", "0"}, {"op", "all_gather"}}},
      {"osu/mi210-osu-bw-loop-1.txt", {{"rows", "7"}, {"op", "bandwidth"}, {"peak_bus_bytes_per_s", "1.42235e+11"}}},
      {"osu/mi250-osu-bw-loop-1.txt", {{"rows", "7"}}},
      {"osu/rocm-osu-single-1.txt", {{"rows", "1"}}},
      {"osu/rocm-osu-single-2.txt", {{"rows", "1"}, {"peak_bus_bytes_per_s", "6.87888e+10"}}},
      {"osu/rtx3090-4node-allreduce-1G-1.txt", {{"rows", "2"}, {"op", "allreduce_latency"}, {"largest_time_s", "2.46028"}}},
      {"osu/rtx3090-4node-allreduce-1.txt", {{"op", "allreduce_latency"}, {"smallest_bytes", "64"}}},
      {"perftest/amd-rocev2-ib-write-bidir-1.txt", {{"op", "ib_write_bw"}, {"bidirectional", "1"}, {"peak_bus_bytes_per_s", "2.55738e+10"}}},
      {"perftest/ib-loopback-8M-1.txt", {{"op", "ib_write_bw"}, {"largest_bytes", "8.38861e+06"}}},
      {"p2p-bandwidth/a6000-3gpu-p2p-broken-1.txt", {{"matrices", "3"}, {"matrix1.lowest_bytes_per_s", "1.299e+10"}, {"matrix2.highest_bytes_per_s", "2.6e+09"}}},
      {"p2p-bandwidth/amd-8gpu-transferbench-1.txt", {{"matrix0.columns", "10"}, {"matrix0.rows", "10"}}},
      {"p2p-bandwidth/amd-rocm-bandwidth-all-bidir-1.txt", {{"matrices", "1"}, {"matrix0.rows", "10"}, {"matrix0.highest_bytes_per_s", "1.01693e+11"}}},
      {"p2p-bandwidth/amd-rocm-bandwidth-uni-1.txt", {{"copy.peak_bytes_per_s", "2.8675e+10"}}},
      {"p2p-bandwidth/nvbandwidth-gb300-station-1.txt", {{"matrices", "4"}, {"sum.host_to_device_memcpy_ce_bytes_per_s", "3.5905e+11"}}},
      {"p2p-bandwidth/nvbandwidth-readme-3.txt", {{"matrices", "1"}, {"matrix0.rows", "1"}, {"matrix0.columns", "8"}}},
      {"p2p-bandwidth/rocm-hipbusbw-d2h-1.txt", {{"size_tables", "1"}}},
      {"p2p-bandwidth/rtx4090-2gpu-p2ptest-1.txt", {{"devices", "2"}, {"pairs_without_access", "2"}, {"matrices", "9"}}},
      {"p2p-bandwidth/rtxpro6000-6gpu-latency-1.txt", {{"matrices", "1"}, {"matrix0.rows", "6"}, {"matrix0.highest_s", "4.4e-07"}}},
      {"p2p-bandwidth/rtxpro6000-6gpu-uni-bidir-1.txt", {{"matrices", "2"}, {"matrix1.highest_bytes_per_s", "1.1139e+11"}}},
      {"p2p-bandwidth/rtxpro6000-asus-bidir-matrix-1.txt", {{"matrix0.rows", "8"}, {"matrix0.lowest_bytes_per_s", "9.3e+10"}}},
      {"p2p-bandwidth/rtxpro6000-wrx90-2switch-bidir-1.txt", {{"matrix0.rows", "8"}}},
      {"p2p-bandwidth/rtxpro6000-wrx90-3switch-lat-1.txt", {{"matrix0.rows", "8"}, {"matrix0.lowest_s", "4.5e-07"}}},
      {"p2p-bandwidth/rtxpro6000-wrx90-3switch-uni-1.txt", {{"matrix0.rows", "8"}, {"matrix0.highest_bytes_per_s", "5.64e+10"}}},
      {"training-log/deepspeed-comms-logger-1.txt", {{"rows", "3"}}},
      {"training-log/deepspeed-comms-logger-2.txt", {{"rows", "3"}}},
  };
  return kTruths;
}

TEST(WiringData, EveryFileIsRecognisedAndItsFactsAreRight) {
  const std::vector<Entry> files = entries();
  if (files.empty()) GTEST_SKIP() << "no collection at " << kCollection;
  std::map<std::string, std::array<int, 3>> by_kind;  // files, recognised, facts right
  for (const Entry& entry : files) {
    SCOPED_TRACE(entry.file);
    std::array<int, 3>& counts = by_kind[entry.kind];
    ++counts[0];
    const auto text = read_text_file(kCollection + entry.file);
    ASSERT_TRUE(text);
    EXPECT_EQ(name(recognise(*text)), entry.kind);
    if (name(recognise(*text)) != entry.kind) continue;
    ++counts[1];
    const auto documents = read_documents(*text, entry.file);
    EXPECT_TRUE(documents) << (documents ? "" : format(documents.error()));
    if (!documents) continue;
    const Values facts = facts_by_name(documents->front());
    Values wanted = expected_of(entry);
    if (const auto truth = truths().find(entry.file); truth != truths().end()) wanted.insert(truth->second.begin(), truth->second.end());
    bool right = true;
    for (const auto& [fact, value] : wanted) {
      const auto found = facts.find(fact);
      const std::string have = found == facts.end() ? "0" : found->second;
      EXPECT_EQ(have, value) << fact;
      right = right && have == value;
    }
    counts[2] += right ? 1 : 0;
  }
  for (const auto& [kind, counts] : by_kind) std::printf("  %-16s files %3d  recognised %3d  facts right %3d\n", kind.c_str(), counts[0], counts[1], counts[2]);
}

}  // namespace
}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
// Which formats a text holds. Each format has marks that its tool prints and no other does; lines that carry them are
// counted, so that a mixed paste is named by what most of it is.
#include "scan.hpp"
#include "smi_forms.hpp"
#include "tool_json.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <array>

namespace chokepoint::wiring {

namespace {

constexpr std::size_t kHead = 8u << 20;  ///< beyond this nothing new is expected

struct Marks {
  int nccl = 0, rows = 0, nccl_tests = 0, devices = 0, smi = 0, nvlink = 0, rocm = 0, amd_tables = 0, lspci = 0, tree = 0, peers = 0, matrix = 0, net_blocks = 0, net_ports = 0,
      link_info = 0, ibstat = 0, ib_devices = 0, counters = 0, guids = 0, slurm = 0, slurm_yaml = 0, topograph = 0, osu = 0, perftest = 0, deepspeed = 0, pairs = 0, training = 0, nvlink_links = 0, nvlink_gpus = 0,
      hosts_yaml = 0, words = 0;
};

bool starts(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool is_gpu_label(std::string_view word) { return starts(word, "GPU") && word.size() > 3 && is_digits(word.substr(3, 1)); }

/// Words of the two matrices nvidia-smi prints over GPU labels.
void square(const std::vector<std::string_view>& words, Marks& marks) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (!is_gpu_label(words[i])) continue;
    for (std::size_t j = i + 1; j < words.size(); ++j) {
      const std::string_view word = words[j];
      if (word == "OK" || word == "NS" || word == "CNS" || word == "GNS" || word == "TNS") ++marks.peers;
      if (word == "PIX" || word == "PXB" || word == "PHB" || word == "NODE" || word == "SYS" || word == "SOC" || (starts(word, "NV") && is_digits(word.substr(2)))) ++marks.matrix;
    }
    return;
  }
}

bool is_table_row(const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i + 6 < words.size(); ++i) {
    if (!is_digits(words[i]) || !is_digits(words[i + 1])) continue;
    const std::string_view type = words[i + 2];
    return type == "float" || type == "half" || type == "double" || type == "bfloat16" || starts(type, "int") || starts(type, "uint") || starts(type, "f8") || starts(type, "fp8") || type == "char";
  }
  return false;
}

bool is_pair_heading(std::string_view content) {
  return starts(content, "D\\D") || starts(content, "D/D") || contains(content, "\\DST") || starts(content, "memcpy CE ") || starts(content, "memcpy SM ") ||
         contains(content, "P2P Connectivity Matrix") || contains(content, "P2P=Enabled") || contains(content, "P2P=Disabled") || contains(content, "RocmBandwidthTest Version") ||
         contains(content, "H2D_Bandwidth") || contains(content, "D2H_Bandwidth") || starts(content, "nvbandwidth Version") || contains(content, "rocm-bandwidth-test");
}

void fabric_marks(std::string_view content, Marks& marks) {
  if (contains(content, "==(") && contains(content, ")==>")) ++marks.link_info;
  const std::string_view type = content.substr(0, content.find_first_of(" \t"));
  if ((type == "CA" || type == "SW" || type == "RT") && contains(content, " 0x") && contains(content, "x ")) ++marks.net_ports;
  if ((type == "Switch" || type == "Ca" || type == "Hca" || type == "switch") && contains(content, "\"")) ++marks.net_blocks;
  if (starts(content, "CA type:") || starts(content, "CA '")) ++marks.ibstat;
  if (starts(content, "hca_id:") || (starts(content, "Infiniband device '") && contains(content, "' port "))) ++marks.ib_devices;
  if (starts(content, "PortXmit") || starts(content, "PortRcv") || starts(content, "SymbolErrorCounter") || contains(content, "counters: Lid")) ++marks.counters;
  if (starts(content, "VM_hostname ")) ++marks.guids;
}

void line_marks(std::string_view line, Marks& marks) {
  const std::string_view content = trim(line);
  if (content.empty()) return;
  ++marks.words;
  if (contains(content, "NCCL INFO ") || contains(content, "NCCL WARN ")) {
    ++marks.nccl;
    return;
  }
  const std::vector<std::string_view> words = split_blanks(content);
  square(words, marks);
  if (contains(content, "algbw") || (contains(content, "nThread") && contains(content, "minBytes"))) ++marks.nccl_tests;
  if (contains(content, "Rank ") && contains(content, " Pid ") && contains(content, " device ")) ++marks.devices;
  if (is_table_row(words)) ++marks.rows;
  if (contains(content, "NVSMI LOG") || starts(content, "Product Name  ") || starts(content, "GPU Link Info") || is_smi_table_heading(content)) ++marks.smi;
  if (starts(content, "Link ") && contains(content, ":") && (contains(content, "B/s") || contains(content, "inactive") || contains(content, "Error"))) ++marks.nvlink_links;
  if (contains(content, "nvidia-smi nvlink")) ++marks.nvlink;
  if (starts(content, "GPU ") && contains(content, "(UUID: GPU-")) ++marks.nvlink_gpus;
  if (contains(content, "ROCm System Management") || contains(content, "between two GPUs") || contains(content, "(Topology) Numa")) ++marks.rocm;
  if (content == "LINK TYPE TABLE:" || content == "HOPS TABLE:" || content == "WEIGHT TABLE:") ++marks.amd_tables;
  const std::string_view first = words.front();
  const std::size_t dot = first.find('.');
  if (line[0] != ' ' && dot != std::string_view::npos && dot + 2 == first.size() && contains(first, ":") && !pci_address(first).empty()) ++marks.lspci;
  if (starts(content, "-[") || starts(content, "+-[") || starts(content, "\\-[")) marks.tree += contains(content, ":") ? 1 : 0;
  fabric_marks(content, marks);
  if (starts_with_ignoring_case(content, "SwitchName=") || starts_with_ignoring_case(content, "BlockName=")) ++marks.slurm;
  if (starts(line, "- topology:")) ++marks.slurm_yaml;
  if (starts(line, "switches:") || starts(line, "blocks:")) ++marks.topograph;
  if (contains(content, "# OSU ")) ++marks.osu;
  if (contains(content, "#bytes") || (contains(content, "RDMA_") && contains(content, " Test")) || (contains(content, "Send") && contains(content, "BW Test"))) ++marks.perftest;
  if (contains(content, "Comm. Op") && contains(content, "Message Size")) ++marks.deepspeed;
  if (is_pair_heading(content)) ++marks.pairs;
  if (contains(content, "elapsed time per iteration")) ++marks.training;
  if (starts(line, "hosts:")) ++marks.hosts_yaml;
}

/// A matrix without any title: a heading of column numbers from 0 on and a row below it that begins with 0.
bool untitled_pairs(const std::vector<std::string_view>& lines) {
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    std::vector<std::string_view> words = split_blanks(lines[i]);
    if (!words.empty() && (words[0] == "GPU" || words[0] == "CPU")) words.erase(words.begin());
    if (words.size() < 2) continue;
    bool heading = true;
    for (std::size_t j = 0; j < words.size(); ++j) heading = heading && to_int(words[j]) == static_cast<int>(j);
    const std::vector<std::string_view> row = split_blanks(lines[i + 1]);
    if (heading && row.size() == words.size() + 1 && row[0] == "0") return true;
  }
  return false;
}

Format xml_format(std::string_view head) {
  if (trim(head).substr(0, 1) != "<" && !contains(head, "<system") && !contains(head, "<graphs")) return Format::kUnknown;
  if (contains(head, "<nvidia_smi_log")) return Format::kSmiQuery;
  if (contains(head, "<topology") && contains(head, "<object")) return Format::kHwlocXml;
  if (contains(head, "<graphs")) return Format::kNcclGraphXml;
  if (contains(head, "<system")) return Format::kNcclTopologyXml;
  return Format::kUnknown;
}

}  // namespace

std::string_view name(Format format) {
  switch (format) {
    case Format::kUnknown: return "unknown";
    case Format::kTopoMatrix: return "topo-m";
    case Format::kNcclTopologyXml: return "nccl-topo-xml";
    case Format::kClusterYaml: return "cluster-yaml";
    case Format::kPeerMatrix: return "topo-p2p";
    case Format::kNvLinkStatus: return "nvlink";
    case Format::kSmiQuery: return "smi-q";
    case Format::kNcclGraphXml: return "nccl-graph-xml";
    case Format::kNcclLog: return "nccl-info";
    case Format::kHwlocXml: return "hwloc";
    case Format::kLspci: return "lspci";
    case Format::kFabric:
    case Format::kIbPorts:
    case Format::kIbDevices:
    case Format::kPortCounters:
    case Format::kGuidList: return "ib-fabric";
    case Format::kSlurmTopology: return "slurm-topology";
    case Format::kRocmTopology: return "rocm-smi";
    case Format::kNcclTests: return "nccl-tests";
    case Format::kOsu: return "osu";
    case Format::kPerftest: return "perftest";
    case Format::kPairTables: return "p2p-bandwidth";
    case Format::kDeepSpeedComms:
    case Format::kTrainingLog: return "training-log";
    case Format::kMeasuredNetwork: return "measured-network";
  }
  return "unknown";
}

std::vector<Format> formats_in(std::string_view text) {
  std::string_view head = text.substr(0, kHead);
  if (head.substr(0, 3) == "\xef\xbb\xbf") head.remove_prefix(3);
  if (const Format xml = xml_format(head.substr(0, 1 << 16)); xml != Format::kUnknown) return {xml};
  if (head.substr(0, 1) == "{" && contains(head.substr(0, 256), "\"chokepoint.network/")) return {Format::kMeasuredNetwork};
  if (const Format json = json_format(head); json != Format::kUnknown) return {json};
  const std::vector<std::string_view> lines = split_lines(head);
  Marks marks;
  for (const std::string_view line : lines) line_marks(line, marks);
  // nvlink -s prints nothing on a host without NVLink; no other tool here prints nothing.
  if (marks.words == 0) return {Format::kNvLinkStatus};

  std::vector<Format> found;
  if (marks.hosts_yaml > 0) found.push_back(Format::kClusterYaml);
  if (marks.smi > 0) found.push_back(Format::kSmiQuery);
  if (marks.rocm > 0 || marks.amd_tables > 0) found.push_back(Format::kRocmTopology);
  // amd-smi's tables have rows that begin with PCI addresses as well.
  if (marks.lspci > 0 && marks.lspci * 400 > marks.words && marks.amd_tables == 0) found.push_back(Format::kLspci);
  else if (marks.tree > 0) found.push_back(Format::kLspci);
  if (marks.net_ports > 0 || marks.net_blocks > 0 || marks.link_info > 0) found.push_back(Format::kFabric);
  if (marks.ibstat > 1) found.push_back(Format::kIbPorts);
  if (marks.ib_devices > 0) found.push_back(Format::kIbDevices);
  if (marks.counters > 1) found.push_back(Format::kPortCounters);
  if (marks.guids > 0) found.push_back(Format::kGuidList);
  if (marks.slurm > 0 || marks.slurm_yaml > 0 || marks.topograph > 0) found.push_back(Format::kSlurmTopology);
  const bool log_first = marks.nccl > marks.rows;
  if (marks.nccl > 0 && log_first) found.push_back(Format::kNcclLog);
  if (marks.rows > 0 || marks.nccl_tests > 0 || marks.devices > 0) found.push_back(Format::kNcclTests);
  if (marks.nccl > 0 && !log_first) found.push_back(Format::kNcclLog);
  if (marks.deepspeed > 0) found.push_back(Format::kDeepSpeedComms);
  if (marks.training > 0) found.push_back(Format::kTrainingLog);
  if (marks.osu > 0) found.push_back(Format::kOsu);
  if (marks.perftest > 0) found.push_back(Format::kPerftest);
  if (marks.peers > 0 && marks.matrix == 0) found.push_back(Format::kPeerMatrix);
  const bool gpu_words = contains(head, "GPU0") || contains(head, "GPU1") || (contains(head, "GPU") && contains(head, "Affinity"));
  const int nvlink = marks.nvlink + marks.nvlink_links + marks.nvlink_gpus;
  const bool only_words = found.empty() && gpu_words && marks.pairs == 0 && nvlink == 0;
  if ((marks.matrix > 0 && marks.peers == 0) || only_words) found.push_back(Format::kTopoMatrix);
  // `nvidia-smi -q` alone has lines that begin with "Link"; with both kinds of lines nvlink -s is in the file as well.
  if (marks.smi == 0 ? nvlink > 0 : marks.nvlink_links > 0 && marks.nvlink_gpus > 0) found.push_back(Format::kNvLinkStatus);
  if (marks.pairs > 0 || (found.empty() && untitled_pairs(lines))) found.push_back(Format::kPairTables);
  return found;
}

Format recognise(std::string_view text) {
  const std::vector<Format> found = formats_in(text);
  return found.empty() ? Format::kUnknown : found.front();
}

}  // namespace chokepoint::wiring

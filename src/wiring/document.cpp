// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/wiring/document.hpp>

#include "encoding.hpp"
#include "matrix.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/wiring/measured_network.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

/// A text with this many unprintable characters is no text. Tools print tabs, colour codes, sometimes UTF-8.
constexpr double kBinaryShare = 0.1;

bool is_binary(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 16);
  if (utf16_order(head) != '\0') return false;
  std::size_t strange = 0;
  std::size_t expected = 0;  // bytes of a UTF-8 character still to come
  for (const char c : head) {
    const auto u = static_cast<unsigned char>(c);
    const bool control = u < 0x20 && u != '\n' && u != '\r' && u != '\t' && u != 0x1b && u != '\f' && u != '\b';
    const bool continues = (u & 0xc0) == 0x80;
    const bool broken = continues ? expected == 0 : expected > 0 || u >= 0xf8;
    strange += control || broken ? 1 : 0;
    expected = continues ? expected - (expected > 0 ? 1 : 0) : u >= 0xf0 ? 3 : u >= 0xe0 ? 2 : u >= 0xc0 ? 1 : 0;
  }
  return static_cast<double>(strange) > kBinaryShare * static_cast<double>(std::max<std::size_t>(head.size(), 1));
}

/// "root@node7:~# nvidia-smi", "[user@node7 dir]$": the host in a shell prompt of the first lines.
std::string prompt_host(std::string_view text) {
  int lines = 0;
  for (const std::string_view line : split_lines(text.substr(0, 4096))) {
    if (++lines > 20) break;
    const std::size_t at = line.find('@');
    if (at == std::string_view::npos || at == 0 || at > 40 || line.find_first_of("$#>") == std::string_view::npos) continue;
    std::size_t end = at + 1;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '-' || line[end] == '_' || line[end] == '.')) ++end;
    if (end > at + 1 && end < line.size() && (line[end] == ':' || line[end] == ' ' || line[end] == '~')) return std::string(line.substr(at + 1, end - at - 1));
  }
  return {};
}

template <class Value>
Result<Content> wrap(Result<Value> value) {
  if (!value) return tl::make_unexpected(std::move(value).error());
  return Content(std::move(*value));
}

/// What the readers of files that are no host themselves noted; notes of hosts stay with the host.
std::vector<Note> notes_of(const Content& content) {
  return std::visit(
      [](const auto& value) -> std::vector<Note> {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, Host> || std::is_same_v<Value, Cluster> || std::is_same_v<Value, std::vector<HostGroup>>) return {};
        else return value.notes;
      },
      content);
}

Result<Content> read_matrices(std::string_view text, const std::string& file) {
  Result<std::vector<HostGroup>> groups = read_topo_matrices(text, file);
  if (groups) return Content(std::move(*groups));
  const std::optional<Matrix> grouped = parse_grouped_matrix(text, file);
  if (!grouped) return tl::make_unexpected(std::move(groups).error());
  return Content(std::vector<HostGroup>{{host_from_matrix(*grouped, file), 1}});
}

/// Output of tools that have the answer in another form; empty for anything else.
std::string closest_tool(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 16);
  if (contains(head, "| NVIDIA-SMI ")) return "nvidia-smi's overview says nothing about links; `nvidia-smi topo -m` and `nvidia-smi -q` do";
  if (contains(head, "Package L#") || contains(head, "HostBridge") || contains(head, "NUMANode L#")) return "lstopo's drawing or text; `lstopo --of xml` is read";
  if (contains(head, "Settings for ") && contains(head, "Link detected")) return "ethtool's settings of one interface; `chokepoint wiring --live` reads them on the machine";
  if (contains(head, " port ") && contains(head, " ==> ")) return "ibdev2netdev says names alone; `ibstat` or `ibv_devinfo -v` says states and rates";
  return {};
}

Result<Content> read_content(Format format, std::string_view text, const std::string& file) {
  switch (format) {
    case Format::kTopoMatrix: return read_matrices(text, file);
    case Format::kNcclTopologyXml: return wrap(read_nccl_xml(text, file));
    case Format::kClusterYaml: return wrap(read_cluster_yaml(text, file));
    case Format::kPeerMatrix: return wrap(read_peer_matrix(text, file));
    case Format::kNvLinkStatus: return wrap(read_nvlink_status(text, file));
    case Format::kSmiQuery: return wrap(read_smi_query(text, file));
    case Format::kNcclGraphXml: return wrap(read_nccl_graph_xml(text, file));
    case Format::kNcclLog: return wrap(read_nccl_log(text, file));
    case Format::kHwlocXml: return wrap(read_hwloc_xml(text, file));
    case Format::kLspci: return wrap(read_lspci(text, file));
    case Format::kFabric: return wrap(read_fabric(text, file));
    case Format::kIbPorts: return wrap(read_ibstat(text, file));
    case Format::kIbDevices: return wrap(read_ib_devices(text, file));
    case Format::kPortCounters: return wrap(read_perfquery(text, file));
    case Format::kGuidList: return wrap(read_guid_list(text, file));
    case Format::kSlurmTopology: return wrap(read_slurm_topology(text, file));
    case Format::kRocmTopology: return wrap(read_rocm_topology(text, file));
    case Format::kNcclTests: return wrap(read_nccl_tests(text, file));
    case Format::kOsu: return wrap(read_osu(text, file));
    case Format::kPerftest: return wrap(read_perftest(text, file));
    case Format::kPairTables: return wrap(read_pair_tables(text, file));
    case Format::kDeepSpeedComms: return wrap(read_deepspeed_comms(text, file));
    case Format::kTrainingLog: return wrap(read_training_log(text, file));
    case Format::kMeasuredNetwork: return wrap(read_measured_network(text, file));
    case Format::kUnknown: break;
  }
  const std::string closest = closest_tool(text);
  return fail(closest.empty() ? "no known format" : closest, {file, 0, 0},
              {"known: nvidia-smi topo -m / topo -p2p / nvlink -s / -q, NCCL topology and graph XML, NCCL_DEBUG=INFO logs, lstopo XML, lspci,",
               "ibnetdiscover, iblinkinfo, ibstat, ibstatus, ibv_devinfo, perfquery, Slurm topology, rocm-smi, nccl-tests, OSU, perftest, nvbandwidth, p2pBandwidthLatencyTest"});
}

}  // namespace

Result<std::vector<Document>> read_documents(std::string_view text, const std::string& file) {
  if (is_binary(text)) return fail("binary data, expected text", {file, 0, 0}, {"compressed files are to be unpacked first"});
  std::vector<Note> repairs;
  const std::string plain = plain_text(text, file, repairs);
  const std::vector<Format> formats = formats_in(plain);
  if (formats.empty()) {
    Result<Content> none = read_content(Format::kUnknown, plain, file);
    return tl::make_unexpected(std::move(none).error());
  }
  std::vector<Document> documents;
  std::optional<Error> first_error;
  for (const Format format : formats) {
    Result<Content> content = read_content(format, plain, file);
    if (!content) {
      if (!first_error) first_error = std::move(content).error();
      continue;
    }
    std::vector<Note> notes = notes_of(*content);
    documents.push_back({format, file, prompt_host(plain), std::move(*content), std::move(notes)});
  }
  if (documents.empty()) return tl::make_unexpected(std::move(*first_error));
  documents.front().notes.insert(documents.front().notes.begin(), repairs.begin(), repairs.end());
  return documents;
}

std::optional<Host> host_in(const Document& document) {
  struct Visitor {
    const std::string& file;
    std::optional<Host> operator()(const std::vector<HostGroup>& groups) const { return groups.empty() ? std::nullopt : std::optional<Host>(groups.front().host); }
    std::optional<Host> operator()(const Host& host) const { return host; }
    std::optional<Host> operator()(const PeerMatrix& value) const { return host_of(value, file); }
    std::optional<Host> operator()(const NvLinkStatus& value) const { return value.gpus.empty() ? std::nullopt : std::optional<Host>(host_of(value, file)); }
    std::optional<Host> operator()(const SmiQuery& value) const { return host_of(value, file); }
    std::optional<Host> operator()(const HwlocTopology& value) const { return host_of(value, file); }
    std::optional<Host> operator()(const PciListing& value) const { return host_of(value, file); }
    std::optional<Host> operator()(const IbPorts& value) const { return host_of(value, file); }
    std::optional<Host> operator()(const RocmTopology& value) const { return host_of(value, file); }
    std::optional<Host> operator()(const PairTables& value) const {
      Host host = host_of(value, file);
      return host.gpus().empty() ? std::nullopt : std::optional<Host>(std::move(host));
    }
    std::optional<Host> operator()(const MeasuredTable& value) const {
      std::vector<HostGroup> groups = hosts_of(value, file);
      return groups.empty() ? std::nullopt : std::optional<Host>(std::move(groups.front().host));
    }
    std::optional<Host> operator()(const Cluster&) const { return std::nullopt; }
    std::optional<Host> operator()(const NcclGraphs&) const { return std::nullopt; }
    std::optional<Host> operator()(const NcclLog&) const { return std::nullopt; }
    std::optional<Host> operator()(const FabricListing&) const { return std::nullopt; }
    std::optional<Host> operator()(const CounterFile&) const { return std::nullopt; }
    std::optional<Host> operator()(const GuidList&) const { return std::nullopt; }
    std::optional<Host> operator()(const SlurmTopology&) const { return std::nullopt; }
    std::optional<Host> operator()(const TrainingLog&) const { return std::nullopt; }
    std::optional<Host> operator()(const MeasuredNetwork&) const { return std::nullopt; }
  };
  return std::visit(Visitor{document.file}, document.content);
}

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
// Which format a text is, and the importers' public entry points for whole hosts.
#include "matrix.hpp"
#include "parts.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

Format recognise(std::string_view text) {
  std::string_view head = text.substr(0, 1 << 16);
  if (head.substr(0, 3) == "\xef\xbb\xbf") head.remove_prefix(3);
  if (trim(head).substr(0, 1) == "<" && head.find("<system") != std::string_view::npos) return Format::kNcclTopologyXml;
  if (head.find("GPU0") != std::string_view::npos || head.find("GPU1") != std::string_view::npos) return Format::kTopoMatrix;
  for (const std::string_view line : split_lines(head)) {
    if (line.substr(0, 6) == "hosts:") return Format::kClusterYaml;
  }
  if (head.find("<system") != std::string_view::npos) return Format::kNcclTopologyXml;
  if (head.find("GPU") != std::string_view::npos && head.find("Affinity") != std::string_view::npos) return Format::kTopoMatrix;
  return Format::kUnknown;
}

Result<std::vector<HostGroup>> read_topo_matrices(std::string_view text, const std::string& file) {
  TRY_INTO(const std::vector<Matrix> matrices, parse_matrices(text, file));
  std::vector<HostGroup> groups;
  for (const Matrix& matrix : matrices) {
    Host host = host_from_matrix(matrix, file);
    const auto same = std::find_if(groups.begin(), groups.end(), [&host](const HostGroup& group) {
      return group.host.devices == host.devices && group.host.declared == host.declared;
    });
    if (same != groups.end()) ++same->count;
    else groups.push_back({std::move(host), 1});
  }
  return groups;
}

Result<Host> read_topo_matrix(std::string_view text, const std::string& file) {
  TRY_INTO(std::vector<HostGroup> groups, read_topo_matrices(text, file));
  Host host = std::move(groups.front().host);
  if (groups.front().count > 1) host.notes.push_back({fmt::format("the same matrix stands {} times in the file", groups.front().count), {file, 0, 0}});
  if (groups.size() > 1) {
    host.notes.push_back({fmt::format("{} different matrices in the file; the first is used", groups.size()), {file, 0, 0}});
  }
  return host;
}

Result<Host> read_host(std::string_view text, const std::string& file) {
  switch (recognise(text)) {
    case Format::kTopoMatrix: return read_topo_matrix(text, file);
    case Format::kNcclTopologyXml: return read_nccl_xml(text, file);
    case Format::kClusterYaml: return fail("a cluster file where a single host was expected", {file, 0, 0});
    case Format::kUnknown: break;
  }
  return fail("neither `nvidia-smi topo -m` nor NCCL topology XML", {file, 0, 0},
              {"save the output of `nvidia-smi topo -m`, or run a job with NCCL_TOPO_DUMP_FILE=topo.xml"});
}

}  // namespace chokepoint::wiring

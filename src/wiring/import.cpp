// SPDX-License-Identifier: Apache-2.0
// The importers' entry points for whole hosts.
#include "matrix.hpp"
#include "parts.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/wiring/document.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

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
  if (recognise(text) == Format::kClusterYaml) return fail("a cluster file where a single host was expected", {file, 0, 0});
  if (recognise(text) == Format::kTopoMatrix) return read_topo_matrix(text, file);
  TRY_INTO(const std::vector<Document> documents, read_documents(text, file));
  for (const Document& document : documents) {
    if (std::optional<Host> host = host_in(document)) return std::move(*host);
  }
  return fail(fmt::format("'{}' describes no host", name(documents.front().format)), {file, 0, 0},
              {"save the output of `nvidia-smi topo -m`, or run a job with NCCL_TOPO_DUMP_FILE=topo.xml"});
}

}  // namespace chokepoint::wiring

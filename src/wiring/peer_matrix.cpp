// SPDX-License-Identifier: Apache-2.0
// nvidia-smi topo -p2p: a square of words. The header is the line of GPU labels, rows begin with one of them.
#include <chokepoint/wiring/gpu_tools.hpp>

#include "parts.hpp"
#include "scan.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr std::size_t kMaxDevices = 256;
/// Source: legend of `nvidia-smi topo -p2p`.
constexpr std::array<std::string_view, 9> kWords{"X", "OK", "CNS", "GNS", "TNS", "NS", "DR", "U", "SNS"};

bool is_gpu(std::string_view word) { return word.substr(0, 3) == "GPU" && is_digits(word.substr(3)); }
bool is_word(std::string_view word) { return std::find(kWords.begin(), kWords.end(), word) != kWords.end(); }

}  // namespace

std::map<std::string, int> PeerMatrix::pairs() const {
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t j = i + 1; j < cells[i].size(); ++j) {
      if (!cells[i][j].empty()) ++counts[cells[i][j]];
    }
  }
  return counts;
}

Result<PeerMatrix> read_peer_matrix(std::string_view text, const std::string& file) {
  PeerMatrix matrix;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    std::vector<std::string_view> words = split_blanks(line);
    while (!words.empty() && !is_gpu(words.front())) words.erase(words.begin());  // prompts, prefixes
    if (words.size() >= 2 && is_gpu(words[1]) && matrix.devices.empty()) {
      for (const std::string_view word : words) {
        if (is_gpu(word) && matrix.devices.size() < kMaxDevices) matrix.devices.emplace_back(word);
      }
      matrix.cells.assign(matrix.devices.size(), std::vector<std::string>(matrix.devices.size()));
      matrix.line = number;
    } else if (words.size() >= 2 && matrix.devices.empty() && words[1] == "X") {
      matrix.devices.emplace_back(words[0]);  // a single GPU has no header of its own
      matrix.cells.assign(1, {"X"});
    } else if (!words.empty() && words.size() >= 2 && is_word(words[1])) {
      const auto row = std::find(matrix.devices.begin(), matrix.devices.end(), words.front());
      if (row == matrix.devices.end()) continue;
      const auto index = static_cast<std::size_t>(row - matrix.devices.begin());
      for (std::size_t i = 1; i < words.size() && i <= matrix.devices.size(); ++i) matrix.cells[index][i - 1] = std::string(words[i]);
    }
  }
  if (matrix.devices.empty()) return fail("no line of GPU labels", {file, 0, 0}, {"save the output of `nvidia-smi topo -p2p r`"});
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    const bool empty = std::all_of(matrix.cells[i].begin(), matrix.cells[i].end(), [](const std::string& cell) { return cell.empty(); });
    if (empty) matrix.notes.push_back({fmt::format("cut short: no row for {}", matrix.devices[i]), {file, matrix.line, 0}});
  }
  return matrix;
}

Host host_of(const PeerMatrix& matrix, const std::string& file) {
  Host host;
  host.notes = matrix.notes;
  host.notes.push_back({"topo -p2p says who may access whom, not over which links", {file, 0, 0}});
  const int cpu = add_cpu(host, 0);
  const int bridge = add_bridge(host, cpu, 4);
  for (const std::string& name : matrix.devices) {
    const int device = host.add_device({DeviceKind::kGpu, name, {}, {}, {}});
    host.add_duplex(device, bridge, LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "PCIe is not in this file"));
  }
  const std::map<std::string, int> pairs = matrix.pairs();
  const bool any = pairs.count("OK") != 0;
  if (!any && matrix.devices.size() > 1) host.peer_to_peer = false;
  return host;
}

}  // namespace chokepoint::wiring

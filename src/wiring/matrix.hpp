// SPDX-License-Identifier: Apache-2.0
#pragma once
// `nvidia-smi topo -m` between its two steps: text -> Matrix (matrix_text.cpp), Matrix -> Host (matrix_graph.cpp).
#include <chokepoint/topology/topology.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

struct MatrixCell {
  topology::PathClass path = topology::PathClass::kUnknown;
  int nvlinks = 0;
  bool operator==(const MatrixCell&) const = default;
};

struct MatrixDevice {
  std::string label;         ///< as in the header: "GPU0", "NIC3", "mlx5_0"
  std::string alias;         ///< from the NIC legend
  bool gpu = false;
  bool has_row = false;
  std::optional<int> numa;
  std::string cpu_affinity;  ///< as printed; empty when missing
};

/// Symmetric after parsing; `kUnknown` where no row said anything.
struct Matrix {
  std::vector<MatrixDevice> devices;  ///< GPUs in header order, then NICs in header order
  std::vector<MatrixCell> cells;      ///< devices x devices
  std::vector<Note> notes;
  int line = 0;                       ///< of the header

  MatrixCell& at(std::size_t row, std::size_t column) { return cells[row * devices.size() + column]; }
  const MatrixCell& at(std::size_t row, std::size_t column) const { return cells[row * devices.size() + column]; }
};

/// Every matrix of a text, in order; at least one, else an error that says what the text looks like instead.
Result<std::vector<Matrix>> parse_matrices(std::string_view text, const std::string& file);
/// A matrix shortened by hand ("GPU0-3"); no value when the text is none.
std::optional<Matrix> parse_grouped_matrix(std::string_view text, const std::string& file);
topology::Host host_from_matrix(const Matrix& matrix, const std::string& file);

/// Rebuilds NVLink links from the declared classes: direct when one GPU can hold that many links, else an NVSwitch.
void join_declared_nvlinks(topology::Host& host, int links_per_gpu, double link_bytes_per_s, topology::LinkKind kind,
                           const std::string& origin);

}  // namespace chokepoint::wiring

// SPDX-License-Identifier: Apache-2.0
// Matrices of pairs. A heading is a line of consecutive column numbers (or "CPU 00 ... GPU 00 ..."), rows begin with one
// of them; the nearest line of words above says what is measured.
#include <chokepoint/wiring/tables.hpp>

#include "parts.hpp"
#include "scan.hpp"
#include "tool_json.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/wiring/wiring.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace chokepoint::wiring {

using namespace topology;

namespace {

constexpr std::size_t kMaxColumns = 512;
constexpr std::size_t kMaxMatrices = 256;

/// A line's words with "GPU 00" and "CPU 01" joined, arrows left out.
std::vector<std::string> labels_joined(std::string_view line) {
  std::vector<std::string> out;
  const std::vector<std::string_view> words = split_blanks(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "->") continue;
    if ((words[i] == "GPU" || words[i] == "CPU") && i + 1 < words.size() && is_digits(words[i + 1]) && words[i + 1].size() == 2) {
      out.push_back(std::string(words[i]) + std::to_string(to_int(words[i + 1]).value_or(0)));
      ++i;
    } else {
      out.emplace_back(words[i]);
    }
  }
  return out;
}

bool is_corner(std::string_view word) {
  return word == "D\\D" || word == "D/D" || word == "GPU" || word == "CPU" || contains(word, "\\DST") || word == "Device";
}
bool is_device_label(std::string_view word) { return (word.substr(0, 3) == "GPU" || word.substr(0, 3) == "CPU") && is_digits(word.substr(3)); }

/// Columns when the line is a heading.
std::vector<std::string> heading(const std::vector<std::string>& words) {
  std::size_t first = !words.empty() && is_corner(words[0]) ? 1 : 0;
  if (words.size() <= first || words.size() - first > kMaxColumns) return {};
  std::vector<std::string> columns(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
  const bool named = std::all_of(columns.begin(), columns.end(), [](const std::string& word) { return is_device_label(word); });
  if (named && columns.size() > 1) return columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != std::to_string(i)) return {};
  }
  return first == 1 || columns.size() > 1 || columns == std::vector<std::string>{"0"} ? columns : std::vector<std::string>{};
}

std::optional<std::optional<double>> cell(std::string_view word) {
  if (word == "N/A" || word == "-" || word == "\xe2\x80\x94" || word == "\xe2\x80\x93" || word == "X" || word == "--") return std::optional<double>{};
  const auto value = to_number(word);
  if (!value) return std::nullopt;
  return std::optional<double>(*value);
}

void describe(PairMatrix& matrix, const std::string& title) {
  matrix.title = title;
  matrix.titled = !title.empty();
  const std::string words = lower(title);
  if (contains(words, "connectivity")) matrix.unit = PairUnit::kAccess;
  else if (contains(words, "latency") || contains(words, "(us)")) matrix.unit = PairUnit::kSeconds;
  matrix.bidirectional = contains(words, "bidir") || contains(words, "<->");
  if (contains(words, "p2p=enabled")) matrix.peer_access = true;
  if (contains(words, "p2p=disabled")) matrix.peer_access = false;
  matrix.host_memory = contains(words, "cpu(") || contains(words, "host");
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  Result<PairTables> read(std::string_view text);

 private:
  bool matrix_row(const std::vector<std::string>& words);
  bool copy_row(const std::vector<std::string_view>& words, std::string_view line, int number);
  void words_line(std::string_view content);

  std::string file_;
  PairTables found_;
  std::string title_;
  bool open_ = false;        ///< rows may follow
  int copy_header_ = 0;
};

bool Reader::matrix_row(const std::vector<std::string>& words) {
  if (!open_ || found_.matrices.empty() || words.size() < 2) return false;
  PairMatrix& matrix = found_.matrices.back();
  if (!is_digits(words[0]) && !is_device_label(words[0])) return false;
  if (words.size() > matrix.columns.size() + 1) return false;
  std::vector<std::optional<double>> cells;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto value = cell(words[i]);
    if (!value) return false;
    cells.push_back(*value);
  }
  if (matrix.unit == PairUnit::kBytesPerS) for (auto& value : cells) if (value) *value *= 1e9;
  if (matrix.unit == PairUnit::kSeconds) for (auto& value : cells) if (value) *value *= 1e-6;
  cells.resize(matrix.columns.size());
  if (matrix.rows.size() >= kMaxColumns) return false;
  matrix.rows.push_back(words[0]);
  matrix.cells.push_back(std::move(cells));
  return true;
}

/// rocm-bandwidth-test "1 KB 5.400 0.190 5.280 0.194" and hipBusBandwidth "D2H_Bandwidth_pinned 1kB GB/sec 0.04 ...".
bool Reader::copy_row(const std::vector<std::string_view>& words, std::string_view line, int number) {
  const auto size_of = [](std::string_view value, std::string_view unit) -> double {
    const auto number_part = leading_number(value);
    const double scale = contains(unit, "GB") ? kGiB : contains(unit, "MB") ? kMiB : contains_ignoring_case(unit, "kB") ? 1024 : contains(unit, "By") || unit == "B" ? 1 : 0;
    return number_part ? *number_part * scale : 0;
  };
  TableRow row;
  row.line = number;
  if (copy_header_ > 0 && words.size() >= 4 && to_number(words[0]) && (words[1] == "KB" || words[1] == "MB" || words[1] == "GB" || words[1] == "B")) {
    row.bytes = size_of(words[0], words[1]);
    row.time_s = to_number(words[2]).value_or(0.0) * 1e-6;
    row.bus_bytes_per_s = row.algorithm_bytes_per_s = gbyte(to_number(words[3]).value_or(0.0));
  } else if (words.size() >= 5 && words[2] == "GB/sec" && contains(words[0], "Bandwidth")) {
    row.bytes = size_of(words[1], words[1]);
    row.op = std::string(words[0]);
    row.bus_bytes_per_s = row.algorithm_bytes_per_s = gbyte(to_number(words[3]).value_or(0.0));
  } else {
    return false;
  }
  if (found_.copies.empty()) {
    found_.copies.emplace_back();
    found_.copies.back().kind = TableKind::kCopy;
    found_.copies.back().op = "copy";
    found_.copies.back().title = title_.empty() ? std::string(trim(line.substr(0, 40))) : title_;
    found_.copies.back().header_line = copy_header_ > 0 ? copy_header_ : number;
  }
  found_.copies.back().rows.push_back(std::move(row));
  return true;
}

/// Titles, device lists and remarks.
void Reader::words_line(std::string_view content) {
  if (content.substr(0, 8) == "Device: " || (content.substr(0, 7) == "Device=" && contains(content, "CANNOT"))) {
    TableDevice device;
    if (content.substr(0, 8) == "Device: ") {
      const std::vector<std::string_view> parts = split(content.substr(8), ',');
      device.device = leading_int(parts[0]).value_or(0);
      device.rank = device.device;
      if (parts.size() > 1) device.name = std::string(trim(parts[1]));
      if (const auto bus = after(content, "pciBusID: ")) device.bus_id = pci_address(bus->substr(0, bus->find(',')));
      if (found_.devices.size() < kMaxColumns) found_.devices.push_back(std::move(device));
    } else {
      const int a = leading_int(content.substr(7)).value_or(0);
      const auto b = after(content.substr(7), "Device=");
      if (b && found_.no_access.size() < kMaxColumns * kMaxColumns) found_.no_access.emplace_back(a, leading_int(*b).value_or(0));
    }
    return;
  }
  if (content.substr(0, 4) == "SUM ") {
    const std::vector<std::string_view> words = split_blanks(content);
    if (words.size() >= 3) found_.sums[std::string(words[1])] = gbyte(to_number(words[2]).value_or(0.0));
    return;
  }
  const bool says = contains_ignoring_case(content, "bandwidth") || contains_ignoring_case(content, "latency") || contains_ignoring_case(content, "connectivity") ||
                    contains_ignoring_case(content, "memcpy") || contains_ignoring_case(content, "P2P=") || contains_ignoring_case(content, "benchmark");
  if (says && content.substr(0, 3) != "***") title_ = std::string(content.substr(0, 160));
}

Result<PairTables> Reader::read(std::string_view text) {
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::string_view content = trim(line);
    if (content.empty()) continue;
    const std::vector<std::string> words = labels_joined(content);
    if (words.empty()) continue;
    const std::vector<std::string> columns = heading(words);
    // A row "0 1" of a two-by-one matrix looks like a heading: rows go first where the matrix still wants them.
    const bool wanted = open_ && !found_.matrices.empty() && found_.matrices.back().rows.size() < found_.matrices.back().columns.size() &&
                        !is_corner(words[0]) && words.size() == found_.matrices.back().columns.size() + 1;
    if (wanted && matrix_row(words)) continue;
    if (!columns.empty() && found_.matrices.size() < kMaxMatrices) {
      PairMatrix matrix;
      describe(matrix, title_);
      // p2pBandwidthLatencyTest prints a GPU and a CPU matrix of latencies under one title.
      if (words[0] == "CPU" || words[0] == "GPU") matrix.unit = PairUnit::kSeconds;
      if (words[0] == "CPU") matrix.host_memory = true;
      matrix.columns = columns;
      matrix.line = number;
      found_.matrices.push_back(std::move(matrix));
      open_ = true;
      continue;
    }
    if (matrix_row(words)) continue;
    if (contains(content, "Data Size") && contains(content, "BW")) copy_header_ = number;
    if (copy_row(split_blanks(content), content, number)) continue;
    words_line(content);
    const bool ends = contains_ignoring_case(content, "bandwidth") || contains_ignoring_case(content, "latency") || content.substr(0, 4) == "SUM ";
    if (ends) open_ = false;
  }
  found_.matrices.erase(std::remove_if(found_.matrices.begin(), found_.matrices.end(), [](const PairMatrix& matrix) { return matrix.rows.empty(); }), found_.matrices.end());
  if (found_.matrices.empty() && found_.copies.empty() && found_.devices.empty()) {
    return fail("no matrix of pairs", {file_, 0, 0}, {"expected a heading \"D\\D  0  1 ...\" and rows below it"});
  }
  for (const PairMatrix& matrix : found_.matrices) {
    if (!matrix.titled) found_.notes.push_back({"a matrix without a title: taken for " + std::string(matrix.unit == PairUnit::kSeconds ? "latencies in us" : "bandwidths in GB/s"), {file_, matrix.line, 0}});
    if (matrix.rows.size() < matrix.columns.size() && matrix.columns == found_.matrices.front().columns && !matrix.host_memory) {
      found_.notes.push_back({fmt::format("cut short: {} of {} rows", matrix.rows.size(), matrix.columns.size()), {file_, matrix.line, 0}});
    }
  }
  return std::move(found_);
}

}  // namespace

std::optional<double> PairMatrix::lowest() const {
  std::optional<double> best;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t j = 0; j < cells[i].size(); ++j) {
      if (cells[i][j] && rows[i] != columns[j] && (!best || *cells[i][j] < *best)) best = cells[i][j];
    }
  }
  return best;
}

std::optional<double> PairMatrix::highest() const {
  std::optional<double> best;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t j = 0; j < cells[i].size(); ++j) {
      if (cells[i][j] && rows[i] != columns[j] && (!best || *cells[i][j] > *best)) best = cells[i][j];
    }
  }
  return best;
}

Result<PairTables> read_pair_tables(std::string_view text, const std::string& file) {
  if (json_format(text) != Format::kPairTables) return Reader(file).read(text);
  TRY_INTO(const std::string table, nvbandwidth_text(text, file));
  TRY_INTO(PairTables found, Reader(file).read(table));
  for (PairMatrix& matrix : found.matrices) matrix.line = 0;  // of the text that was made, not of the file
  return found;
}

Host host_of(const PairTables& tables, const std::string& file) {
  Host host;
  host.notes = tables.notes;
  std::size_t gpus = tables.devices.size();
  for (const PairMatrix& matrix : tables.matrices) {
    const bool labelled = std::any_of(matrix.columns.begin(), matrix.columns.end(), [](const std::string& label) { return label.substr(0, 3) == "GPU"; });
    const auto count = static_cast<std::size_t>(std::count_if(matrix.columns.begin(), matrix.columns.end(), [](const std::string& label) { return label.substr(0, 3) != "CPU"; }));
    if (labelled || is_digits(matrix.columns.front())) gpus = std::max(gpus, count);
  }
  if (gpus == 0) return host;
  const int cpu = add_cpu(host, 0);
  const int bridge = add_bridge(host, cpu, 4);
  for (std::size_t i = 0; i < gpus; ++i) {
    Device device{DeviceKind::kGpu, fmt::format("GPU{}", i), {}, {}, {}};
    for (const TableDevice& known : tables.devices) {
      if (known.device != static_cast<int>(i)) continue;
      device.model = known.name;
      device.bus_id = known.bus_id;
    }
    const int index = host.add_device(std::move(device));
    host.add_duplex(index, bridge, LinkKind::kPcie, 16, pcie(4, 16, std::string(kAssumed) + "a pair table has no links"));
  }
  if (!tables.no_access.empty()) host.peer_to_peer = false;
  if (!tables.devices.empty()) {
    const Result<hardware::Accelerator> accelerator = hardware::find_accelerator(tables.devices.front().name);
    if (accelerator) host.accelerator = accelerator->name;
  }
  host.notes.push_back({"a pair table says how fast pairs are, not how they are joined", {file, 0, 0}});
  return host;
}

}  // namespace chokepoint::wiring

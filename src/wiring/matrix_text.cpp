// SPDX-License-Identifier: Apache-2.0
// Text -> Matrix. A header names the columns; each row starts at a device name that is followed by path classes, so
// prompts, timestamps and rank prefixes before it do not matter. A row with one cell per column needs no geometry. A
// shorter one is placed by its tabs or Markdown pipes, else by its own X, else from the left with a note.
#include "matrix_line.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>

namespace chokepoint::wiring {

using topology::PathClass;

namespace {

constexpr std::size_t kMaxDevices = 256;  // path tables grow with its square
constexpr std::size_t kMaxBlocks = 256;
constexpr std::size_t kMaxTextBytes = 16u << 20;

enum class Tail { kCpu, kNuma, kGpuNuma };

struct PlacedCell {
  MatrixCell cell;
  int column = 0;
  int field = 0;
};

struct Row {
  std::string label;
  int line = 0;
  bool fields = false;
  std::vector<PlacedCell> cells;
  std::vector<std::string> tail;
};

/// One header and the rows that belong to it.
struct Block {
  std::string prefix;
  int line = 0;
  bool fields = false;
  bool open = true;  ///< no row yet: a wrapped header may go on
  std::vector<std::string> names;
  std::vector<int> columns;
  std::vector<int> field_of;
  std::vector<Tail> tail;
  std::vector<Row> rows;
  std::map<std::string, std::string> legend;
};

std::string join_words(const Line& line, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += line.words[i].text + " ";
  return text;
}

bool is_tail_word(std::string_view word) {
  return starts_with_ignoring_case(word, "cpu") || starts_with_ignoring_case(word, "numa") || lower(word) == "gpu";
}

/// Which affinity columns a header names, in order. Cut words count: "CPU Aff".
std::vector<Tail> parse_tail(const Line& line, std::size_t begin) {
  std::vector<Tail> tail;
  for (std::size_t i = begin; i < line.words.size(); ++i) {
    const std::string word = lower(line.words[i].text);
    if (word.rfind("cpu", 0) == 0) {
      tail.push_back(Tail::kCpu);
    } else if (word.rfind("numa", 0) == 0) {
      const bool of_gpu = i > begin && lower(line.words[i - 1].text) == "gpu";
      tail.push_back(of_gpu ? Tail::kGpuNuma : Tail::kNuma);
    }
  }
  return tail;
}

/// A row of `topo -p2p`: what may be copied directly, not how.
bool is_p2p_row(const Line& line, std::size_t begin) {
  return std::any_of(line.words.begin() + static_cast<std::ptrdiff_t>(begin), line.words.end(), [](const Word& word) {
    return word.text == "OK" || word.text == "NS" || word.text == "CNS" || word.text == "TNS" || word.text == "GNS";
  });
}

class Parser {
 public:
  explicit Parser(const std::string& file) : file_(file) {}
  void read(const Line& line);
  Result<std::vector<Matrix>> finish();

 private:
  bool read_header(const Line& line);
  bool read_header_continuation(const Line& line);
  bool read_row(const Line& line);
  bool read_row_continuation(const Line& line);
  void read_legend(const Line& line);
  Block& block_for(const std::string& prefix);
  void take_cells(const Line& line, std::size_t begin, Row& row);
  Result<Matrix> build(const Block& block) const;
  Result<Block> header_from_rows() const;

  std::string file_;
  std::vector<Block> blocks_;
  std::optional<std::pair<std::size_t, std::size_t>> last_row_;  ///< block and row that a wrapped line may continue
  std::vector<Row> loose_;                                     ///< rows before any header
  int p2p_line_ = 0;                                           ///< a row of `topo -p2p`: OK and NS instead of classes
  std::string group_;                                          ///< "GPU0-3", when columns are groups
  int group_line_ = 0;
};

void Parser::read(const Line& line) {
  if (line.words.empty()) {
    last_row_.reset();
    return;
  }
  if (read_header(line) || read_row(line) || read_header_continuation(line) || read_row_continuation(line)) return;
  read_legend(line);
}

bool Parser::read_header(const Line& line) {
  std::size_t begin = 0;
  while (begin < line.words.size() && !is_gpu_name(line.words[begin].text) && !is_gpu_group(line.words[begin].text)) ++begin;
  if (begin == line.words.size()) return false;
  if (is_gpu_group(line.words[begin].text)) {
    if (group_.empty()) {
      group_ = line.words[begin].text;
      group_line_ = line.number;
    }
    return false;
  }
  std::size_t first = begin;
  while (first > 0 && is_nic_name(line.words[first - 1].text)) --first;  // somebody put the NICs in front
  std::size_t end = first;
  while (end < line.words.size() && is_device_name(line.words[end].text)) ++end;
  const bool known_end = end == line.words.size() || is_tail_word(line.words[end].text) || end - first >= 3;
  std::string_view rest;
  if (!known_end || (end < line.words.size() && !parse_cells(line.words[end].text, rest).empty())) return false;
  if (end < line.words.size() && is_blank_cell(line.words[end].text)) return false;

  Block block;
  block.prefix = join_words(line, 0, first);
  block.line = line.number;
  block.fields = line.fields;
  for (std::size_t i = first; i < end && i - first <= kMaxDevices; ++i) {
    block.names.push_back(line.words[i].text);
    block.columns.push_back(line.words[i].column);
    block.field_of.push_back(line.words[i].field);
  }
  block.tail = parse_tail(line, end);
  if (blocks_.size() <= kMaxBlocks) blocks_.push_back(std::move(block));
  last_row_.reset();
  return true;
}

/// A header that the terminal wrapped: more names, none of them new rows.
bool Parser::read_header_continuation(const Line& line) {
  if (blocks_.empty() || !blocks_.back().open) return false;
  Block& block = blocks_.back();
  std::size_t end = 0;
  while (end < line.words.size() && is_device_name(line.words[end].text)) ++end;
  if (end < line.words.size() && !is_tail_word(line.words[end].text)) return false;
  for (std::size_t i = 0; i < end && block.names.size() <= kMaxDevices; ++i) block.names.push_back(line.words[i].text);
  const std::vector<Tail> tail = parse_tail(line, end);
  block.tail.insert(block.tail.end(), tail.begin(), tail.end());
  block.fields = false;  // positions on two lines cannot be compared
  block.columns.clear();
  return true;
}

/// The latest block that was printed with this prefix: outputs of several hosts may interleave.
Block& Parser::block_for(const std::string& prefix) {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (block->prefix == prefix) return *block;
  }
  return blocks_.back();
}

void Parser::take_cells(const Line& line, std::size_t begin, Row& row) {
  // Blank cells count as cells only while a class still follows; after the last class they belong to the affinities.
  std::size_t last = begin;
  std::string_view rest;
  for (std::size_t i = begin; i < line.words.size(); ++i) {
    if (!parse_cells(line.words[i].text, rest).empty()) last = i + 1;
  }
  for (std::size_t i = begin; i < last && row.cells.size() <= kMaxDevices; ++i) {
    const Word& word = line.words[i];
    const std::vector<MatrixCell> cells = parse_cells(word.text, rest);
    for (const MatrixCell& cell : cells) row.cells.push_back({cell, word.column, word.field});
    if (cells.empty()) row.cells.push_back({{}, word.column, word.field});
    if (!rest.empty() && !cells.empty()) row.tail.emplace_back(rest);
  }
  for (std::size_t i = last; i < line.words.size(); ++i) {
    const std::string& word = line.words[i].text;
    if (!row.tail.empty() && row.tail.back().back() == ',') row.tail.back() += word;
    else row.tail.push_back(word);
  }
}

bool Parser::read_row(const Line& line) {
  std::string_view rest;
  for (std::size_t i = 0; i + 1 < line.words.size(); ++i) {
    std::string label = line.words[i].text;
    if (label.back() == ':' && (is_gpu_name(label.substr(0, label.size() - 1)) || is_nic_name(label.substr(0, label.size() - 1)))) label.pop_back();
    if (is_gpu_group(label) && group_.empty()) {
      group_ = label;
      group_line_ = line.number;
    }
    if (!is_device_name(label) || is_gpu_group(label)) continue;
    if (is_gpu_name(label) && is_p2p_row(line, i + 1)) {
      if (p2p_line_ == 0) p2p_line_ = line.number;
      return true;
    }
    std::size_t first_class = i + 1;
    while (first_class < line.words.size() && is_blank_cell(line.words[first_class].text)) ++first_class;
    if (first_class == line.words.size() || parse_cells(line.words[first_class].text, rest).empty()) continue;
    Row row;
    row.label = label;
    row.line = line.number;
    row.fields = line.fields;
    take_cells(line, i + 1, row);
    if (blocks_.empty()) {
      loose_.push_back(std::move(row));
      return true;
    }
    Block& block = block_for(join_words(line, 0, i));
    block.open = false;
    block.rows.push_back(std::move(row));
    last_row_ = std::make_pair(static_cast<std::size_t>(&block - blocks_.data()), block.rows.size() - 1);
    return true;
  }
  return false;
}

/// A row that the terminal wrapped: cells without a name, while the row above still lacks some.
bool Parser::read_row_continuation(const Line& line) {
  if (!last_row_) return false;
  std::string_view rest;
  Block& block = blocks_[last_row_->first];
  Row& row = block.rows[last_row_->second];
  if (row.cells.size() >= block.names.size() || parse_cells(line.words.front().text, rest).empty()) return false;
  row.fields = false;
  take_cells(line, 0, row);
  return true;
}

/// "NIC0: mlx5_0", also behind a prefix.
void Parser::read_legend(const Line& line) {
  if (blocks_.empty()) return;
  for (std::size_t i = 0; i + 1 < line.words.size(); ++i) {
    std::string_view key = line.words[i].text;
    if (key.size() < 2 || key.back() != ':') continue;
    key.remove_suffix(1);
    if (!starts_with_ignoring_case(key, "nic") || !is_device_name(key) || !is_device_name(line.words[i + 1].text)) continue;
    blocks_.back().legend.emplace(std::string(key), line.words[i + 1].text);
  }
}

std::optional<int> leading_int(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && end < 6 && text[end] >= '0' && text[end] <= '9') ++end;
  return end == 0 ? std::nullopt : to_int(text.substr(0, end));
}

/// Affinities of a row. By the header's order when the numbers agree, else by shape.
void read_affinities(const Row& row, const std::vector<Tail>& tail, MatrixDevice& device) {
  std::vector<std::string> words;
  bool named_numa = false;  // "NUMA 0", written out by hand
  for (const std::string& word : row.tail) {
    if (lower(word) == "numa") named_numa = true;
    else words.push_back(word);
  }
  if (named_numa) {
    if (!words.empty()) device.numa = leading_int(words.back());
    return;
  }
  if (!tail.empty() && words.size() == tail.size()) {
    for (std::size_t i = 0; i < tail.size(); ++i) {
      if (tail[i] == Tail::kCpu && leading_int(words[i])) device.cpu_affinity = words[i];
      if (tail[i] == Tail::kNuma) device.numa = leading_int(words[i]);
    }
    return;
  }
  for (const std::string& word : words) {
    const bool range = word.find_first_of("-,") != std::string::npos && leading_int(word);
    if (range && device.cpu_affinity.empty()) device.cpu_affinity = word;
    else if (leading_int(word) && !device.numa) device.numa = leading_int(word);
  }
}

/// Column of each cell of a row, -1 where it cannot be said. `own` is the row's own column.
std::vector<int> place_cells(const Row& row, const Block& block, int own, std::vector<Note>& notes, const std::string& file) {
  const int columns = static_cast<int>(block.names.size());
  const int count = static_cast<int>(row.cells.size());
  std::vector<int> place(row.cells.size(), -1);
  int self = -1;
  for (int i = 0; i < count; ++i) {
    if (row.cells[static_cast<std::size_t>(i)].cell.path == PathClass::kSelf && self < 0) self = i;
  }
  const SourcePos pos{file, row.line, 0};
  if (count >= columns) {
    for (int i = 0; i < columns; ++i) place[static_cast<std::size_t>(i)] = i;
    if (count > columns) {
      notes.push_back({fmt::format("row {} has {} cells for {} columns; the last {} are left out", row.label, count, columns, count - columns), pos});
    }
    return place;
  }
  if (row.fields && block.fields) {
    bool fits = true;
    for (int i = 0; i < count; ++i) {
      const int field = row.cells[static_cast<std::size_t>(i)].field;
      const auto found = std::find(block.field_of.begin(), block.field_of.end(), field);
      const auto at = found - block.field_of.begin();
      fits = fits && found != block.field_of.end() && (i == 0 || place[static_cast<std::size_t>(i - 1)] < at);
      place[static_cast<std::size_t>(i)] = fits ? static_cast<int>(at) : -1;
    }
    if (fits && (self < 0 || place[static_cast<std::size_t>(self)] == own)) {
      notes.push_back({fmt::format("row {} has {} of {} cells", row.label, count, columns), pos});
      return place;
    }
  }
  std::fill(place.begin(), place.end(), -1);
  if (self >= 0 && own >= 0 && self != own) {
    // Something before the X is missing and nobody can say what; from the X on the order holds.
    for (int i = self; i < count && own + i - self < columns; ++i) place[static_cast<std::size_t>(i)] = own + i - self;
    notes.push_back({fmt::format("row {} has {} of {} cells and its X in place {}, expected {}; only the cells from the X on are used",
                                 row.label, count, columns, self + 1, own + 1), pos});
    return place;
  }
  for (int i = 0; i < count; ++i) place[static_cast<std::size_t>(i)] = i;
  notes.push_back({fmt::format("row {} is cut after {} of {} cells", row.label, count, columns), pos});
  return place;
}

/// Devices of a header and of rows without a column: GPUs first, as the rest of the program expects.
Matrix empty_matrix(const Block& block, const std::vector<std::string>& names, std::vector<std::size_t>& device_of_name) {
  Matrix matrix;
  matrix.line = block.line;
  device_of_name.assign(names.size(), 0);
  for (const bool gpus : {true, false}) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (is_gpu_name(names[i]) != gpus) continue;
      MatrixDevice device;
      device.label = names[i];
      device.gpu = gpus;
      const auto alias = block.legend.find(device.label);
      if (alias != block.legend.end()) device.alias = alias->second;
      device_of_name[i] = matrix.devices.size();
      matrix.devices.push_back(std::move(device));
    }
  }
  matrix.cells.assign(matrix.devices.size() * matrix.devices.size(), {});
  return matrix;
}

int column_of(const Block& block, const std::string& label) {
  for (std::size_t i = 0; i < block.names.size(); ++i) {
    if (lower(block.names[i]) == lower(label)) return static_cast<int>(i);
  }
  for (std::size_t i = 0; i < block.names.size(); ++i) {
    const auto alias = block.legend.find(block.names[i]);
    if (alias != block.legend.end() && alias->second == label) return static_cast<int>(i);
  }
  return -1;
}

/// The column of a row: its name's, else (rows named by the driver, columns by number) the one under its X.
int own_column(const Block& block, const Row& row) {
  const int named = column_of(block, row.label);
  if (named >= 0 || row.cells.size() != block.names.size() || !is_nic_name(row.label)) return named;
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    if (row.cells[i].cell.path == PathClass::kSelf && !is_gpu_name(block.names[i])) return static_cast<int>(i);
  }
  return -1;
}

/// Makes the matrix symmetric; says where its two halves disagree.
Result<bool> reconcile(Matrix& matrix, const std::string& file) {
  int disagreements = 0;
  int compared = 0;
  for (std::size_t a = 0; a < matrix.devices.size(); ++a) {
    for (std::size_t b = a + 1; b < matrix.devices.size(); ++b) {
      MatrixCell& upper = matrix.at(a, b);
      MatrixCell& lower_half = matrix.at(b, a);
      if (upper.path == PathClass::kUnknown) upper = lower_half;
      if (lower_half.path == PathClass::kUnknown) lower_half = upper;
      compared += upper.path == PathClass::kUnknown ? 0 : 1;
      if (upper == lower_half) continue;
      ++disagreements;
      if (disagreements <= 3) {
        matrix.notes.push_back({fmt::format("{} and {} contradict each other: {} in the row of {}, {} in the row of {}; {} is used",
                                            matrix.devices[a].label, matrix.devices[b].label, path_class_name(upper.path, upper.nvlinks),
                                            matrix.devices[a].label, path_class_name(lower_half.path, lower_half.nvlinks),
                                            matrix.devices[b].label, path_class_name(upper.path, upper.nvlinks)),
                                {file, matrix.line, 0}});
      }
      lower_half = upper;
    }
  }
  if (disagreements > 3) matrix.notes.push_back({fmt::format("{} further pairs contradict each other", disagreements - 3), {file, matrix.line, 0}});
  if (disagreements > 2 && disagreements * 3 > compared) {
    return fail(fmt::format("the matrix is not symmetric: {} of {} pairs have one class in one row and another in the other", disagreements, compared),
                {file, matrix.line, 0}, {"rows or columns were moved or come from two hosts; paste the output of one `nvidia-smi topo -m` again"});
  }
  return true;
}

Result<Matrix> Parser::build(const Block& block) const {
  if (block.names.size() > kMaxDevices) {
    return fail(fmt::format("the header names more than {} devices, which no host has", kMaxDevices), {file_, block.line, 0});
  }
  std::vector<std::string> names = block.names;
  for (const Row& row : block.rows) {
    const bool known = own_column(block, row) >= 0 || std::find(names.begin(), names.end(), row.label) != names.end();
    const bool device = is_gpu_name(row.label) || is_nic_name(row.label);  // else prose, or a prefix before the legend
    if (!known && device && names.size() < kMaxDevices) names.push_back(row.label);
  }
  std::vector<std::size_t> device_of_name;
  Matrix matrix = empty_matrix(block, names, device_of_name);
  for (std::size_t i = 0; i < block.names.size(); ++i) {
    if (column_of(block, block.names[i]) != static_cast<int>(i)) {
      return fail(fmt::format("the header names {} twice", block.names[i]), {file_, block.line, 0});
    }
  }
  for (const Row& row : block.rows) {
    const int own = own_column(block, row);
    const auto name = own >= 0 ? names.begin() + own : std::find(names.begin(), names.end(), row.label);
    if (name == names.end()) continue;
    if (own < 0) matrix.notes.push_back({fmt::format("row {} has no column of that name", row.label), {file_, row.line, 0}});
    const std::size_t here = device_of_name[static_cast<std::size_t>(name - names.begin())];
    if (own >= 0 && lower(*name) != lower(row.label) && matrix.devices[here].alias.empty()) matrix.devices[here].alias = row.label;
    MatrixDevice& device = matrix.devices[here];
    if (device.has_row) {
      matrix.notes.push_back({fmt::format("row {} appears twice; the first is used", row.label), {file_, row.line, 0}});
      continue;
    }
    const std::vector<int> place = place_cells(row, block, own, matrix.notes, file_);
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (place[i] < 0) continue;
      const MatrixCell& cell = row.cells[i].cell;
      const bool self = cell.path == PathClass::kSelf;
      if (self != (place[i] == own) && cell.path != PathClass::kUnknown) {
        return fail(fmt::format("row {} has {} under {}, expected the X under its own name", row.label,
                                path_class_name(cell.path, cell.nvlinks), block.names[static_cast<std::size_t>(place[i])]),
                    {file_, row.line, row.cells[i].column + 1}, {"cells of this row were lost or moved; paste the output again"});
      }
      matrix.at(here, device_of_name[static_cast<std::size_t>(place[i])]) = cell;
    }
    device.has_row = true;
    read_affinities(row, block.tail, device);
  }
  TRY_INTO([[maybe_unused]] const bool symmetric, reconcile(matrix, file_));
  return matrix;
}

/// Rows whose header was cut off: square when every row names one column in order.
Result<Block> Parser::header_from_rows() const {
  Block block;
  block.line = loose_.front().line;
  for (const Row& row : loose_) {
    if (column_of(block, row.label) >= 0) break;
    block.names.push_back(row.label);
    block.rows.push_back(row);
  }
  for (const Row& row : block.rows) {
    if (row.cells.size() == block.rows.size()) continue;
    return fail(fmt::format("the header line (GPU0 GPU1 ...) is missing and row {} has {} cells for {} rows", row.label, row.cells.size(),
                            block.rows.size()),
                {file_, row.line, 0}, {"paste the output of `nvidia-smi topo -m` with its first line"});
  }
  return block;
}

Result<std::vector<Matrix>> Parser::finish() {
  if (blocks_.size() > kMaxBlocks) return fail(fmt::format("more than {} matrices in one file", kMaxBlocks), {file_, blocks_.back().line, 0});
  bool any_rows = !loose_.empty();
  for (const Block& block : blocks_) any_rows = any_rows || !block.rows.empty();
  if (!group_.empty() && (!any_rows || blocks_.empty())) {
    return fail(fmt::format("'{}' stands for a group of GPUs: a summary made by hand, expected one row and one column per GPU", group_),
                {file_, group_line_, 0}, {"paste the output of `nvidia-smi topo -m` as it is"});
  }
  if (p2p_line_ > 0 && !any_rows) {
    return fail("this is `nvidia-smi topo -p2p` (OK, NS), which does not say how the GPUs are joined; expected `nvidia-smi topo -m`",
                {file_, p2p_line_, 0}, {"run `nvidia-smi topo -m` on the same host"});
  }
  if (!any_rows) {
    const int line = blocks_.empty() ? 0 : blocks_.front().line;
    return fail(line == 0 ? "no matrix found: expected a header 'GPU0 GPU1 ...' and rows like 'GPU0  X  NV12 ...'"
                          : "a header without rows: expected rows like 'GPU0  X  NV12 ...' below it",
                {file_, line, 0}, {"paste the whole output of `nvidia-smi topo -m`"});
  }
  if (!loose_.empty() && std::all_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.rows.empty(); })) {
    TRY_INTO(Block block, header_from_rows());
    blocks_.assign(1, std::move(block));
    TRY_INTO(Matrix matrix, build(blocks_.front()));
    matrix.notes.push_back({"the header line is missing; columns are taken in the order of the rows", {file_, matrix.line, 0}});
    return std::vector<Matrix>{std::move(matrix)};
  }
  std::vector<Matrix> matrices;
  for (const Block& block : blocks_) {
    if (block.rows.empty()) continue;
    TRY_INTO(Matrix matrix, build(block));
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

}  // namespace

Result<std::vector<Matrix>> parse_matrices(std::string_view text, const std::string& file) {
  if (text.size() > kMaxTextBytes) {
    return fail(fmt::format("{} bytes of text, expected the output of `nvidia-smi topo -m` (some kilobytes)", text.size()), {file, 0, 0});
  }
  Parser parser(file);
  int number = 0;
  for (const std::string_view raw : split_lines(text)) parser.read(cut_line(clean_line(raw), ++number));
  return parser.finish();
}

}  // namespace chokepoint::wiring

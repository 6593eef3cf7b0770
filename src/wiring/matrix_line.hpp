// SPDX-License-Identifier: Apache-2.0
#pragma once
// One line of a pasted `topo -m`: cleaned of what terminals, browsers and chat programs add, then cut into words that
// remember where they stood.
#include "matrix.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

struct Word {
  std::string text;
  int column = 0;  ///< terminal column, tabs expanded to multiples of 8
  int field = 0;   ///< how many tabs (or Markdown pipes) stand before it
};

struct Line {
  std::vector<Word> words;
  bool fields = false;  ///< fields separate cells: the line holds tabs or Markdown pipes
  int number = 0;
};

/// Removes escape sequences (also those whose escape character a paste lost), Markdown quotes, HTML blanks and tags.
std::string clean_line(std::string_view raw);
Line cut_line(const std::string& clean, int number);

bool is_gpu_name(std::string_view text);
/// "GPU0-3": rows that somebody grouped by hand.
bool is_gpu_group(std::string_view text);
/// GPU or NIC name: starts with a letter, holds a digit, is no path class.
bool is_device_name(std::string_view text);
/// A device name with one of the stems that RDMA devices have.
bool is_nic_name(std::string_view text);
/// Path classes in one word; several when cells ran together ("NODENODE", "SYS0-15" gives SYS and leaves "0-15").
/// Empty when the word does not start with a class.
std::vector<MatrixCell> parse_cells(std::string_view word, std::string_view& rest);
/// A cell that says nothing: N/A, -, ?.
bool is_blank_cell(std::string_view text);

}  // namespace chokepoint::wiring

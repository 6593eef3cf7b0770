// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/result.hpp>

namespace chokepoint {

std::string format(const Error& error) {
  std::string out;
  if (!error.pos.file.empty()) {
    out += error.pos.file + ":";
    if (error.pos.line > 0) out += std::to_string(error.pos.line) + ":";
    if (error.pos.line > 0 && error.pos.column > 0) out += std::to_string(error.pos.column) + ":";
    out += " ";
  }
  out += "error: " + error.message + "\n";
  for (const std::string& note : error.notes) out += "  " + note + "\n";
  return out;
}

}  // namespace chokepoint

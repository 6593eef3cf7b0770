// SPDX-License-Identifier: Apache-2.0
// Uses what the program uses of {fmt}; links only if src/base/fmt_implementation.cpp is complete for the installed fmt.
#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  std::string text = fmt::format("{} {:.3f} {:>10} {:L} {:5.1f} {:e} {:x} {:g}\n", argc, 1.5 * argc, argv[0], 12345 * argc,
                                 1.0f * static_cast<float>(argc), 1e30 * argc, argc, static_cast<long double>(argc));
  fmt::format_to(std::back_inserter(text), fmt::runtime("{:.{}f} {:L} {:?^9}\n"), 3.5, argc, 1e6 * argc, "x");
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}

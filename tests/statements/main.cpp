// SPDX-License-Identifier: Apache-2.0
// statements FILE...: checks every statement of the files. Exit code 1 when a statement that is expected to hold does not;
// one that is known to be wrong is printed and counted, and fails nothing.
#include <cstdio>
#include <fmt/format.h>

#include "statement.hpp"

int main(int argc, char** argv) {
  using namespace chokepoint;
  int right = 0;
  int all = 0;
  int broken = 0;
  for (int i = 1; i < argc; ++i) {
    const auto list = statements::read_statements(argv[i]);
    if (!list) {
      fmt::print(stderr, "{}\n", format(list.error()));
      return 2;
    }
    for (const statements::Statement& s : *list) {
      const statements::Verdict verdict = statements::check(s);
      ++all;
      right += verdict.holds ? 1 : 0;
      broken += s.expected && !verdict.holds ? 1 : 0;
      const char* mark = verdict.holds ? (s.expected ? "right" : "right (was known wrong: update the file)")
                                       : (s.expected ? "BROKEN" : "wrong (known)");
      fmt::print("{} {}: {}\n    {}\n", mark, s.id, s.says, verdict.detail);
      if (!verdict.holds && !s.expected) fmt::print("    {}\n", s.reason);
    }
  }
  fmt::print("{} right of {}, {} broken\n", right, all, broken);
  return broken == 0 && all > 0 ? 0 : 1;
}

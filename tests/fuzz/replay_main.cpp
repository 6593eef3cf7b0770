// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer's main: feeds a fuzz target each file named, each file of each folder named, and each of those
// cut off at up to 64 places, as a copy that was not finished would be. A crash, a sanitizer report or a hang fails it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void replay(const fs::path& path) {
  constexpr std::size_t kCuts = 64;
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (std::size_t cut = 0; cut <= kCuts; ++cut) {
    const std::size_t size = text.size() * cut / kCuts;
    // An own copy of the exact size, so that the address sanitizer sees a read past the end.
    const std::vector<std::uint8_t> bytes(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    if (fs::is_regular_file(argv[i])) {
      replay(argv[i]);
      ++inputs;
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      replay(entry.path());
      ++inputs;
    }
  }
  std::printf("%d inputs\n", inputs);
  if (inputs == 0) std::fprintf(stderr, "no inputs: give the target seeds in tests/fuzz/seeds\n");
  return inputs == 0 ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Free spellings of accelerators: "NVIDIA A100-SXM4-80GB", "H100 80GB HBM3", "Tesla V100-PCIe-16GB (Azure NC24s_v3)".
#include <optional>
#include <string>
#include <string_view>

namespace chokepoint::hardware {

/// What a spelling says. Brackets, vendor names and words such as "class" or "GPU" say nothing.
struct SpelledAccelerator {
  std::string plain;                 ///< all words that say something, run together
  std::string family;                ///< letters and digits of the words before form and memory, "rtx4090"
  std::optional<std::string> form;   ///< sxm, pcie, nvl
  std::optional<double> memory_gb;   ///< as printed
};
SpelledAccelerator read_spelling(std::string_view text);

}  // namespace chokepoint::hardware

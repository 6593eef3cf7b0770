// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/hardware/catalogue.hpp>

namespace chokepoint::hardware {

namespace {
constexpr std::array<std::string_view, kDtypeCount> kDtypeNames = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
constexpr std::array<std::string_view, kArchitectureCount> kArchitectureNames = {
    "volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna2", "cdna3", "cdna4", "gaudi", "tpu"};
}  // namespace

std::string_view name(Dtype dtype) { return kDtypeNames[static_cast<std::size_t>(dtype)]; }

std::string_view name(Architecture architecture) { return kArchitectureNames[static_cast<std::size_t>(architecture)]; }

Result<Dtype> parse_dtype(std::string_view text) {
  const std::string word = lower(trim(text));
  for (std::size_t i = 0; i < kDtypeNames.size(); ++i) {
    if (word == kDtypeNames[i]) return static_cast<Dtype>(i);
  }
  if (word == "float32" || word == "float" || word == "32") return Dtype::kFp32;
  if (word == "float16" || word == "half" || word == "16") return Dtype::kFp16;
  if (word == "bfloat16") return Dtype::kBf16;
  if (word == "float8") return Dtype::kFp8;
  if (word == "mxfp8") return Dtype::kFp8;
  if (word == "nvfp4" || word == "mxfp4") return Dtype::kFp4;
  return fail("unknown data type '" + std::string(text.substr(0, 60)) + "', expected fp32, tf32, fp16, bf16, fp8 or fp4");
}

double bytes_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp32:
    case Dtype::kTf32: return 4;
    case Dtype::kFp16:
    case Dtype::kBf16: return 2;
    case Dtype::kFp8: return 1;
    case Dtype::kFp4: return 0.5;
  }
  return 4;
}

Result<Architecture> parse_architecture(std::string_view text) {
  for (std::size_t i = 0; i < kArchitectureNames.size(); ++i) {
    if (lower(text) == kArchitectureNames[i]) return static_cast<Architecture>(i);
  }
  return fail("unknown architecture '" + std::string(text.substr(0, 60)) + "'");
}

}  // namespace chokepoint::hardware

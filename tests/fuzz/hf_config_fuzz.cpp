// SPDX-License-Identifier: Apache-2.0
// Hugging Face config.json: any text gives a model whose counts are finite and positive, or one error with a place.
#include <chokepoint/model/model.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const auto model = model::read_hf_config(std::string_view(reinterpret_cast<const char*>(data), size), "config.json");
  if (!model) {
    if (model.error().message.empty() || model.error().pos.line < 1) std::abort();
    return 0;
  }
  const double total = model::count_parameters(*model).total;
  const double flops = model::step_flops(*model, 4096, 1, model::FlopConvention::kModelFullAttention);
  if (!(total > 0) || !std::isfinite(total) || !(flops > 0) || !std::isfinite(flops)) std::abort();
  return 0;
}

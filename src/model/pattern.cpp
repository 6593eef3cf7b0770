// SPDX-License-Identifier: Apache-2.0
// The letters of a layer pattern.
#include <chokepoint/model/model.hpp>
#include <fmt/format.h>

namespace chokepoint::model {

Result<std::string> expanded_pattern(std::string_view text, int layers) {
  constexpr std::string_view kLetters = "MG*-EmgTw";
  std::string letters;
  for (const char c : text) {
    if (c == '|' || c == ' ') continue;
    if (kLetters.find(c) == std::string_view::npos) {
      return fail(fmt::format("'{}' stands for no kind of layer in the pattern '{}'", std::string_view(&c, 1), text.substr(0, 200)), {},
                  {"M Mamba-2, G gated delta rule, * attention, - MLP, E experts; m, g, T, w: Mamba-2, delta rule, attention and "
                   "windowed attention with MLP or experts behind"});
    }
    letters += c;
  }
  if (letters.empty()) return fail("the layer pattern is empty");
  const auto count = static_cast<std::size_t>(layers);
  if (layers <= 0 || letters.size() > count || count % letters.size() != 0) {
    return fail(fmt::format("the layer pattern has {} letters, the model {} layers", letters.size(), layers), {},
                {"a letter for each layer, or a pattern that repeats evenly"});
  }
  const std::string once = letters;
  while (letters.size() < count) letters += once;
  return letters;
}

}  // namespace chokepoint::model

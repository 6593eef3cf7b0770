// SPDX-License-Identifier: Apache-2.0
// The strict YAML reader: any text parses or gives an error, and every accessor answers for every key at every depth.
#include <chokepoint/base/yaml.hpp>

#include <cstdint>
#include <string_view>

namespace {

void walk(const chokepoint::YamlMap& map) {
  for (const std::string& key : map.keys()) {
    (void)map.position(key);
    (void)map.text(key);
    (void)map.texts(key);
    (void)map.number(key, -1e9, 1e9);
    (void)map.integer(key, -1000, 1000);
    (void)map.boolean(key);
    (void)map.rate(key);
    (void)map.bytes(key);
    (void)map.duration(key);
    (void)map.flop_rate(key);
    if (const auto inner = map.map(key); inner && *inner) walk(**inner);
    if (const auto inner = map.maps(key)) {
      for (const chokepoint::YamlMap& item : *inner) walk(item);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto map = chokepoint::YamlMap::parse(text, "input.yaml")) {
    (void)map->finish();
    walk(*map);
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/base/yaml.hpp>
#include <cstdio>

int main() {
  const auto map = chokepoint::YamlMap::parse("bandwidth: 400 Gb/s\n", "wire.yaml");
  if (!map) return 1;
  const auto rate = map->required_rate("bandwidth");
  if (!rate || *rate != 50e9) return 1;
  std::printf("%s\n", chokepoint::format_rate(*rate).c_str());
  return 0;
}

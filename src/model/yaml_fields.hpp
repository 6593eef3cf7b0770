// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fields of catalogue entries and job files that keep their value where the file says nothing.
#include <chokepoint/base/result.hpp>
#include <chokepoint/base/yaml.hpp>

namespace chokepoint::model {

Result<bool> read_int(const YamlMap& entry, const char* key, int& value);

}  // namespace chokepoint::model

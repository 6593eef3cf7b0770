// SPDX-License-Identifier: Apache-2.0
#pragma once
// Megatron-Core's --pipeline-model-parallel-layout: "Et*3|(tt|)*29,m|L". E embedding, t decoder layer, m multi-token
// prediction layer, L loss, | next stage, ,  nothing, x*n or (x)*n repeats
// (core/transformer/pipeline_parallel_layer_layout.py).
#include <chokepoint/base/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::frameworks {

/// Decoder layers of each stage, virtual stages counted one by one.
Result<std::vector<int>> parse_layout(std::string_view text, const SourcePos& pos);
std::string layout_text(std::span<const int> layers);

}  // namespace chokepoint::frameworks

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the readers of the families share. Defaults are those of the configuration classes in transformers.
#include "json_fields.hpp"

#include <chokepoint/model/model.hpp>

namespace chokepoint::model::hf {

using Names = JsonFields::Names;
constexpr int kMaxWidth = 1 << 24;
constexpr int kMaxLayers = 100000;
constexpr int kMaxHeads = 1 << 16;

/// Class defaults of the sizes. kv_heads 0: as many as heads; head_dim 0: hidden / heads; ffn 0: 4 x hidden.
struct Defaults {
  int layers = 0;
  int hidden = 0;
  int ffn = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab = 0;
};

struct MoeNames {
  Names experts, top_k, ffn;
  int default_experts, default_top_k, default_ffn;
};

Result<bool> read_sizes(const JsonFields& config, const Defaults& defaults, Model& m);
Result<bool> read_kv_heads(const JsonFields& config, int fallback, Model& m);
Result<bool> read_window(const JsonFields& config, Model& m);
/// The families that read like Llama: sizes, grouped queries, a bias switch, a window.
Result<bool> read_llama_like(const JsonFields& config, const Defaults& defaults, Model& m);
Result<Moe> read_moe(const JsonFields& config, const MoeNames& names);

// hf_hybrid.cpp
Result<bool> read_nemotron_h(const JsonFields& config, Model& m);
Result<bool> read_qwen3_next(const JsonFields& config, Model& m);
Result<bool> read_bamba(const JsonFields& config, Model& m);
Result<bool> read_mamba2(const JsonFields& config, Model& m);
Result<bool> read_gpt_oss(const JsonFields& config, Model& m);
// hf_encoder.cpp
Result<bool> read_bert(const JsonFields& config, Model& m);
Result<bool> read_t5(const JsonFields& config, Model& m);
Result<bool> read_vit(const JsonFields& config, Model& m);

}  // namespace chokepoint::model::hf

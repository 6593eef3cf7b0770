// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chokepoint/model/model.hpp>
#include <fmt/format.h>

namespace chokepoint::model {

namespace {

struct Range {
  const char* field;
  int value;
  int low;
  int high;
};

constexpr int kMaxWidth = 1 << 24;

Result<bool> check(const Model& m, const Range& range) {
  if (range.value >= range.low && range.value <= range.high) return true;
  return fail(fmt::format("model{}: {} is {}, expected {} to {}", m.name.empty() ? "" : " '" + m.name + "'", range.field, range.value,
                          range.low, range.high));
}

Result<bool> check_moe(const Model& m) {
  const Moe& moe = *m.moe;
  const std::array<Range, 6> ranges = {{{"experts", moe.experts, 1, 1 << 16},
                                        {"top_k", moe.top_k, 1, moe.experts},
                                        {"expert_ffn_hidden", moe.expert_ffn_hidden, 1, kMaxWidth},
                                        {"shared_ffn_hidden", moe.shared_ffn_hidden, 0, kMaxWidth},
                                        {"first_layer", moe.first_layer, 0, m.layers},
                                        {"every", moe.every, 1, 1 << 16}}};
  for (const Range& range : ranges) {
    TRY_INTO([[maybe_unused]] const bool ok, check(m, range));
  }
  return true;
}

Result<bool> check_mla(const Model& m) {
  const Mla& mla = *m.mla;
  const std::array<Range, 5> ranges = {{{"q_lora_rank", mla.q_lora_rank, 0, kMaxWidth},
                                        {"kv_lora_rank", mla.kv_lora_rank, 1, kMaxWidth},
                                        {"qk_nope_head_dim", mla.qk_nope_head_dim, 0, 1 << 16},
                                        {"qk_rope_head_dim", mla.qk_rope_head_dim, 0, 1 << 16},
                                        {"v_head_dim", mla.v_head_dim, 1, 1 << 16}}};
  for (const Range& range : ranges) {
    TRY_INTO([[maybe_unused]] const bool ok, check(m, range));
  }
  return true;
}

}  // namespace

Result<Model> validated(Model m) {
  const std::array<Range, 11> ranges = {{{"layers", m.layers, 1, 100000},
                                         {"hidden", m.hidden, 1, kMaxWidth},
                                         {"ffn_hidden", m.ffn_hidden, 1, kMaxWidth},
                                         {"heads", m.heads, 1, 1 << 16},
                                         {"kv_heads", m.kv_heads, 1, m.heads},
                                         {"head_dim", m.head_dim, 1, 1 << 16},
                                         {"vocab", m.vocab, 1, kMaxWidth},
                                         {"max_positions", m.max_positions, 0, 1 << 30},
                                         {"norms_per_layer", m.norms_per_layer, 0, 16},
                                         {"embedding_width", m.embedding_width, 0, kMaxWidth},
                                         {"sliding_window", m.sliding_window, 0, 1 << 30}}};
  for (const Range& range : ranges) {
    TRY_INTO([[maybe_unused]] const bool ok, check(m, range));
  }
  if (m.heads % m.kv_heads != 0) {
    return fail(fmt::format("model '{}': {} heads do not divide into {} key-value heads", m.name, m.heads, m.kv_heads));
  }
  if (m.moe) {
    TRY_INTO([[maybe_unused]] const bool ok, check_moe(m));
  }
  if (m.mla) {
    TRY_INTO([[maybe_unused]] const bool ok, check_mla(m));
  }
  return m;
}

}  // namespace chokepoint::model

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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
  const std::array<Range, 7> ranges = {{{"experts", moe.experts, 1, 1 << 16},
                                        {"latent", moe.latent, 0, kMaxWidth},
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

Result<bool> check_mamba(const Model& m) {
  const Mamba& mamba = *m.mamba;
  const std::array<Range, 6> ranges = {{{"Mamba heads", mamba.heads, 1, 1 << 16},
                                        {"Mamba head_dim", mamba.head_dim, 1, 1 << 16},
                                        {"Mamba state", mamba.state, 1, 1 << 16},
                                        {"Mamba groups", mamba.groups, 1, mamba.heads},
                                        {"Mamba conv", mamba.conv, 1, 64},
                                        {"Mamba chunk", mamba.chunk, 1, 1 << 16}}};
  for (const Range& range : ranges) {
    TRY_INTO([[maybe_unused]] const bool ok, check(m, range));
  }
  return true;
}

Result<bool> check_delta(const Model& m) {
  const Delta& delta = *m.delta;
  const std::array<Range, 6> ranges = {{{"delta key_heads", delta.key_heads, 1, 1 << 16},
                                        {"delta key_dim", delta.key_dim, 1, 1 << 16},
                                        {"delta value_heads", delta.value_heads, delta.key_heads, 1 << 16},
                                        {"delta value_dim", delta.value_dim, 1, 1 << 16},
                                        {"delta conv", delta.conv, 1, 64},
                                        {"delta chunk", delta.chunk, 1, 1 << 16}}};
  for (const Range& range : ranges) {
    TRY_INTO([[maybe_unused]] const bool ok, check(m, range));
  }
  return true;
}

/// A kind of layer that the pattern names must be described.
Result<bool> check_kinds(const Model& m, const LayerCounts& kinds) {
  for (int i = 0; i < LayerCounts::kKinds; ++i) {
    if (kinds.at(i) == 0) continue;
    const LayerKind kind = LayerCounts::kind(i);
    const auto missing = [&](const char* what) { return fail(fmt::format("model '{}': its pattern has {}", m.name, what)); };
    if (kind.mixer == Mixer::kMamba && !m.mamba) return missing("Mamba-2 layers, but no sizes of them ('mamba')");
    if (kind.mixer == Mixer::kDelta && !m.delta) return missing("layers of the gated delta rule, but no sizes of them ('delta')");
    if (kind.channel == Channel::kExperts && !m.moe) return missing("experts, but no sizes of them ('moe')");
    if (kind.mixer == Mixer::kWindow && m.sliding_window == 0) return missing("windowed attention, but no 'sliding_window'");
  }
  return true;
}

Result<bool> check_layers(Model& m) {
  if (m.mamba) {
    TRY_INTO([[maybe_unused]] const bool ok, check_mamba(m));
  }
  if (m.delta) {
    TRY_INTO([[maybe_unused]] const bool ok, check_delta(m));
  }
  if (!m.pattern.empty()) {
    auto pattern = expanded_pattern(m.pattern, m.layers);
    if (!pattern) return tl::make_unexpected(std::move(pattern.error()));
    m.pattern = *std::move(pattern);
  }
  if (!m.further_pattern.empty()) {
    auto pattern = expanded_pattern(m.further_pattern, static_cast<int>(std::min<std::size_t>(m.further_pattern.size(), 1000)));
    if (!pattern) return tl::make_unexpected(std::move(pattern.error()));
  }
  if (m.encoder_layers >= m.layers && m.encoder_layers > 0) {
    return fail(fmt::format("model '{}': {} encoder layers leave no decoder of {} layers", m.name, m.encoder_layers, m.layers));
  }
  TRY_INTO([[maybe_unused]] const bool known, check_kinds(m, m.kinds()));
  return check_kinds(m, m.further_kinds());
}

}  // namespace

Result<Model> validated(Model m) {
  const std::array<Range, 18> ranges = {{{"layers", m.layers, 1, 100000},
                                         {"hidden", m.hidden, 1, kMaxWidth},
                                         {"ffn_hidden", m.ffn_hidden, 1, kMaxWidth},
                                         {"heads", m.heads, 1, 1 << 16},
                                         {"kv_heads", m.kv_heads, 1, m.heads},
                                         {"head_dim", m.head_dim, 1, 1 << 16},
                                         {"vocab", m.vocab, 1, kMaxWidth},
                                         {"max_positions", m.max_positions, 0, 1 << 30},
                                         {"norms_per_layer", m.norms_per_layer, 0, 16},
                                         {"embedding_width", m.embedding_width, 0, kMaxWidth},
                                         {"full_attention_every", m.full_attention_every, 0, 100000},
                                         {"further modules", m.further.modules, 0, 64},
                                         {"encoder_layers", m.encoder_layers, 0, 100000},
                                         {"decoder_sequence", m.decoder_sequence, 0, 1 << 30},
                                         {"position_buckets", m.position_buckets, 0, 1 << 20},
                                         {"token_types", m.token_types, 0, 1 << 20},
                                         {"patch_inputs", m.patch_inputs, 0, kMaxWidth},
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
  TRY_INTO([[maybe_unused]] const bool layers, check_layers(m));
  return m;
}

}  // namespace chokepoint::model

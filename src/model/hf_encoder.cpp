// SPDX-License-Identifier: Apache-2.0
// config.json of encoders and encoder-decoders.
#include "hf_readers.hpp"

#include <fmt/format.h>

namespace chokepoint::model::hf {

/// BertConfig and RobertaConfig, with the head for masked tokens.
Result<bool> read_bert(const JsonFields& config, Model& m) {
  const bool roberta = m.family == "roberta";
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {12, 768, 3072, 12, 0, 0, roberta ? 50265 : 30522}, m));
  m.kv_heads = m.heads;
  TRY_INTO(m.max_positions, config.integer_or({"max_position_embeddings"}, roberta ? 514 : 512, 1, 1 << 30));
  TRY_INTO(m.token_types, config.integer_or({"type_vocab_size"}, roberta ? 1 : 2, 0, 1 << 20));
  return true;
}

/// T5Config. Widths of the heads are stated, for they need not add up to the model's.
Result<bool> read_t5(const JsonFields& config, Model& m) {
  TRY_INTO(const int encoder, config.integer_or({"num_layers"}, 6, 1, kMaxLayers / 2));
  TRY_INTO(const int decoder, config.integer_or({"num_decoder_layers"}, encoder, 1, kMaxLayers / 2));
  TRY_INTO(m.hidden, config.integer_or({"d_model"}, 512, 1, kMaxWidth));
  TRY_INTO(m.heads, config.integer_or({"num_heads"}, 8, 1, kMaxHeads));
  TRY_INTO(m.head_dim, config.integer_or({"d_kv"}, 64, 1, kMaxHeads));
  TRY_INTO(m.ffn_hidden, config.integer_or({"d_ff"}, 2048, 1, kMaxWidth));
  TRY_INTO(m.vocab, config.integer_or({"vocab_size"}, 32128, 1, kMaxWidth));
  TRY_INTO(m.position_buckets, config.integer_or({"relative_attention_num_buckets"}, 32, 0, 1 << 20));
  TRY_INTO(const std::optional<std::string> mlp, config.text({"feed_forward_proj"}));
  m.gated_mlp = mlp && mlp->rfind("gated", 0) == 0;
  m.kv_heads = m.heads;
  m.encoder_layers = encoder;
  m.layers = encoder + decoder;
  return true;
}

/// ViTConfig, with the head that classifies; its size is in the number of labels.
Result<bool> read_vit(const JsonFields& config, Model& m) {
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(config, {12, 768, 3072, 12, 0, 0, 1000}, m));
  m.kv_heads = m.heads;
  TRY_INTO(const int image, config.integer_or({"image_size"}, 224, 1, 1 << 14));
  TRY_INTO(const int patch, config.integer_or({"patch_size"}, 16, 1, 1 << 10));
  TRY_INTO(const int channels, config.integer_or({"num_channels"}, 3, 1, 1 << 10));
  if (patch > image) return fail(fmt::format("patches of {} are larger than images of {}", patch, image), config.position("patch_size"));
  const long inputs = static_cast<long>(patch) * patch * channels;
  if (inputs > kMaxWidth) return fail("'patch_size' and 'num_channels' make the patches too large", config.position("patch_size"));
  m.patch_inputs = static_cast<int>(inputs);
  m.max_positions = (image / patch) * (image / patch) + 1;
  TRY_INTO(m.vocab, config.integer_or({"num_labels"}, 1000, 1, kMaxWidth));  // else ImageNet's
  TRY_INTO(m.qkv_bias, config.boolean_or({"qkv_bias"}, true));
  return true;
}

}  // namespace chokepoint::model::hf

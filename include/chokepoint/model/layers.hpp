// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one layer is made of: a mixer that moves information between tokens, then a channel that works on each by itself.
// Layers of a model may differ; a pattern has one letter for each of them:
//
//   M  Mamba-2                    *  attention               letters of Megatron's --hybrid-layer-pattern and of
//   G  gated delta rule           -  MLP      E  experts     Nemotron-H's hybrid_override_pattern: one half a layer
//   m, g, T, w                    Mamba-2, gated delta rule, attention, windowed attention, each with the channel behind
#include <array>
#include <cstdint>

namespace chokepoint::model {

enum class Mixer : std::uint8_t {
  kNone,
  kAttention,  ///< every token sees those before it
  kWindow,     ///< the last `sliding_window` of them
  kEncoder,    ///< all tokens see one another
  kCross,      ///< decoder of an encoder-decoder: attention to itself, then to the encoder's output
  kMamba,
  kDelta,
};
enum class Channel : std::uint8_t { kNone, kMlp, kExperts };

struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  Channel channel = Channel::kMlp;
  bool operator==(const LayerKind&) const = default;
  bool attends() const { return mixer != Mixer::kNone && mixer != Mixer::kMamba && mixer != Mixer::kDelta; }
  bool recurs() const { return mixer == Mixer::kMamba || mixer == Mixer::kDelta; }
  /// Residual branches: 2 of a usual layer, 3 with attention to an encoder, 1 where a layer is a mixer or a channel alone.
  int branches() const {
    return (mixer == Mixer::kNone ? 0 : mixer == Mixer::kCross ? 2 : 1) + (channel == Channel::kNone ? 0 : 1);
  }
};

/// How many layers there are of each kind.
class LayerCounts {
 public:
  static constexpr int kKinds = 21;
  static constexpr int index(LayerKind kind) { return static_cast<int>(kind.mixer) * 3 + static_cast<int>(kind.channel); }
  static constexpr LayerKind kind(int index) { return {static_cast<Mixer>(index / 3), static_cast<Channel>(index % 3)}; }
  int& operator[](LayerKind kind) { return counts_[static_cast<std::size_t>(index(kind))]; }
  int operator[](LayerKind kind) const { return counts_[static_cast<std::size_t>(index(kind))]; }
  int at(int index) const { return counts_[static_cast<std::size_t>(index)]; }
  int total() const {
    int sum = 0;
    for (const int count : counts_) sum += count;
    return sum;
  }
  bool uniform() const {
    int kinds = 0;
    for (const int count : counts_) kinds += count > 0 ? 1 : 0;
    return kinds <= 1;
  }
  bool operator==(const LayerCounts&) const = default;

 private:
  std::array<int, kKinds> counts_{};
};

/// Mamba-2 (arXiv 2405.21060): heads share B and C in groups, as queries share keys.
struct Mamba {
  int heads = 0;
  int head_dim = 64;
  int state = 128;
  int groups = 1;
  int conv = 4;      ///< taps of the causal convolution before the scan
  int chunk = 256;   ///< tokens of one block of the scan (section 6)
  bool operator==(const Mamba&) const = default;
};

/// Gated delta rule (arXiv 2412.06464), as Qwen3-Next builds it.
struct Delta {
  int key_heads = 0;
  int key_dim = 128;
  int value_heads = 0;
  int value_dim = 128;
  int conv = 4;
  int chunk = 64;
  bool operator==(const Delta&) const = default;
};

/// Either of the two in the terms that time and memory need; widths in elements per token.
struct Recurrence {
  double projected = 0;   ///< out of the input projection
  double convolved = 0;   ///< channels of the convolution
  double inner = 0;       ///< into the output projection
  double heads = 0;
  double groups = 0;
  double key = 0;         ///< width of a head's key (B and C; q and k)
  double value = 0;       ///< width of a head's value
  double chunk = 0;
  bool delta = false;     ///< a block also inverts a triangular matrix of chunk x chunk for each head
};

/// Modules that predict further tokens (DeepSeek-V3, arXiv 2412.19437 section 2.2): two norms, a projection of two widths to
/// one, layers of their own, and the model's embedding and head once more.
struct FurtherTokens {
  int modules = 0;
  bool shared_weights = false;  ///< one set of weights for all modules
  bool operator==(const FurtherTokens&) const = default;
};

}  // namespace chokepoint::model

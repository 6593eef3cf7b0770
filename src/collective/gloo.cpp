// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/collective/gloo.hpp>

#include <algorithm>
#include <cmath>

namespace chokepoint::collective {
namespace {

/// Builds one schedule; positions are those in the group.
class Builder {
 public:
  explicit Builder(const std::vector<int>& ranks) : ranks_(ranks) { schedule_.actions.resize(ranks.size()); }

  int message(int from, int to, double bytes) {
    schedule_.messages.push_back({ranks_[static_cast<std::size_t>(from)], ranks_[static_cast<std::size_t>(to)], bytes});
    return static_cast<int>(schedule_.messages.size()) - 1;
  }
  void post(int position, int message) { act(position, GlooStep::kPost, message); }
  void wait(int position, int message) { act(position, GlooStep::kWait, message); }
  int size() const { return static_cast<int>(ranks_.size()); }
  GlooSchedule take() { return std::move(schedule_); }

  /// `pieces` messages from each rank to its neighbour at `shift`; before piece i each rank waits for its own pieces
  /// i - 2, the one it sent and the one it received. Which side it posts first matters: the word that it is ready to
  /// receive waits behind data that it sends.
  void ring(int shift, const std::vector<double>& pieces, bool sends_first) {
    const int n = size();
    std::vector<std::vector<int>> sent(static_cast<std::size_t>(n));
    for (int p = 0; p < n; ++p) {
      for (const double bytes : pieces) sent[static_cast<std::size_t>(p)].push_back(message(p, (p + shift + n) % n, bytes));
    }
    for (int p = 0; p < n; ++p) {
      const auto& out = sent[static_cast<std::size_t>(p)];
      const auto& in = sent[static_cast<std::size_t>((p - shift + n) % n)];
      for (std::size_t i = 0; i < pieces.size() + 2; ++i) {
        if (i >= 2) {
          wait(p, in[i - 2]);
          wait(p, out[i - 2]);
        }
        if (i < pieces.size()) {
          post(p, sends_first ? out[i] : in[i]);
          post(p, sends_first ? in[i] : out[i]);
        }
      }
    }
  }

 private:
  void act(int position, GlooStep step, int message) { schedule_.actions[static_cast<std::size_t>(position)].push_back({step, message}); }
  const std::vector<int>& ranks_;
  GlooSchedule schedule_;
};

/// Segments: two for each rank or more, none above kGlooSegmentBytes, as many for each rank. Each phase sends all but two.
void all_reduce(Builder& builder, double bytes) {
  const double n = builder.size();
  const double segment = std::min(std::ceil(bytes / (2 * n)), kGlooSegmentBytes);
  const double count = std::ceil(std::max(std::ceil(bytes / segment), 2 * n) / n) * n;
  const std::vector<double> pieces(static_cast<std::size_t>(count) - 2, bytes / count);
  builder.ring(-1, pieces, false);
  builder.ring(-1, pieces, false);
}

void all_gather(Builder& builder, double bytes) {
  const int n = builder.size();
  builder.ring(1, std::vector<double>(2 * static_cast<std::size_t>(n - 1), bytes / n / 2), true);
}

/// In turn i the ranks below 2^i (counted from the root) that have the data send it to those 2^i further.
void broadcast(Builder& builder, double bytes, int root) {
  const int n = builder.size();
  std::vector<std::vector<int>> sends(static_cast<std::size_t>(n));
  for (int bit = 1; bit < n; bit *= 2) {
    for (int v = 0; v < bit && v + bit < n; ++v) {
      const int from = (v + root) % n;
      const int to = (v + bit + root) % n;
      const int message = builder.message(from, to, bytes);
      builder.post(from, message);
      sends[static_cast<std::size_t>(from)].push_back(message);
      builder.post(to, message);
      builder.wait(to, message);
    }
  }
  for (int p = 0; p < n; ++p) {
    for (const int message : sends[static_cast<std::size_t>(p)]) builder.wait(p, message);
  }
}

void all_to_all(Builder& builder, double bytes) {
  const int n = builder.size();
  std::vector<int> all;
  for (int p = 0; p < n; ++p) {
    for (int shift = 1; shift < n; ++shift) all.push_back(builder.message(p, (p + shift) % n, bytes / n));
  }
  const auto of = [&](int from, int to) { return all[static_cast<std::size_t>(from * (n - 1) + (to - from + n) % n - 1)]; };
  for (int p = 0; p < n; ++p) {
    for (int shift = 1; shift < n; ++shift) {
      builder.post(p, of(p, (p + shift) % n));
      builder.post(p, of((p - shift + n) % n, p));
    }
    for (int shift = 1; shift < n; ++shift) {
      builder.wait(p, of(p, (p + shift) % n));
      builder.wait(p, of((p - shift + n) % n, p));
    }
  }
}

}  // namespace

GlooSchedule gloo_schedule(Op op, double bytes, const std::vector<int>& ranks, int root) {
  Builder builder(ranks);
  if (builder.size() < 2 || !(bytes > 0) || !std::isfinite(bytes)) return builder.take();
  switch (op) {
    case Op::kAllReduce: all_reduce(builder, bytes); break;
    case Op::kAllGather: all_gather(builder, bytes); break;
    case Op::kBroadcast: broadcast(builder, bytes, root); break;
    case Op::kAllToAll: all_to_all(builder, bytes); break;
    case Op::kReduceScatter:
    case Op::kReduce:
    case Op::kSendRecv: break;
  }
  return builder.take();
}

}  // namespace chokepoint::collective

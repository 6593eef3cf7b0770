// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/units.hpp>
#include <chokepoint/engine/imperfections.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <string>

namespace chokepoint::engine {

namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// Standard normal from two hashed uniforms (Box and Muller).
double normal(std::uint64_t key) {
  const double u = (static_cast<double>(mix(key) >> 11) + 0.5) * 0x1p-53;
  const double v = (static_cast<double>(mix(key ^ 0xABCDEF12345ull) >> 11) + 0.5) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// Log-normal with mean 1, so that spread alone never changes the work there is.
double spread(double deviation, std::uint64_t key) {
  const double s = std::sqrt(std::log1p(deviation * deviation));
  return std::exp(s * normal(key) - 0.5 * s * s);
}

bool to_number(std::string_view text, double& out) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(out)) return false;
  if (percent) out /= 100;
  return true;
}

bool to_integer(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && out >= 0;
}

tl::unexpected<Error> bad(std::string_view text, std::string_view expected) {
  return fail(fmt::format("imperfection \"{}\": expected {}", text.substr(0, 80), expected));
}

Result<bool> parse_pair(std::string_view text, std::string_view key, std::string_view value, Imperfections& into) {
  const std::size_t colon = value.find(':');
  int index = 0;
  double number = 0;
  const bool ok = colon != std::string_view::npos && to_integer(value.substr(0, colon), index) &&
                  to_number(value.substr(colon + 1), number);
  if (key == "slow-rank") {
    if (!ok || number < 0.1 || number > 100)
      return bad(text, "slow-rank=RANK:FACTOR with a factor from 0.1 to 100, such as slow-rank=17:1.08");
    for (const SlowRank& known : into.slow_ranks) {
      if (known.rank == index) return bad(text, "each rank once");
    }
    into.slow_ranks.push_back({index, number});
  } else {
    if (!ok || number < 0.001 || number > 1)
      return bad(text,
                 "slow-host=HOST:SHARE with the share of its network bandwidth that is left, such as slow-host=3:0.5");
    into.slow_hosts.push_back({index, number});
  }
  return true;
}

Result<bool> parse_stall(std::string_view text, std::string_view value, Imperfections& into) {
  constexpr std::string_view kExpected = "stall=RANK:TIME[/STEPS], such as stall=5:200ms/10 (every tenth step)";
  const std::size_t colon = value.find(':');
  Stall stall;
  if (colon == std::string_view::npos || !to_integer(value.substr(0, colon), stall.rank)) return bad(text, kExpected);
  std::string_view time = value.substr(colon + 1);
  if (const std::size_t slash = time.find('/'); slash != std::string_view::npos) {
    if (!to_integer(time.substr(slash + 1), stall.every_steps) || stall.every_steps < 1) return bad(text, kExpected);
    time = time.substr(0, slash);
  }
  TRY_INTO(stall.seconds, parse_duration(time));
  if (!(stall.seconds >= 0) || stall.seconds > 86400) return bad(text, "a stall between 0 s and one day");
  into.stalls.push_back(stall);
  return true;
}

}  // namespace

bool Imperfections::any() const {
  return !slow_ranks.empty() || !slow_hosts.empty() || !stalls.empty() || stage_load != 1 || jitter > 0 ||
         sequence_imbalance > 0 || expert_imbalance > 1;
}

Result<bool> parse_imperfection(std::string_view text, Imperfections& into) {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  if (key == "slow-rank" || key == "slow-host") return parse_pair(text, key, value, into);
  if (key == "stall") return parse_stall(text, value, into);
  double number = 0;
  const bool ok = to_number(value, number);
  if (key == "jitter" || key == "sequences") {
    if (!ok || number < 0 || number > 2)
      return bad(text, "a relative standard deviation from 0 to 200%, such as jitter=2% or sequences=10%");
    (key == "jitter" ? into.jitter : into.sequence_imbalance) = number;
  } else if (key == "experts") {
    if (!ok || number < 1 || number > 1000)
      return bad(text, "the fullest expert rank's load over the mean, from 1 up, such as experts=1.3");
    into.expert_imbalance = number;
  } else if (key == "last-stage") {
    if (!ok || number < 0.1 || number > 100)
      return bad(text, "the last stage's work against the model's, from 0.1 to 100, such as last-stage=1.2");
    into.stage_load = number;
  } else if (key == "seed") {
    if (!ok || number < 0 || number > 9e15 || number != std::floor(number)) return bad(text, "seed=NUMBER");
    into.seed = static_cast<std::uint64_t>(number);
  } else {
    return bad(text, "slow-rank=, slow-host=, stall=, jitter=, sequences=, experts=, last-stage= or seed=");
  }
  return true;
}

Result<bool> check(const Imperfections& imperfections, int ranks, int hosts) {
  for (const SlowRank& s : imperfections.slow_ranks) {
    if (s.rank < 0 || s.rank >= ranks)
      return fail(fmt::format("slow-rank={}: the job has ranks 0 to {}", s.rank, ranks - 1));
  }
  for (const Stall& s : imperfections.stalls) {
    if (s.rank < 0 || s.rank >= ranks)
      return fail(fmt::format("stall={}: the job has ranks 0 to {}", s.rank, ranks - 1));
  }
  for (const SlowHost& s : imperfections.slow_hosts) {
    if (s.host < 0 || s.host >= hosts)
      return fail(fmt::format("slow-host={}: the job has hosts 0 to {}", s.host, hosts - 1));
  }
  return true;
}

double work_factor(const Imperfections& i, int rank, int data_index, int micro_batch, std::uint64_t op, bool last_stage,
                   bool hot_expert) {
  double factor = last_stage ? i.stage_load : 1;
  for (const SlowRank& s : i.slow_ranks) {
    if (s.rank == rank) factor *= s.factor;
  }
  const std::uint64_t step = mix(i.seed + mix(static_cast<std::uint64_t>(i.step)));
  if (i.jitter > 0) factor *= spread(i.jitter, step ^ mix((static_cast<std::uint64_t>(rank) << 32) + op));
  if (i.sequence_imbalance > 0 && micro_batch >= 0) {
    // All ranks that work on the same sequences draw the same length.
    factor *= spread(i.sequence_imbalance, step ^ mix((static_cast<std::uint64_t>(data_index) << 32) +
                                                      static_cast<std::uint64_t>(micro_batch) + (1ull << 63)));
  }
  if (hot_expert && i.expert_imbalance > 1) factor *= 1 + (i.expert_imbalance - 1) * i.expert_share;
  return factor;
}

double stall_s(const Imperfections& i, int rank) {
  double sum = 0;
  for (const Stall& s : i.stalls) {
    if (s.rank == rank && i.step % s.every_steps == 0) sum += s.seconds;
  }
  return sum;
}

}  // namespace chokepoint::engine

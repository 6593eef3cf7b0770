// SPDX-License-Identifier: Apache-2.0
// Problem: attention inside packed documents costs the sum of the squares of their lengths, not the square of the sequence.
// Idea: a token of a document of length l sees l/2 keys on average, and documents hold tokens in proportion to their length, so
// a token sees E[l^2] / E[l] / 2 keys: what a window of that many keys costs. Kernels with variable lengths skip the other
// blocks (flash attention's cu_seqlens).
#include "training_data.hpp"

#include <algorithm>
#include <chokepoint/base/text.hpp>
#include <cmath>
#include <fmt/format.h>

namespace chokepoint::job {

namespace {

constexpr int kLongest = 1 << 26;

/// E[l^2] / E[l] of documents that are listed, each as often as the others.
Result<double> weighted_length(const YamlMap& documents, const std::vector<std::string>& lengths) {
  double sum = 0;
  double squares = 0;
  for (const std::string& text : lengths) {
    const auto length = to_int(text);
    if (!length || *length < 1 || *length > kLongest) {
      return fail(fmt::format("'{}' is no length of a document, expected whole numbers of tokens from 1", text.substr(0, 40)),
                  documents.position("lengths"));
    }
    sum += *length;
    squares += static_cast<double>(*length) * *length;
  }
  return squares / sum;
}

Result<double> read_length(const YamlMap& documents) {
  TRY_INTO(const auto lengths, documents.texts("lengths"));
  if (!lengths.empty()) return weighted_length(documents, lengths);
  TRY_INTO(const double mean, documents.required_number("mean", 1, kLongest));
  TRY_INTO(const auto spread, documents.number("spread", 0, 100));
  return mean * (1 + spread.value_or(0) * spread.value_or(0));
}

}  // namespace

Result<bool> read_adapters(const YamlMap& map, parallel::Job& job) {
  TRY_INTO(const auto rank, map.integer("lora", 1, 1 << 16));
  if (!rank) return true;
  job.frozen_weights = true;
  job.adapter_rank = *rank;
  job.assumptions.push_back({"adapters on every product; the time of their own products is neglected", {}});
  return true;
}

Result<bool> read_documents(const YamlMap& map, parallel::Job& job) {
  TRY_INTO(const auto documents, map.map("documents"));
  if (!documents) return true;
  TRY_INTO(const double length, read_length(*documents));
  TRY_INTO([[maybe_unused]] const bool done, documents->finish());
  model::Model& m = job.model;
  if (length >= job.sequence) return true;
  const int keys = std::max(1, static_cast<int>(std::lround(length / 2)));
  if (m.sliding_window > 0 && m.sliding_window <= keys) {
    job.assumptions.push_back({"documents are longer than the attention windows; layers without a window see whole sequences", {}});
    return true;
  }
  m.sliding_window = keys;
  m.full_attention_every = 0;
  std::replace(m.pattern.begin(), m.pattern.end(), 'T', 'w');
  job.assumptions.push_back({fmt::format("attention inside packed documents: {} keys a token on average", keys), {}});
  return true;
}

}  // namespace chokepoint::job

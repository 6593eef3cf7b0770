// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that are made when first asked for and kept, one for each index. A validation asks for the same few catalogue
// entries thousands of times, a prediction for three of them: neither should parse a whole catalogue, or one entry twice.
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace chokepoint {

/// Thread-safe. `make(i)` is called at most once for each index below `size` and must depend on the index alone.
template <class T>
class LazyEntries {
 public:
  LazyEntries(std::size_t size, T (*make)(std::size_t))
      : make_(make), flags_(std::make_unique<std::once_flag[]>(size)), values_(size) {}

  const T& at(std::size_t index) {
    std::call_once(flags_[index], [this, index] { values_[index] = make_(index); });
    return *values_[index];
  }

 private:
  T (*make_)(std::size_t);
  std::unique_ptr<std::once_flag[]> flags_;
  std::vector<std::optional<T>> values_;
};

}  // namespace chokepoint

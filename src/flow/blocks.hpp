// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lists of (flow, link) incidences in one contiguous array: blocks of a power of two, recycled by size.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chokepoint::flow {

/// One side of "flow f uses link l". Every incidence is stored twice, once with the flow and once with the link, and
/// the two know each other's place.
struct Incidence {
  std::uint32_t other = 0;  ///< in a flow's list the link, in a link's list the flow
  std::uint32_t twin = 0;   ///< place of the other side
  double weight = 1;
};

/// A list: `size` incidences from `begin` on, room for `room`.
struct List {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  std::uint32_t room = 0;
};

class Blocks {
 public:
  Incidence& operator[](std::size_t place) { return items_[place]; }
  const Incidence& operator[](std::size_t place) const { return items_[place]; }

  /// An empty list with room for `count`.
  List take(std::uint32_t count) {
    List list;
    if (count == 0) return list;
    list.room = std::bit_ceil(count);
    std::vector<std::uint32_t>& free = free_[static_cast<std::size_t>(std::countr_zero(list.room))];
    if (free.empty()) {
      list.begin = static_cast<std::uint32_t>(items_.size());
      items_.resize(items_.size() + list.room);
    } else {
      list.begin = free.back();
      free.pop_back();
    }
    return list;
  }
  void give_back(const List& list) {
    if (list.room > 0) free_[static_cast<std::size_t>(std::countr_zero(list.room))].push_back(list.begin);
  }

 private:
  std::vector<Incidence> items_;
  std::array<std::vector<std::uint32_t>, 33> free_;  ///< beginnings of free blocks, by the logarithm of their size
};

}  // namespace chokepoint::flow

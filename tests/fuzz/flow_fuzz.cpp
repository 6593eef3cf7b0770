// SPDX-License-Identifier: Apache-2.0
// Any sequence of starts, ends, changed capacities and passing time: no crash, no hang, no link over its capacity.
#include <chokepoint/flow/fluid.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace chokepoint::flow;

/// Reads the input as numbers; zeros after its end.
class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool more() const { return at_ < size_; }
  std::uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  /// A small number, a power of ten, or any bits.
  double number() {
    const std::uint8_t kind = byte();
    if (kind < 160) return kind;
    if (kind < 240) return std::pow(10.0, kind - 200);
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

void check(const Fluid& fluid) {
  for (std::uint32_t link = 0; link < fluid.links(); ++link) {
    const double load = fluid.load_bytes_per_s(link);
    if (!(load >= 0) || load > fluid.capacity_bytes_per_s(link) * (1 + 1e-6)) std::abort();
  }
  if (!(fluid.next_s() >= fluid.now_s())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Source source(data, size);
  std::vector<double> capacity(source.byte() % 16);
  for (double& value : capacity) value = source.number();
  Fluid fluid(capacity);
  std::vector<FlowId> done;
  std::size_t started = 0;
  std::size_t ended = 0;
  for (int steps = 0; source.more() && steps < 2000; ++steps) {
    const std::uint8_t what = source.byte();
    if (what < 128) {
      std::vector<Use> uses(what % 8);
      for (Use& use : uses) use = {source.byte() % 18U, source.number()};
      const double bytes = source.number();
      const bool limited = source.byte() % 2 == 1;
      fluid.start(uses, bytes, limited ? source.number() : kNever);
      ++started;
    } else if (what < 160) {
      const std::uint32_t link = source.byte() % 18U;
      fluid.set_capacity(link, source.number());
    } else if (what < 176) {
      const std::size_t live = fluid.live();
      fluid.cancel(source.byte());
      ended += live - fluid.live();
    } else {
      fluid.advance(what < 220 ? fluid.next_s() : fluid.now_s() + source.number(), done);
      ended += done.size();
    }
    check(fluid);
  }
  fluid.advance(kNever, done);
  ended += done.size();
  fluid.stalled(done);
  if (ended + fluid.live() != started) std::abort();
  return 0;
}

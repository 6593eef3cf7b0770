// SPDX-License-Identifier: Apache-2.0
// Problem: a recurrence over tokens has little arithmetic, but a matrix of state for each head; stepping through it token by
// token would read and write that state each time. Idea (Mamba-2, arXiv 2405.21060, section 6): cut the sequence into blocks
// of Q tokens; inside a block the recurrence is a masked product as in attention, and only one state per block meets memory.
// Kernel by kernel as mamba_ssm's ssd_combined runs them, each the larger of its products and its bytes: states and the
// products of B and C are written in fp32, states passed on in 16 bits. Backward runs all but the output again, then as many
// products as there are inputs. The delta rule (arXiv 2412.06464) has the same shape with two more products over K and a
// triangular inverse. Rejected: counting FLOPs alone; the states' bytes take longer than the products.
#include "scan.hpp"

#include <algorithm>

namespace chokepoint::simulate {

namespace {

/// Sizes of one micro-batch on one rank. Products in seconds, arrays in bytes.
struct Blocks {
  double keys = 0;     ///< C B^T (Q K^T): Q x Q for each group
  double inside = 0;   ///< masked Q x Q times values, for each head
  double state = 0;    ///< keys^T values: key x value over Q tokens, for each head
  double outside = 0;  ///< keys times an earlier state
  double x = 0, bc = 0, squares = 0, states = 0;
};

Blocks blocks_of(const StepContext& c, const model::Recurrence& r) {
  const double t = c.strategy.tensor;
  const double q = std::min<double>(r.chunk, c.job.sequence);
  const double blocks = std::max(1.0, c.tokens / q);
  const double heads = std::max(1.0, r.heads / t);
  const double groups = std::max(1.0, r.groups / t);
  const auto product = [&](double m, double n, double k, double count) {
    return c.kernels.gemm_s(hardware::Dtype::kBf16, m, n, k, count * blocks);
  };
  Blocks b;
  b.keys = product(q, q, r.key, r.delta ? heads : groups);
  b.inside = product(q, r.value, q, heads);
  b.state = product(r.key, r.value, q, heads);
  b.outside = product(q, r.value, r.key, heads);
  b.x = 2 * c.tokens * heads * r.value;
  b.bc = 2 * c.tokens * groups * r.key;
  b.squares = 4 * q * q * blocks * (r.delta ? heads : groups);
  b.states = 4 * r.key * r.value * heads * blocks;
  return b;
}

}  // namespace

Scan scan_in_blocks(const StepContext& c, const model::Recurrence& r) {
  const Blocks b = blocks_of(c, r);
  const auto kernel = [&](double products_s, double bytes) { return std::max(products_s, c.kernels.memory_s(bytes)); };
  const double states = kernel(b.state, b.x + b.bc + b.states);
  const double passing = c.kernels.memory_s(1.5 * b.states);
  const double keys = kernel(b.keys, 2 * b.bc + b.squares);
  const double output = kernel(b.inside + b.outside, 3 * b.x + b.bc + b.squares + 0.5 * b.states);
  Scan scan;
  scan.forward_s = states + passing + keys + output;
  const double again = states + passing + keys;
  const double state_gradient = kernel(b.outside, b.x + b.bc + b.states) + c.kernels.memory_s(3 * b.states);
  const double value_gradient = kernel(b.inside + b.state, 3 * b.x + b.bc + b.squares + b.states);
  const double key_gradients = kernel(b.state, b.x + 2 * b.bc + b.states) + kernel(b.outside, b.x + 2 * b.bc + 0.5 * b.states) +
                               kernel(b.inside, 2 * b.x + b.squares) + 2 * kernel(b.keys, 2 * b.bc + b.squares);
  scan.backward_s = again + state_gradient + value_gradient + key_gradients;
  if (r.delta) {
    // Before the scan: K K^T, its inverse with the mask, and what it makes of keys and values; backward the same twice.
    const double prepared = kernel(b.keys, b.bc + b.squares) + kernel(2 * b.inside, 2 * b.x + 2 * b.bc + b.squares);
    scan.forward_s += prepared;
    scan.backward_s += 3 * prepared;
  }
  scan.flops = c.tokens * model::scan_flops_per_token(r) / c.strategy.tensor;
  return scan;
}

}  // namespace chokepoint::simulate

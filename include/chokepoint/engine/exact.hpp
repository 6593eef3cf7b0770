// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the closed form and a run on free links are one number. Elsewhere the closed form is the length of one chain of the
// run's operations, each of which contention and interference can only lengthen: a lower bound.
//
//   if (closed_form_is_exact(s.pieces, s.strategy)) { s.step_s == s.closed_form_s but for rounding }
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/pieces.hpp>

namespace chokepoint::engine {

/// The declared subdomain: a pipeline that simulate::pipeline_is_exact() names without data parallelism; or one stage whose
/// gathers and reductions all but those that nothing can hide are shorter than the kernels beside them, on passes of
/// nothing but kernels. Each micro-batch alike, no imperfection, no contention.
bool closed_form_is_exact(const simulate::Pieces& pieces, const parallel::Strategy& strategy);

}  // namespace chokepoint::engine

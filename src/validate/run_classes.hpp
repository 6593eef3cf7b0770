// SPDX-License-Identifier: Apache-2.0
#pragma once
// By what a run is sorted in the residual tables.
#include <chokepoint/validate/validate.hpp>

namespace chokepoint::validate {

/// Labels of a row that has a job.
RunClasses classes_of(const RunRow& row);

/// Rate of the NICs of a host into the fabric for each of its GPUs, bytes per second; 0 when not known.
double network_bytes_per_s_per_gpu(const topology::Cluster& cluster);
/// What joins the GPUs of a host, in words.
std::string link_class(const topology::Host& host);

}  // namespace chokepoint::validate

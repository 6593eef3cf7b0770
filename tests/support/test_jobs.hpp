// SPDX-License-Identifier: Apache-2.0
#pragma once
// Jobs by the names of the catalogue, for the tests of several modules.
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/wiring/wiring.hpp>

namespace chokepoint {

/// All GPUs of `hosts` hosts of a kind.
inline parallel::Job job_on(const char* cluster, int hosts, const char* model, int sequence, double batch) {
  parallel::Job job;
  job.model = *model::find_model(model);
  job.cluster = *wiring::build_cluster(cluster, hosts);
  job.accelerator = *hardware::find_accelerator(job.cluster.hosts.front().host.accelerator);
  job.gpus = job.cluster.gpu_count();
  job.sequence = sequence;
  job.global_batch = batch;
  return job;
}

}  // namespace chokepoint

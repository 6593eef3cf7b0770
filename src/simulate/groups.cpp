// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>

namespace chokepoint::simulate {

namespace {

/// Group of `ranks` members `stride` ranks apart on hosts of `host` GPUs: the members per host are the largest divisor
/// of `ranks` that fits.
collective::Group regular(int ranks, int stride, int host) {
  collective::Group group;
  group.ranks = ranks;
  int inside = std::clamp(host / std::max(1, stride), 1, ranks);
  while (ranks % inside != 0) --inside;
  group.ranks_per_host = inside;
  group.local_stride = std::min(stride, std::max(1, host));
  if (inside == 1) group.local_stride = 1;
  group.host_stride = std::max(1, stride * inside / std::max(1, host));
  return group;
}

}  // namespace

Groups groups_of(const parallel::Job& job, const parallel::Strategy& s) {
  const int host = std::max(1, std::min(job.cluster.gpus_per_host(), job.gpus));
  Groups groups;
  groups.tensor = regular(s.tensor, 1, host);
  groups.context = regular(s.context, s.tensor, host);
  const int data = s.data * s.context;
  groups.data = regular(data, s.tensor, host);
  const int shard = s.shard_ranks > 0 ? s.shard_ranks * s.context : data;
  groups.shard = regular(shard, s.tensor, host);
  groups.replicate = regular(std::max(1, data / shard), s.tensor * shard, host);
  // Experts are not split further (Megatron-Core: expert tensor size 1), so the tensor ranks of a sequence are neighbours
  // in an expert group, each with its slice of the tokens.
  groups.expert = regular(s.expert, 1, host);
  groups.stage_distance = s.tensor * data;
  return groups;
}

}  // namespace chokepoint::simulate

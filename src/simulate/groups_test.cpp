// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <gtest/gtest.h>

namespace chokepoint::simulate {
namespace {

parallel::Job on_hosts(int hosts) {
  parallel::Job job;
  topology::Host host;
  for (int i = 0; i < 8; ++i) host.add_device({topology::DeviceKind::kGpu, "GPU" + std::to_string(i), "", "", {}});
  job.cluster.hosts.push_back({host, hosts});
  job.gpus = 8 * hosts;
  return job;
}

TEST(Groups, TensorInsideAHostLeavesStridedDataGroups) {
  parallel::Strategy s;
  s.tensor = 4;
  s.data = 16;
  const Groups groups = groups_of(on_hosts(8), s);
  EXPECT_EQ(groups.tensor, (collective::Group{.ranks = 4, .ranks_per_host = 4, .local_stride = 1}));
  // Two data ranks per host, four GPUs apart, on all eight hosts.
  EXPECT_EQ(groups.data.ranks_per_host, 2);
  EXPECT_EQ(groups.data.local_stride, 4);
  EXPECT_EQ(groups.data.hosts(), 8);
  EXPECT_EQ(groups.data.host_stride, 1);
}

TEST(Groups, TensorAcrossTwoHostsPutsDataRanksOnEverySecondHost) {
  parallel::Strategy s;
  s.tensor = 16;
  s.data = 4;
  const Groups groups = groups_of(on_hosts(8), s);
  EXPECT_EQ(groups.tensor.hosts(), 2);
  EXPECT_EQ(groups.data.ranks_per_host, 1);
  EXPECT_EQ(groups.data.hosts(), 4);
  EXPECT_EQ(groups.data.host_stride, 2);
}

TEST(Groups, HybridShardingStaysInsideTheHost) {
  parallel::Strategy s;
  s.data = 64;
  s.shard_ranks = 8;
  const Groups groups = groups_of(on_hosts(8), s);
  EXPECT_EQ(groups.shard.hosts(), 1);
  EXPECT_EQ(groups.replicate.ranks, 8);
  EXPECT_EQ(groups.replicate.ranks_per_host, 1);
  EXPECT_EQ(groups.replicate.hosts(), 8);
}

}  // namespace
}  // namespace chokepoint::simulate

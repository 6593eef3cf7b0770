// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/diagnose/slow_link.hpp>

#include <chokepoint/wiring/wiring.hpp>

#include <gtest/gtest.h>

namespace chokepoint::diagnose {
namespace {

/// Ranks of whole hosts of eight, and transfers of two of them: 1 GB in 10 ms of 10 expected, or in 40.
class Job {
 public:
  explicit Job(int hosts) {
    for (int rank = 0; rank < 8 * hosts; ++rank) {
      d_.ranks.emplace_back();
      d_.ranks.back().rank = rank;
    }
  }
  Job& transfer(int a, int b, bool slow) {
    MatchedCollective c;
    c.op = collective::Op::kSendRecv;
    c.op_known = true;
    c.bytes = 1'000'000'000;
    c.group_size = 2;
    c.members = {a, b};
    c.first_end_ns = slow ? 40'000'000 : 10'000'000;
    c.expected_bus_bytes_per_s = 1e11;
    d_.collectives.push_back(c);
    return *this;
  }
  std::optional<SlowLink> found(int hosts) const {
    const auto cluster = wiring::build_cluster("dgx-a100", hosts);
    EXPECT_TRUE(cluster);
    return find_slow_link(d_, *cluster);
  }

 private:
  Diagnosis d_;
};

// Rank 11 is the fourth of host 1; its own transfers are slow, those of its peer and of its neighbours are not.
TEST(SlowLink, IsTheNicThatAllSlowTransfersPassAndNoFastOne) {
  const auto link = Job(3).transfer(3, 11, true).transfer(11, 19, true).transfer(3, 19, false).transfer(8, 16, false).transfer(14, 22, false).found(3);
  ASSERT_TRUE(link);
  EXPECT_NE(link->where.find("of host 1 (rank 11) or its cable"), std::string::npos) << link->where;
  EXPECT_EQ(link->where.substr(0, 4), "NIC ");
  EXPECT_EQ(link->slow, 2);
  EXPECT_EQ(link->fast, 0);
  EXPECT_EQ(link->fast_in_all, 3);
}

TEST(SlowLink, IsTheHostWhereAllItsNicsAreSlow) {
  Job job(3);
  for (int local = 0; local < 8; ++local) job.transfer(local, 8 + local, true).transfer(8 + local, 16 + local, true).transfer(local, 16 + local, false);
  const auto link = job.found(3);
  ASSERT_TRUE(link);
  EXPECT_EQ(link->where.substr(0, 22), "the NICs of host 1 (ra") << link->where;
  EXPECT_EQ(link->slow, 16);
}

TEST(SlowLink, NothingIsNamedWhereEveryHostIsSlowOrNone) {
  Job all(4);
  Job none(4);
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      all.transfer(8 * a, 8 * b, true);
      none.transfer(8 * a, 8 * b, false);
    }
  }
  EXPECT_FALSE(all.found(4));
  EXPECT_FALSE(none.found(4));
}

TEST(SlowLink, InsideAHostItIsThatHostsLinks) {
  const auto link = Job(2).transfer(8, 9, true).transfer(0, 1, false).found(2);
  ASSERT_TRUE(link);
  EXPECT_EQ(link->where.substr(0, 23), "the links inside host 1") << link->where;
}

}  // namespace
}  // namespace chokepoint::diagnose

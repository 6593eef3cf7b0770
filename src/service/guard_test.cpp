// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

#include <gtest/gtest.h>

namespace chokepoint::service {
namespace {

int status(Provenance request, const std::vector<std::string>& names = {}) {
  const auto refusal = refused(request, names);
  return refusal ? refusal->status : 200;
}

Provenance get(std::string_view host) { return {"GET", "/api/v1/status", host, "", "", "", false, 1}; }

TEST(Guard, AnswersToLoopbackNamesOnAnyPort) {
  for (const char* host : {"localhost", "localhost:8420", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8420", "[::1]"}) EXPECT_EQ(status(get(host)), 200) << host;
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8420", "10.0.0.1", "[::2]:8420", ":8420"}) EXPECT_EQ(status(get(host)), 403) << host;
  EXPECT_EQ(status(get("")), 400);
}

TEST(Guard, AnswersToNamesItWasGiven) {
  EXPECT_EQ(status(get("wall.lab:8420"), {"wall.lab"}), 200);
  EXPECT_EQ(status(get("Wall.Lab"), {"wall.lab"}), 200);
  EXPECT_EQ(status(get("other.lab"), {"wall.lab"}), 403);
}

TEST(Guard, AnOriginMustBeThisServer) {
  Provenance request = get("localhost:8420");
  request.origin = "http://localhost:8420";
  EXPECT_EQ(status(request), 200);
  for (const char* origin : {"null", "http://localhost", "http://localhost:84200", "http://evil.example", "file://", "http://localhost:8420.evil.example"}) {
    request.origin = origin;
    EXPECT_EQ(status(request), 403) << origin;
  }
}

TEST(Guard, OtherSitesMayLinkToThePageButNotCallTheApi) {
  Provenance request = get("localhost");
  request.fetch_site = "cross-site";
  EXPECT_EQ(status(request), 403);
  request.path = "/";
  EXPECT_EQ(status(request), 200);
}

TEST(Guard, WritesMustBeJson) {
  Provenance request{"POST", "/api/v1/plan", "localhost", "", "", "application/json; charset=utf-8", true, 1};
  EXPECT_EQ(status(request), 200);
  request.content_type = "text/plain";
  EXPECT_EQ(status(request), 415);
  request.content_type = "";
  EXPECT_EQ(status(request), 415);
  request.method = "GET";
  EXPECT_EQ(status(request), 400);
}

}  // namespace
}  // namespace chokepoint::service

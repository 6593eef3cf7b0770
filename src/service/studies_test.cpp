// SPDX-License-Identifier: Apache-2.0
#include "studies.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chokepoint/base/files.hpp>
#include <filesystem>
#include <set>

namespace chokepoint::service {
namespace {

class SavedStudies : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = std::filesystem::temp_directory_path() / ("chokepoint-studies-test-" + std::to_string(::getpid())); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "deep" / "studies.sqlite").string(); }
  std::filesystem::path folder_;
};

TEST_F(SavedStudies, AreThereAfterReopening) {
  std::string id;
  {
    auto studies = Studies::open(file());
    ASSERT_TRUE(studies) << format(studies.error());
    id = studies->add("first", R"({"x":1})").value().id;
    EXPECT_EQ(studies->replace(id, "second", R"({"x":2})", 1).value().change, Studies::Change::kDone);
    EXPECT_EQ(studies->replace(id, "third", "{}", 1).value().change, Studies::Change::kConflict);
    EXPECT_EQ(studies->replace("none", "third", "{}", std::nullopt).value().change, Studies::Change::kMissing);
  }
  auto studies = Studies::open(file());
  ASSERT_TRUE(studies) << format(studies.error());
  const auto found = studies->find(id).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->document, R"({"x":2})");
  EXPECT_EQ(found->head.revision, 2);
  EXPECT_EQ(studies->list().value().size(), 1u);
  EXPECT_TRUE(studies->remove(id).value());
  EXPECT_FALSE(studies->remove(id).value());
}

TEST_F(SavedStudies, OtherFilesAreLeftAlone) {
  std::filesystem::create_directories(folder_ / "deep");
  ASSERT_TRUE(write_text_file(file(), "my thesis, which is no database at all, and longer than a header would be: " + std::string(200, 'x')));
  const auto studies = Studies::open(file());
  ASSERT_FALSE(studies);
  EXPECT_EQ(studies.error().message, "studies: file is not a database");
  std::filesystem::remove(file());
  sqlite3* other = nullptr;
  sqlite3_open(file().c_str(), &other);
  sqlite3_exec(other, "CREATE TABLE bookmarks(x)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  const auto bookmarks = Studies::open(file());
  ASSERT_FALSE(bookmarks);
  EXPECT_EQ(bookmarks.error().message, "is another program's database, expected a file of studies");
}

TEST_F(SavedStudies, SurviveTheDeletionOfTheirFileWhileOpen) {
  const std::vector<std::vector<std::string>> deletions{{""}, {"-wal"}, {"", "-wal", "-shm"}, {"-shm", "-wal"}};
  for (const std::vector<std::string>& parts : deletions) {
    std::string first, second;
    {
      auto studies = Studies::open(file());
      ASSERT_TRUE(studies) << format(studies.error());
      first = studies->add("first", "1").value().id;
      for (const std::string& part : parts) std::filesystem::remove(file() + part);
      const auto added = studies->add("second", "2");
      ASSERT_TRUE(added) << format(added.error());
      second = added->id;
      EXPECT_EQ(studies->find(first).value()->document, "1");
    }
    auto studies = Studies::open(file());
    ASSERT_TRUE(studies) << format(studies.error());
    ASSERT_TRUE(studies->find(first).value());
    ASSERT_TRUE(studies->find(second).value());
    EXPECT_EQ(studies->find(second).value()->document, "2");
  }
}

TEST_F(SavedStudies, SurviveTheDeletionOfTheirFolder) {
  auto studies = Studies::open(file());
  const std::string id = studies->add("first", "1").value().id;
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(studies->list().value().size(), 1u);
  EXPECT_TRUE(Studies::open(file())->find(id).value());
}

TEST_F(SavedStudies, AnotherFileInTheirPlaceIsTakenAndGetsWhatItLacks) {
  const std::string other = (folder_ / "other.sqlite").string();
  std::string there;
  { there = Studies::open(other)->add("there", "2").value().id; }
  auto studies = Studies::open(file());
  const std::string here = studies->add("here", "1").value().id;
  std::filesystem::rename(other, file());
  EXPECT_EQ(studies->find(there).value()->document, "2");
  EXPECT_EQ(studies->find(here).value()->document, "1");
  EXPECT_EQ(Studies::open(file())->list().value().size(), 2u);
}

TEST_F(SavedStudies, WhatIsNoDatabaseInTheirPlaceIsLeftAloneAndNothingIsLost) {
  auto studies = Studies::open(file());
  const std::string id = studies->add("first", "1").value().id;
  const std::string essay = "an essay, longer than a database's header would be: " + std::string(200, 'x');
  std::filesystem::remove(file());
  ASSERT_TRUE(write_text_file(file(), essay));
  const auto refused = studies->add("second", "2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "studies: file is not a database");
  EXPECT_EQ(refused.error().pos.file, file());
  EXPECT_EQ(read_text_file(file()).value(), essay);
  std::filesystem::remove(file());
  EXPECT_EQ(studies->find(id).value()->document, "1");
}

TEST_F(SavedStudies, AnotherProgramsLockIsSaidAndChangesNothing) {
  auto studies = Studies::open(file());
  sqlite3* other = nullptr;
  sqlite3_open(file().c_str(), &other);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto refused = studies->add("first", "1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, Studies::kLocked);
  sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_TRUE(studies->list().value().empty());
  EXPECT_TRUE(studies->add("first", "1"));
}

/// A process saves studies as fast as it can and says which are saved; it is killed in the middle, again and again. Every
/// study that it had said to be saved is there afterwards, whole.
TEST_F(SavedStudies, NoneIsLostToAKillInTheMiddleOfAWrite) {
  ASSERT_TRUE(Studies::open(file()));
  std::set<std::string> said;
  const std::string document = "{\"x\":\"" + std::string(100000, 'a') + "\"}";
  constexpr int kKills = 8;
  for (int round = 0; round < kKills; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto studies = Studies::open(file());
      for (int i = 0; studies; ++i) {
        const auto saved = studies->add("s", document);
        if (!saved || ::write(ends[1], saved->id.data(), saved->id.size()) < 0) break;
        if (i % 2 == 1 && !studies->replace(saved->id, "t", document, std::nullopt)) break;
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    // Killed while it works on the one after these.
    char id[24];
    for (int i = 0; i < 3 + round && ::read(ends[0], id, sizeof id) == static_cast<ssize_t>(sizeof id); ++i) said.emplace(id, sizeof id);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(ends[0], id, sizeof id) == static_cast<ssize_t>(sizeof id)) said.emplace(id, sizeof id);
    ::close(ends[0]);
  }
  EXPECT_GE(said.size(), 3u * kKills);
  auto studies = Studies::open(file());
  ASSERT_TRUE(studies) << format(studies.error());
  for (const std::string& id : said) {
    const auto found = studies->find(id).value();
    ASSERT_TRUE(found) << id;
    EXPECT_EQ(found->document, document);
  }
}

}  // namespace
}  // namespace chokepoint::service

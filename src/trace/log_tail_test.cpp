// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/log_tail.hpp>

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace chokepoint::trace {
namespace {

namespace fs = std::filesystem;

/// A file of its own for each test, removed afterwards.
class LogTailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("chokepoint_tail_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = (folder_ / "train.log").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  static std::string text_of(LogTail& tail) {
    const auto gained = tail.look();
    return gained ? gained->text : gained.error().message;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(LogTailTest, GivesOnlyWholeLinesAndEachOnce) {
  LogTail tail(path_);
  EXPECT_TRUE(tail.look()->missing);
  append("a\nb");
  EXPECT_EQ(text_of(tail), "a\n");
  EXPECT_EQ(text_of(tail), "");
  append("c\n");
  EXPECT_EQ(text_of(tail), "bc\n");
}

TEST_F(LogTailTest, AFileCutShortBeginsAnew) {
  LogTail tail(path_);
  append("one\ntwo\n");
  EXPECT_EQ(text_of(tail), "one\ntwo\n");
  std::ofstream(path_, std::ios::trunc) << "three\n";
  const auto gained = tail.look();
  EXPECT_TRUE(gained->restarted);
  EXPECT_EQ(gained->text, "three\n");
}

TEST_F(LogTailTest, AFileCutShortAndGrownPastTheOldEndIsNoticed) {
  LogTail tail(path_);
  append("one\n");
  EXPECT_EQ(text_of(tail), "one\n");
  std::ofstream(path_, std::ios::trunc) << "another beginning\nand more\n";
  const auto gained = tail.look();
  EXPECT_TRUE(gained->restarted);
  EXPECT_EQ(gained->text, "another beginning\nand more\n");
}

TEST_F(LogTailTest, ARotatedFileIsReadToItsEndBeforeItsSuccessor) {
  LogTail tail(path_);
  append("one\n");
  EXPECT_EQ(text_of(tail), "one\n");
  append("last words");
  fs::rename(path_, path_ + ".1");
  EXPECT_EQ(text_of(tail), "");  // its successor is not there yet: it may still grow
  append("new\n");
  EXPECT_EQ(text_of(tail), "last words\n");
  const auto gained = tail.look();
  EXPECT_TRUE(gained->restarted);
  EXPECT_EQ(gained->text, "new\n");
}

TEST_F(LogTailTest, AFolderIsOneClearMessage) {
  LogTail tail(folder_.string());
  EXPECT_EQ(text_of(tail), "is no regular file, so it cannot be followed: " + folder_.string());
}

}  // namespace
}  // namespace chokepoint::trace

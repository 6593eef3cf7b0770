// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/files.hpp>

#include <filesystem>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <thread>

namespace chokepoint {
namespace {

using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("chokepoint-files-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST_F(Files, WhatWasWrittenIsRead) {
  ASSERT_TRUE(write_text_file(path("a"), std::string("x\0y\r\n", 5)));
  EXPECT_EQ(read_text_file(path("a")).value(), std::string("x\0y\r\n", 5));
  EXPECT_FALSE(std::filesystem::exists(path("a.partial")));
}

TEST_F(Files, APipeIsReadToItsEnd) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(file_exists(path("pipe")));
  const std::string sent(200'000, 'z');  // more than a pipe holds at once
  std::thread writer([&] { EXPECT_TRUE(write_text_file(path("pipe"), sent)); });
  const auto text = read_text_file(path("pipe"));
  writer.join();
  EXPECT_EQ(text.value(), sent);
}

TEST_F(Files, DirectoriesAndMissingFilesAreErrorsThatNameThem) {
  EXPECT_THAT(format(read_text_file(path("none")).error()), HasSubstr("no such file"));
  EXPECT_THAT(format(read_text_file(folder_.string()).error()), HasSubstr("is a directory, expected a file"));
  EXPECT_FALSE(file_exists(folder_.string()));
}

TEST_F(Files, AnOutputNeverReplacesAnInputWhateverItsSpelling) {
  ASSERT_TRUE(write_text_file(path("in.csv"), "a,b\n"));
  const std::vector<std::string> inputs = {path("other"), path("in.csv")};
  const auto refused = check_output((folder_ / "." / "in.csv").string(), inputs);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("would replace its own input"));
  EXPECT_TRUE(check_output(path("out.csv"), inputs));
  EXPECT_TRUE(check_output("-", inputs));
  std::filesystem::create_hard_link(path("in.csv"), path("link.csv"));
  EXPECT_FALSE(check_output(path("link.csv"), inputs));
}

}  // namespace
}  // namespace chokepoint

#include "src/os/write_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

TEST(WriteFileTest, ReplacesFilesOnlyAndOnlyWhenAsked) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "made" / "out").string();
  ASSERT_TRUE(WriteFile(path, "one", false).ok());
  EXPECT_EQ(WriteFile(path, "two", false).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(path), "one");
  ASSERT_TRUE(WriteFile(path, "two", true).ok());
  EXPECT_EQ(ReadFile(path), "two");

  const fs::path link = folder.path() / "link";
  fs::create_symlink(path, link);
  for (const fs::path& other : {link, folder.path() / "made"}) {
    EXPECT_EQ(WriteFile(other.string(), "three", true).code(), StatusCode::kAlreadyExists) << other;
  }
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadFile(path), "two");
}

TEST(WriteFileTest, SaysWhatAKilledRunLeft) {
  const TemporaryFolder folder;
  folder.Write("out.reshard", "half");
  const Status status = WriteFile((folder.path() / "out").string(), "whole", false);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_NE(status.message().find("out.reshard: exists; another run"), std::string::npos);
  EXPECT_EQ(ReadFile(folder.path() / "out.reshard"), "half");
}

}  // namespace
}  // namespace reshard

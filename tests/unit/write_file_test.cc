#include "src/os/write_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/temporary_folder.h"

namespace reshard::write_file_test {
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

TEST(SingleOutputTest, ClearsWhatAKilledRunLeft) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "out").string();
  folder.Write("out.reshard", "half");
  auto output = SingleOutput::Claim(path, false);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(SingleOutput::Claim(path, false).status().code(), StatusCode::kAlreadyExists);
  auto file = output->Create(5, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->WriteAt(0, std::as_bytes(std::span(std::string_view("whole")))).ok());
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(output->Publish().ok());
  EXPECT_EQ(ReadFile(path), "whole");
  EXPECT_FALSE(fs::exists(path + ".reshard"));
}

// Both ways.
TEST(WriteFileTest, PlacesThatAreNotFreeAreNamedAsTheyWereGiven) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("fi\nle", "old");
  const std::string link = folder.path() / "link";
  fs::create_symlink(file, link);
  const struct {
    std::string path;
    bool replace;
    StatusCode code;
    std::string message;
  } rows[] = {
      {file, false, StatusCode::kAlreadyExists,
       "fi\\nle: exists; choose another name or pass `force` to replace a file"},
      {link, true, StatusCode::kAlreadyExists, "link: is a symbolic link; choose another name"},
      {folder.path(), true, StatusCode::kAlreadyExists, ": is a folder; choose another name"},
      {folder.path() / "..", true, StatusCode::kInvalidArgument, "is not the name of a file"},
      {folder.path() / "made" / "", true, StatusCode::kInvalidArgument,
       "is not the name of a file"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.message);
    for (const Status& status : {WriteFile(row.path, "new", row.replace),
                                 SingleOutput::Claim(row.path, row.replace).status()}) {
      EXPECT_EQ(status.code(), row.code);
      EXPECT_NE(status.message().find(row.message), std::string::npos) << status.message();
    }
  }
  EXPECT_EQ(ReadFile(file), "old");
  EXPECT_FALSE(fs::exists(folder.path() / "made"));
}

// Folders that were made for it included. The name has no room for what marks it as staged.
TEST(WriteFileTest, AFailureLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "made" / "too" / std::string(250, 'n');
  EXPECT_FALSE(WriteFile(path, "bytes", false).ok());
  EXPECT_FALSE(SingleOutput::Claim(path, false).ok());
  EXPECT_FALSE(fs::exists(folder.path() / "made"));
}

}  // namespace
}  // namespace reshard::write_file_test

// Folders as they are listed, and kinds of paths.
#include "src/os/directory_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// name, "d", "f" or "-"
std::vector<std::string> Described(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> described;
  described.reserve(entries.size());
  for (const DirectoryEntry& entry : entries) {
    described.push_back(entry.name + (entry.is_directory ? " d" : entry.is_regular ? " f" : " -"));
  }
  return described;
}

class DirectoryListing : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("rank_10/a.ckpt", "a");
    folder_.Write("rank_2/a.ckpt", "a");
    folder_.Write("File", "");
    folder_.Write("\xc3\xa4", "");
    folder_.Write(".hidden", "");
    fs::create_symlink("rank_2", Path("to_folder"));
    fs::create_symlink("File", Path("to_file"));
    fs::create_symlink("nothing", Path("to_nothing"));
    fs::create_symlink("to_itself", Path("to_itself"));
    ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  }
  std::string Path(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

TEST_F(DirectoryListing, IsSortedByBytesAndFollowsLinks) {
  const auto entries = ListDirectory(folder_.path());
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  EXPECT_THAT(Described(*entries),
              ElementsAre(".hidden f", "File f", "pipe -", "rank_10 d", "rank_2 d", "to_file f",
                          "to_folder d", "to_itself -", "to_nothing -", "\xc3\xa4 f"));
}

TEST_F(DirectoryListing, NamesWhatCannotBeListed) {
  EXPECT_EQ(ListDirectory(Path("nothing")).status().code(), StatusCode::kNotFound);
  const Status status = ListDirectory(Path("File")).status();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), HasSubstr("/File: cannot list the folder: Not a directory"));
}

TEST_F(DirectoryListing, KindsOfPaths) {
  struct {
    const char* name;
    PathKind kind;
  } const rows[] = {
      {"File", PathKind::kFile},          {"rank_2", PathKind::kDirectory},
      {"to_file", PathKind::kFile},       {"to_folder", PathKind::kDirectory},
      {"to_nothing", PathKind::kMissing}, {"to_itself", PathKind::kMissing},
      {"nothing", PathKind::kMissing},    {"File/below", PathKind::kMissing},
      {"pipe", PathKind::kOther},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto kind = KindOf(Path(row.name));
    ASSERT_TRUE(kind.ok()) << kind.status().message();
    EXPECT_EQ(*kind, row.kind);
  }
  EXPECT_TRUE(CheckIsFolder(Path("to_folder")).ok());
  EXPECT_EQ(CheckIsFolder(Path("File")).code(), StatusCode::kNotFound);
  EXPECT_THAT(CheckIsFolder(Path("File")).message(),
              HasSubstr("/File: expected a folder, found a file"));
  EXPECT_THAT(CheckIsFolder(Path("pipe")).message(), HasSubstr("found a device, socket or pipe"));
  EXPECT_THAT(CheckIsFolder(Path("to_nothing")).message(), HasSubstr("found nothing"));
  EXPECT_EQ(KindOf(std::string(5000, 'a')).status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace reshard

// Folders as they are listed, kinds of paths, and where paths lie to one another.
#include "src/os/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "src/os/path_location.h"
#include "tests/support/temporary_folder.h"

namespace reshard::paths_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// name, "d", "f" or "-", and "l" of a link
std::vector<std::string> Described(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> described;
  described.reserve(entries.size());
  for (const DirectoryEntry& entry : entries) {
    described.push_back(entry.name +
                        (entry.is_directory ? " d"
                         : entry.is_regular ? " f"
                                            : " -") +
                        (entry.is_link ? "l" : ""));
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
              ElementsAre(".hidden f", "File f", "pipe -", "rank_10 d", "rank_2 d", "to_file fl",
                          "to_folder dl", "to_itself -l", "to_nothing -l", "\xc3\xa4 f"));
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
  EXPECT_EQ(KindOf(std::string(5000, 'a')).status().code(), StatusCode::kIo);
}

class PathRelationTest : public testing::Test {
 protected:
  PathRelationTest() {
    folder_.Write("a/b/file", "");
    fs::create_directory_symlink("a", At("link"));
    fs::create_symlink("a/b/none", At("dangling"));
    fs::create_symlink("file", At("a/b/to_file"));
    fs::create_symlink("none", At("to_none"));
    fs::create_symlink("to_none", At("twice"));
  }

  std::string At(const std::string& path) const { return (folder_.path() / path).string(); }

  std::optional<std::string> From(const std::string& folder, const std::string& path) const {
    const auto inner = PathLocation::Of(At(path));
    const auto outer = PathLocation::Of(At(folder));
    EXPECT_TRUE(inner.ok() && outer.ok()) << folder << ", " << path;
    return inner.ok() && outer.ok() ? inner->From(*outer) : std::nullopt;
  }

  const TemporaryFolder folder_;
};

TEST_F(PathRelationTest, TellsTheWayFromAFolder) {
  const struct {
    const char* folder;
    const char* path;
    std::optional<std::string> way;
  } rows[] = {
      {"a", "a/b/file", "b/file"},
      {"a", "a", ""},
      {"a/", "a/b/", "b"},
      {"a", "a/b/../b/./file", "b/file"},
      {"a", "link/b/file", "b/file"},
      {"link", "a/b/file", "b/file"},
      {"a", "a/b/new", "b/new"},
      {"a", "a/new/file", "new/file"},
      {"a", "dangling", "b/none"},
      {"a", "a/b/to_file", "b/file"},
      {"a/b", "a/file", std::nullopt},
      {"a/b", "a", std::nullopt},
      {"none", "to_none/x/y", "x/y"},
      {"to_none", "twice/x", "x"},
      {"none", "none", ""},
      {"none", "none/x/y", "x/y"},
      {"none/x", "none/./x/y", "y"},
      {"none/x", "none/xy", std::nullopt},
      {"none/x", "none", std::nullopt},
      {"none", "other", std::nullopt},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(From(row.folder, row.path), row.way) << row.folder << " to " << row.path;
  }
}

TEST_F(PathRelationTest, TellsOneFileByAllItsNames) {
  fs::create_hard_link(At("a/b/file"), At("second"));
  EXPECT_EQ(From("a/b/file", "second"), "");
}

TEST_F(PathRelationTest, TakesPathsAsTheyAreGiven) {
  const auto here = PathLocation::Of(".");
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_EQ(PathLocation::Of("x/../y")->From(*here), "y");
  EXPECT_EQ(PathLocation::Of((fs::current_path() / "y").string())->From(*here), "y");
  EXPECT_EQ(PathLocation::Of("/")->From(*PathLocation::Of("/")), "");
}

// As the work folder of another run does.
TEST_F(PathRelationTest, AFolderMayComeAndGoMeanwhile) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      fs::create_directory(At("work"));
      fs::remove(At("work"));
    }
  });
  StatusCode code = StatusCode::kOk;
  for (int i = 0; i < 5000 && code == StatusCode::kOk; ++i) {
    code = PathLocation::Of(At("work")).status().code();
  }
  done = true;
  other.join();
  EXPECT_EQ(code, StatusCode::kOk);
}

TEST_F(PathRelationTest, ACircleOfLinksIsAnError) {
  fs::create_symlink("round", At("round"));
  EXPECT_EQ(PathLocation::Of(At("round")).status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace reshard::paths_test

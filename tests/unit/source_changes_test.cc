// SourceFiles: files that change while they are in use are found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "src/io/source_files.h"
#include "src/io/storage.h"
#include "src/os/file_pages.h"
#include "tests/support/source_content.h"
#include "tests/support/temporary_folder.h"

namespace reshard::source_changes_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What can happen to a file between two uses, and what the message says of it.
struct Change {
  const char* name;
  std::function<void(const std::string& path)> make;
  const char* words;
};

FileIdentity Stat(const std::string& path) { return *Storage::Of(path).Stat(path); }

void Overwrite(const std::string& path) {
  std::fstream(path, std::ios::in | std::ios::out) << "CHANGED";
}

void OverwriteAndRestoreTime(const std::string& path) {
  const auto time = fs::last_write_time(path);
  const FileIdentity before = Stat(path);
  // The clock of files may tick slowly: until its next tick, not even the kernel sees a difference.
  do {
    Overwrite(path);
    fs::last_write_time(path, time);
  } while (Stat(path).ctime_ns() == before.ctime_ns());
}

void ReplaceByCopy(const std::string& path) {
  fs::copy_file(path, path + ".new");
  fs::last_write_time(path + ".new", fs::last_write_time(path));
  fs::rename(path + ".new", path);
}

const Change kChanges[] = {
    {"shrunk", [](const std::string& path) { fs::resize_file(path, 9000); },
     "9000 bytes, were 10000"},
    {"grown", [](const std::string& path) { fs::resize_file(path, 10001); },
     "10001 bytes, were 10000"},
    {"overwritten", OverwriteAndRestoreTime, "its change time (ctime) differs"},
    {"touched", [](const std::string& path) { fs::last_write_time(path, fs::file_time_type()); },
     "its modification time (mtime) differs"},
    {"replaced by an equal file", ReplaceByCopy, "another file took its place"},
    {"removed", [](const std::string& path) { fs::remove(path); }, "it is gone"},
    {"folder removed",
     [](const std::string& path) { fs::remove_all(fs::path(path).parent_path()); }, "it is gone"},
};

TEST(SourceChanges, ChangedFilesAreNamed) {
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    const TemporaryFolder folder;
    SourceFiles files(1);
    const std::string path = folder.Write("rank_0/a.ckpt", std::string(10000, 'x'));
    const FileId id = files.Add(path);
    const FileId other = files.Add(folder.Write("rank_1/a.ckpt", "abc"));
    EXPECT_EQ(*files.Size(id), 10000U);
    EXPECT_EQ(*files.Size(other), 3U);  // closes the first
    EXPECT_TRUE(files.VerifyUnchanged().ok());
    change.make(path);

    const Status verified = files.VerifyUnchanged();
    EXPECT_EQ(verified.code(), StatusCode::kChanged);
    EXPECT_THAT(verified.message(), HasSubstr("1 of 2 source files changed"));
    EXPECT_THAT(verified.message(), HasSubstr(path + ": "));
    EXPECT_THAT(verified.message(), HasSubstr(change.words));

    const Status reopened = files.Open(id, 0, 1).status();
    EXPECT_EQ(reopened.code(), StatusCode::kChanged);
    EXPECT_THAT(reopened.message(), HasSubstr(path + ": the file changed while it was in use: "));
    EXPECT_THAT(reopened.message(), HasSubstr(change.words));
  }
}

TEST(SourceChanges, AFileThatIsNotTheOneThatWasChosenIsNotUsed) {
  const TemporaryFolder folder;
  SourceFiles files(4);
  const std::string path = folder.Write("a.ckpt", "abc");
  const std::string unused = folder.Write("b.ckpt", "abc");
  const FileId id = files.Add(path, Stat(path));
  files.Add(unused, Stat(unused));
  OverwriteAndRestoreTime(path);
  OverwriteAndRestoreTime(unused);
  for (const Status& status : {files.Size(id).status(), files.Open(id, 0, 1).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kChanged);
    EXPECT_THAT(status.message(), HasSubstr("a.ckpt: the file changed while it was in use: "));
  }
  EXPECT_TRUE(files.VerifyUnchanged().ok()) << "neither was used";

  const std::string other = folder.Write("c.ckpt", "abc");
  const FileId same = files.Add(other, Stat(other));
  EXPECT_EQ(*files.Size(same), 3U);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(files.Size(id).status().code(), StatusCode::kCorrupt) << "what a pipe is called";
}

TEST(SourceChanges, APipeInAFilesPlaceIsAChange) {
  const TemporaryFolder folder;
  SourceFiles files(0);
  const std::string path = folder.Write("a.ckpt", "abc");
  const FileId id = files.Add(path);
  EXPECT_EQ(*files.Size(id), 3U);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Status status = files.Open(id, 0, 1).status();
  EXPECT_EQ(status.code(), StatusCode::kChanged);
  EXPECT_THAT(
      status.message(),
      HasSubstr("/a.ckpt: the file changed while it was in use: it is no longer a regular file"));
  EXPECT_EQ(files.VerifyUnchanged().code(), StatusCode::kChanged);
}

TEST(SourceChanges, ListsTheFirstChanges) {
  const TemporaryFolder folder;
  SourceFiles files(4);
  for (int i = 0; i < 25; ++i) {
    const std::string path = folder.Write(std::to_string(i), "abc");
    EXPECT_EQ(Copied(files, files.Add(path), 0, 3), "abc");
    fs::resize_file(path, 2);
  }
  const std::string message = files.VerifyUnchanged().message();
  EXPECT_THAT(message, HasSubstr("25 of 25 source files changed"));
  EXPECT_THAT(message, HasSubstr("/2: 2 bytes, were 3"));
  EXPECT_THAT(message, Not(HasSubstr("/3: ")));
}

TEST(SourceChanges, WindowsOfAShrinkingFile) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  const std::string path = folder.Write("a.ckpt", std::string(8 * page, 'x'));
  SourceFiles files(1);
  const FileId id = files.Add(path);
  const Result<Window> window = files.Open(id, 1, 6 * page);
  ASSERT_TRUE(window.ok());
  fs::resize_file(path, 2 * page);

  std::byte first{};
  EXPECT_TRUE(window->Read([&first](const std::byte* data) { first = *data; }).ok());
  EXPECT_EQ(first, std::byte{'x'});
  std::vector<std::byte> copy(window->size());
  for (const Status& status :
       {window->Read([&](const std::byte* data) { std::memcpy(copy.data(), data, copy.size()); }),
        files.Open(id, 4 * page, 10)->Read([&first](const std::byte* data) { first = *data; })}) {
    EXPECT_EQ(status.code(), StatusCode::kChanged);
    EXPECT_THAT(status.message(),
                HasSubstr("/a.ckpt: the file changed while it was in use: " +
                          std::to_string(2 * page) + " bytes, were " + std::to_string(8 * page)));
  }
  EXPECT_THAT(Copied(files, id, page, 2 * page), HasSubstr("shrank"));
  EXPECT_EQ(files.VerifyUnchanged().code(), StatusCode::kChanged);
}

TEST(SourceChanges, ZerosInTheLastPageAreFoundByVerifying) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.ckpt", "abcdef");
  SourceFiles files(1);
  const Result<Window> window = files.Open(files.Add(path), 0, 6);
  fs::resize_file(path, 3);
  EXPECT_EQ(Content(window), std::string("abc\0\0\0", 6));
  EXPECT_EQ(files.VerifyUnchanged().code(), StatusCode::kChanged);
}

TEST(SourceChanges, OnlyTheFilesAskedForAreVerified) {
  const TemporaryFolder folder;
  SourceFiles files(4);
  const std::string path = folder.Write("changed", "abc");
  const FileId changed = files.Add(path);
  const FileId same = files.Add(folder.Write("same", "abc"));
  const FileId unused = files.Add(folder.path() / "unused");
  EXPECT_EQ(*files.Size(changed), 3U);
  EXPECT_EQ(*files.Size(same), 3U);
  fs::resize_file(path, 2);
  EXPECT_TRUE(files.VerifyUnchanged(std::vector{same, unused}).ok());
  const Status status = files.VerifyUnchanged(std::vector{same, changed});
  EXPECT_EQ(status.code(), StatusCode::kChanged);
  EXPECT_THAT(status.message(), HasSubstr("1 of 2 source files changed"));
}

}  // namespace
}  // namespace reshard::source_changes_test

// Storage: what it lists, tells and opens of the local file system.
#include "src/io/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard::storage_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StorageTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("b", "0123456789");
    folder_.Write("a/x", "");
    folder_.Write("B", "");
    std::filesystem::create_symlink("b", Path("link"));
    ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  }
  std::string Path(const std::string& name) const { return folder_.path() / name; }

  const TemporaryFolder folder_;
  const Storage& storage_ = Storage::Of(folder_.path());
};

TEST_F(StorageTest, ListsByTheBytesOfNames) {
  const auto entries = storage_.List(folder_.path());
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("B", "a", "b", "link", "pipe"));
  EXPECT_EQ(storage_.List(Path("none")).status().code(), StatusCode::kNotFound);
}

TEST_F(StorageTest, TellsWhatLiesAtAPath) {
  const struct {
    const char* name;
    PathKind kind;
    const char* no_folder;
  } rows[] = {
      {"a", PathKind::kDirectory, ""},
      {"b", PathKind::kFile, "/b: expected a folder, found a file"},
      {"link", PathKind::kFile, "/link: expected a folder, found a file"},
      {"pipe", PathKind::kOther, "/pipe: expected a folder, found a device, socket or pipe"},
      {"none", PathKind::kMissing, "/none: expected a folder, found nothing"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(*storage_.KindOf(Path(row.name)), row.kind);
    const Status folder = storage_.CheckIsFolder(Path(row.name));
    EXPECT_EQ(folder.code(), *row.no_folder == '\0' ? StatusCode::kOk : StatusCode::kNotFound);
    EXPECT_THAT(folder.message(), HasSubstr(row.no_folder));
  }
}

TEST_F(StorageTest, AStampChangesWithTheFile) {
  const FileIdentity before = *storage_.Stat(Path("b"));
  EXPECT_EQ(before.size(), 10U);
  EXPECT_EQ(*storage_.Stat(Path("link")), before);
  EXPECT_EQ((*storage_.Open(Path("b")))->identity(), before);
  EXPECT_EQ(*storage_.Pin(Path("b")), before);
  EXPECT_NE(storage_.Stat(Path("B"))->key(), before.key());
  std::filesystem::resize_file(Path("b"), 9);
  EXPECT_NE(*storage_.Stat(Path("b")), before);
  EXPECT_EQ(storage_.Stat(Path("b"))->key(), before.key());
  EXPECT_EQ(storage_.Stat(Path("none")).status().code(), StatusCode::kNotFound);
}

TEST_F(StorageTest, OpensRegularFilesOnly) {
  const auto opened = storage_.Open(Path("link"));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->size(), 10U);
  EXPECT_NE((*opened)->pages(), nullptr);
  for (const char* name : {"a", "pipe"}) {
    EXPECT_EQ(storage_.Open(Path(name)).status().code(), StatusCode::kCorrupt) << name;
  }
  EXPECT_EQ(storage_.Open(Path("none")).status().code(), StatusCode::kNotFound);
}

TEST_F(StorageTest, ReadsSmallFilesWhole) {
  const std::string path = folder_.Write("s.ckpt", std::string("a\0b", 3));
  EXPECT_EQ(*storage_.ReadWhole(path, 3), std::string("a\0b", 3));
  EXPECT_EQ(*storage_.ReadWhole(Path("B"), 3), "");
  const Status status = storage_.ReadWhole(path, 2).status();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("/s.ckpt: expected at most 2 B, found 3 B"));
}

TEST(Storage, RefusesUrls) {
  const std::string url = "s3://bucket/a.ckpt";
  const Storage& storage = Storage::Of(url);
  for (const Status& status :
       {storage.List(url).status(), storage.KindOf(url).status(), storage.CheckIsFolder(url),
        storage.Stat(url).status(), storage.Pin(url).status(), storage.Open(url).status(),
        storage.ReadWhole(url, 1).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  }
}

}  // namespace
}  // namespace reshard::storage_test

// Output folders: no link is followed, and removal stays inside.
#include "src/os/output_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard::output_directory_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputDirectoryTest : public testing::Test {
 protected:
  OutputDirectoryTest() {
    victim_ = fs::path(temporary_.Write("victim/file", "precious")).parent_path();
    fs::create_directory(temporary_.path() / "folder");
  }

  OutputDirectory Folder() const {
    auto folder = OutputDirectory::Open((temporary_.path() / "folder").string());
    EXPECT_TRUE(folder.ok());
    return std::move(*folder);
  }
  fs::path At(const std::string& name) const { return temporary_.path() / "folder" / name; }

  const TemporaryFolder temporary_;
  fs::path victim_;
};

TEST_F(OutputDirectoryTest, MakesAllFoldersOnTheWay) {
  const std::string base = temporary_.path().string();
  std::vector<std::string> made;
  ASSERT_TRUE(OutputDirectory::Create(base + "//folder/a//b/", made).ok());
  EXPECT_THAT(made, ElementsAre(base + "//folder/a", base + "//folder/a//b"));
  temporary_.Write("folder/a/file", "");
  OutputDirectory::RemoveMade(made);
  EXPECT_FALSE(fs::exists(At("a/b")));
  EXPECT_TRUE(fs::exists(At("a/file")));
}

TEST_F(OutputDirectoryTest, MakesRelativeFolders) {
  const fs::path before = fs::current_path();
  fs::current_path(temporary_.path());
  std::vector<std::string> made;
  const bool ok = OutputDirectory::Create("x/../y", made).ok();
  fs::current_path(before);
  EXPECT_TRUE(ok);
  EXPECT_THAT(made, ElementsAre("x", "x/../y"));
  EXPECT_EQ(OutputDirectory::Create("", made).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OutputDirectoryTest, RefusesAFileOnTheWay) {
  temporary_.Write("folder/file", "");
  std::vector<std::string> made;
  for (const char* name : {"file", "file/below"}) {
    const auto folder = OutputDirectory::Create(At(name).string(), made);
    EXPECT_EQ(folder.status().code(), StatusCode::kAlreadyExists) << name;
    EXPECT_THAT(folder.status().message(), HasSubstr("file: expected a folder, found a file"));
  }
  EXPECT_THAT(made, IsEmpty());
}

TEST_F(OutputDirectoryTest, LooksWithoutFollowing) {
  temporary_.Write("folder/file", "1234");
  fs::create_symlink(victim_, At("link"));
  const OutputDirectory folder = Folder();
  EXPECT_EQ((*folder.Look("file"))->identity.size(), 4u);
  EXPECT_EQ((*folder.Look("link"))->type, OutputDirectory::EntryType::kLink);
  EXPECT_EQ((*folder.Look("."))->type, OutputDirectory::EntryType::kFolder);
  EXPECT_FALSE(*folder.Look("nothing"));
  EXPECT_FALSE(*folder.Look(std::string(300, 'n')));
  EXPECT_EQ(folder.OpenFolder(std::string(300, 'n')).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(*folder.Names(), ElementsAre("file", "link"));
  EXPECT_THAT(*folder.Names(), ElementsAre("file", "link"));  // from the beginning once more
}

TEST_F(OutputDirectoryTest, OpensFoldersOnly) {
  temporary_.Write("folder/file", "");
  fs::create_symlink(victim_, At("link"));
  const OutputDirectory folder = Folder();
  for (const char* name : {"file", "link"}) {
    EXPECT_EQ(folder.OpenFolder(name).status().code(), StatusCode::kAlreadyExists) << name;
    EXPECT_EQ(folder.MakeFolder(name).status().code(), StatusCode::kAlreadyExists) << name;
  }
  EXPECT_EQ(folder.OpenFolder("nothing").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(folder.MakeFolder("new").ok());
  EXPECT_TRUE(folder.MakeFolder("new").ok());
  EXPECT_EQ(folder.OpenFolder("new")->path(), At("new"));
}

TEST_F(OutputDirectoryTest, ReadsAndWritesSmallFiles) {
  const OutputDirectory folder = Folder();
  ASSERT_TRUE(folder.WriteFile("file", "123").ok());
  EXPECT_EQ(folder.WriteFile("file", "456").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(*folder.ReadFile("file", 3), "123");
  EXPECT_EQ(folder.ReadFile("file", 2).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(folder.ReadFile("nothing", 3).status().code(), StatusCode::kNotFound);
  fs::create_symlink(victim_ / "file", At("link"));
  ASSERT_TRUE(folder.MakeFolder("folder").ok());
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "folder", "pipe"}) {
    EXPECT_EQ(folder.ReadFile(name, 100).status().code(), StatusCode::kAlreadyExists) << name;
  }
  EXPECT_EQ(folder.WriteFile("link", "x").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(victim_ / "file"), "precious");
}

TEST_F(OutputDirectoryTest, RenamesInPlaceOfALinkItself) {
  fs::create_symlink(victim_ / "file", At("link"));
  temporary_.Write("folder/file", "new");
  const OutputDirectory folder = Folder();
  ASSERT_TRUE(folder.Rename("file", folder, "link").ok());
  EXPECT_EQ(ReadFile(At("link")), "new");
  EXPECT_EQ(ReadFile(victim_ / "file"), "precious");
  const Status status = folder.Rename("nothing", folder, "link");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/nothing here: No such file"));
}

TEST_F(OutputDirectoryTest, RemovesTreesWithoutFollowing) {
  temporary_.Write("folder/tree/a/b", "");
  temporary_.Write("folder/tree/c", "");
  fs::create_symlink(victim_, At("tree/link"));
  fs::create_symlink(victim_, At("link"));
  const OutputDirectory folder = Folder();
  for (const char* name : {"tree", "link", "nothing"}) {
    const Status status = folder.RemoveTree(name);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_THAT(*folder.Names(), IsEmpty());
  EXPECT_EQ(ReadFile(victim_ / "file"), "precious");
}

TEST_F(OutputDirectoryTest, RefusesToRemoveDeepTrees) {
  std::string deep = "folder/tree";
  for (int i = 0; i < 20; ++i) deep += "/d";
  temporary_.Write(deep + "/file", "");
  const Status status = Folder().RemoveTree("tree");
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_TRUE(fs::exists(temporary_.path() / deep));
}

TEST_F(OutputDirectoryTest, RemovesEmptyFoldersOnly) {
  temporary_.Write("folder/full/file", "");
  const OutputDirectory folder = Folder();
  ASSERT_TRUE(folder.MakeFolder("empty").ok());
  EXPECT_FALSE(*folder.RemoveFolder("full"));
  EXPECT_TRUE(*folder.RemoveFolder("empty"));
  EXPECT_TRUE(*folder.RemoveFolder("empty"));
  EXPECT_TRUE(folder.RemoveFile("nothing").ok());
  EXPECT_EQ(folder.RemoveFile("full").code(), StatusCode::kIo);
}

TEST_F(OutputDirectoryTest, KnowsWhetherItCanBeWrittenTo) {
  EXPECT_TRUE(Folder().CheckWritable().ok());
  EXPECT_GT(Folder().FreeBytes()->value(), 0u);
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user whom permissions bind";
  fs::permissions(temporary_.path(), fs::perms(0711));
  fs::permissions(At("."), fs::perms(0755));
  ASSERT_EQ(seteuid(65534), 0);
  const Status status = Folder().CheckWritable();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(status.code(), StatusCode::kIo);
}

}  // namespace
}  // namespace reshard::output_directory_test

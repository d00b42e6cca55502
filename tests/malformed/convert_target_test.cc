// Targets that cannot be had: what is there stays as it was.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "reshard/convert.h"
#include "tests/malformed/good_folder.h"
#include "tests/support/folder_contents.h"

namespace reshard::convert_target_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Targets that are, or lie in, the source: each row names one, seen from the test's folder.
struct TargetRow {
  const char* name;
  std::function<std::string(const fs::path&)> target;
};

TEST(ConvertTargetTest, InsideOfTheSourceIsRefused) {
  const std::vector<TargetRow> rows = {
      {"equal", [](const fs::path& path) { return path / "source"; }},
      {"equal, with a slash", [](const fs::path& path) { return path / "source/"; }},
      {"spelled otherwise", [](const fs::path& path) { return path / "x/../source/."; }},
      {"inside", [](const fs::path& path) { return path / "source" / "target"; }},
      {"a rank's folder", [](const fs::path& path) { return path / "source" / "rank_0"; }},
      {"deep inside, where nothing is yet",
       [](const fs::path& path) { return path / "source" / "a" / "b" / "c"; }},
      {"a link to the source",
       [](const fs::path& path) {
         fs::create_directory_symlink(path / "source", path / "link");
         return path / "link";
       }},
      {"inside of a link to a folder of the source",
       [](const fs::path& path) {
         fs::create_directory_symlink(path / "source" / "rank_1", path / "link");
         return path / "link" / "target";
       }},
  };
  for (const TargetRow& row : rows) {
    GoodFolder folder;
    folder.options().target.folder = row.target(folder.path());
    folder.options().force = true;
    const FolderContents before = ReadFolder(folder.path());
    const auto report = Convert(folder.options());
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(report.status().message(), AllOf(HasSubstr("in, the source"), HasSubstr("/source")))
        << row.name;
    EXPECT_EQ(ReadFolder(folder.path()), before) << row.name;
  }
}

TEST(ConvertTargetTest, BesideOrAboveTheSourceIsFine) {
  for (const std::string target : {"source_too", "source/../t", "."}) {
    GoodFolder folder;
    folder.options().target.folder = folder.path() / target;
    const auto report = Convert(folder.options());
    EXPECT_TRUE(report.ok()) << target << ": " << report.status().message();
  }
}

TEST(ConvertTargetTest, ExistingOutputsAreKeptWithoutForce) {
  GoodFolder folder;
  ASSERT_TRUE(Convert(folder.options()).ok());
  const FolderContents before = ReadFolder(folder.path());
  // The whole set, unchanged, is found; where a file of it is another now, nothing is replaced.
  const auto published = Convert(folder.options());
  ASSERT_TRUE(published.ok()) << published.status().message();
  EXPECT_TRUE(published->already_published);
  EXPECT_EQ(ReadFolder(folder.path()), before);
  folder.folder().Write("target/rank_1/checkpoint_1.ckpt", "mine");
  const FolderContents with_mine = ReadFolder(folder.path());
  const auto again = Convert(folder.options());
  EXPECT_EQ(ExitCode(again.status().code()), 6);
  EXPECT_THAT(
      again.status().message(),
      AllOf(HasSubstr("/target: 4 of the 4 target files exist already: "
                      "rank_0/checkpoint_0.ckpt, "),
            HasSubstr("rank_1/checkpoint_1.ckpt is missing or damaged"), HasSubstr("`force`")));
  EXPECT_EQ(ReadFolder(folder.path()), with_mine);
  folder.options().force = true;
  EXPECT_TRUE(Convert(folder.options()).ok());
  EXPECT_EQ(ReadFolder(folder.path()), before);
}

TEST(ConvertTargetTest, OutputsDoNotReplaceTheirSource) {
  for (const bool by_link : {false, true}) {
    ConversionFolder folder({}, {{"w", kRowsOf4}});
    folder.WriteRank(0, {kWeight});
    const fs::path source = fs::path(folder.options().source.path) / RankPath(0);
    folder.options().source.path = source;
    folder.options().target.folder = source.parent_path().parent_path();
    if (by_link) {  // another name of the same file, in another folder
      folder.options().target.folder = folder.folder().path() / "target";
      fs::create_directories(folder.folder().path() / "target" / "rank_0");
      fs::create_hard_link(source, fs::path(folder.options().target.folder) / RankPath(0));
    }
    folder.options().force = true;
    const FolderContents before = ReadFolder(folder.folder().path());
    const auto report = Convert(folder.options());
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(report.status().message(), HasSubstr("would replace the source file"));
    EXPECT_EQ(ReadFolder(folder.folder().path()), before);
  }
}

TEST(ConvertTargetTest, OutputsDoNotReplaceWhatElseIsRead) {
  for (const bool by_link : {false, true}) {
    GoodFolder folder;
    ASSERT_TRUE(Convert(folder.options()).ok());
    const std::string output = folder.options().target.folder + "/rank_0/checkpoint_0.ckpt";
    const std::string strategy = folder.options().target.strategy.path();
    fs::remove(output);
    if (by_link) {
      fs::create_hard_link(strategy, output);
    } else {
      fs::rename(strategy, output);
      folder.options().target.strategy = output;
    }
    folder.options().force = true;
    const FolderContents before = ReadFolder(folder.path());
    const auto report = Convert(folder.options());
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(report.status().message(), HasSubstr(", which is read"));
    EXPECT_EQ(ReadFolder(folder.path()), before);
  }
}

TEST(ConvertTargetTest, WhatWasStagedInTheTargetIsNotRead) {
  GoodFolder folder;
  const fs::path staged = fs::path(folder.options().target.folder) / ".reshard" / "aaaa" / "files";
  fs::create_directories(staged.parent_path());
  fs::rename(folder.options().source.path, staged);
  folder.options().source.path = staged;
  const FolderContents before = ReadFolder(folder.path());
  const auto report = Convert(folder.options());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), HasSubstr("the staging folder of the target"));
  EXPECT_EQ(ReadFolder(folder.path()), before);
}

TEST(ConvertTargetTest, OutputsDoNotLieBesideTheirSource) {
  ConversionFolder folder({}, {{"w", kRowsOf4}});
  const std::string source =
      folder.folder().Write("ckpt/rank_0/net.ckpt", EncodeCheckpoint({kWeight}));
  const std::string target = folder.folder().path() / "ckpt";
  const FolderContents before = ReadFolder(folder.folder().path());
  for (const std::string& named : {source, target + "/rank_{rank}/net.ckpt"}) {
    folder.options().source.path = named;
    folder.options().target.folder = target;
    const auto report = Convert(folder.options());
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(report.status().message(),
                HasSubstr("rank_0/checkpoint_0.ckpt would lie beside the source file"));
    EXPECT_EQ(ReadFolder(folder.folder().path()), before);
  }
}

TEST(ConvertTargetTest, AFileInItsPlaceIsNamed) {
  GoodFolder folder;
  folder.folder().Write("target", "here first");
  folder.options().force = true;
  const auto report = Convert(folder.options());
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), HasSubstr("/target"));
  EXPECT_EQ(ReadFile(folder.path() / "target"), "here first");
}

// 32 TiB of outputs.
TEST(ConvertTargetTest, WithoutRoomNothingIsWritten) {
  const Shape shape = {1 << 20, 1 << 20};
  const uint64_t bytes = uint64_t{1} << 40;
  const std::string header = EncodeValueHeader("w", DType::kInt8, shape, bytes);
  ConversionFolder folder({}, {{"w", MakeLayout({1 << 5}, {{-1, -1}})}});
  folder.folder().WriteSparse("source/" + RankPath(0), header.size() + bytes, 0, header);
  const auto report = Convert(folder.options());
  EXPECT_EQ(ExitCode(report.status().code()), 4);
  EXPECT_THAT(report.status().message(),
              HasSubstr("not enough space: the target files need 32.0 TiB, "));
  EXPECT_THAT(ReadFolder(folder.options().target.folder), IsEmpty());
  EXPECT_FALSE(fs::exists(folder.options().target.folder));
}

}  // namespace
}  // namespace reshard::convert_target_test

// Conversions whose source is named by a pattern, or file by file.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "reshard/verify.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_sources_test {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

// Four source ranks, two target ranks, each of which needs two of the former.
class ConvertSourcesTest : public testing::Test {
 protected:
  ConvertSourcesTest() {
    folder_.WriteStage(
        {MakeTensor("w", DType::kFloat32, {8, 3}), MakeTensor("step", DType::kInt64, {})}, source_,
        4);
    const auto report = Convert(folder_.options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    expected_ = Outputs();
    folder_.options().target.folder = Path("other");
  }

  std::string Path(const std::string& name) const { return folder_.folder().path() / name; }

  // The target's checkpoints, without what is beside them.
  FolderContents Outputs() const {
    FolderContents files = ReadFolder(folder_.options().target.folder);
    std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".ckpt"); });
    return files;
  }

  // Copies the file of each rank to what `pattern` says for it.
  void CopyTo(const std::string& pattern) const {
    for (int64_t rank = 0; rank < 4; ++rank) {
      const fs::path to = Path(fmt::format(fmt::runtime(pattern), rank));
      fs::create_directories(to.parent_path());
      fs::copy_file(fs::path(Path("source")) / RankPath(rank), to);
    }
  }

  void ExpectConverts() const {
    const auto report = Convert(folder_.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->warnings, IsEmpty());
    EXPECT_EQ(Outputs(), expected_);
  }

  Status Fault() const {
    const auto report = Convert(folder_.options());
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(Plan(folder_.options()).status().message(), report.status().message());
    return report.status();
  }

  const std::vector<NamedLayout> source_ = {{"w", MakeLayout({4}, {{0, -1}})}};
  ConversionFolder folder_{source_, {{"w", MakeLayout({2}, {{0, -1}})}}};
  FolderContents expected_;
};

TEST_F(ConvertSourcesTest, APatternNamesFiles) {
  CopyTo("run/node{0}/CKP_{0}-4_32.ckpt");
  folder_.options().source.path = Path("run/node{rank}/CKP_{rank}-4_32.ckpt");
  ExpectConverts();
}

TEST_F(ConvertSourcesTest, APatternNamesFolders) {
  CopyTo("run/node{}/CKP-4_32.ckpt");
  CopyTo("run/node{}/CKP-4_31.ckpt");
  folder_.options().source.path = Path("run/node{rank}");
  ExpectConverts();
}

TEST_F(ConvertSourcesTest, TheTargetStaysOutOfThePatternsFolders) {
  CopyTo("run/node{}/CKP.ckpt");
  folder_.options().source.path = Path("run/node{rank}");
  folder_.options().target.folder = Path("run/node2/out");
  EXPECT_EQ(Fault().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Fault().message(), Naming(Path("run/node2")));
  folder_.options().target.folder = Path("run/out");
  ExpectConverts();
}

TEST_F(ConvertSourcesTest, FilesSideBySideMayLieBesideTheTarget) {
  CopyTo("run/net_{}.ckpt");
  folder_.options().source.path = Path("run/net_{rank}.ckpt");
  folder_.options().target.folder = Path("run/out");
  ExpectConverts();
}

TEST_F(ConvertSourcesTest, OthersTakePatternsToo) {
  CopyTo("run/node{}/CKP.ckpt");
  const std::string pattern = Path("run/node{rank}/CKP.ckpt");
  const auto files = ListRankFiles({.path = pattern});
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->files.at(3).path, Path("run/node3/CKP.ckpt"));
  ContentOptions options;
  options.source.path = pattern;
  options.source.strategy = folder_.options().source.strategy;
  const auto digest = DigestCheckpoint(options);
  ASSERT_TRUE(digest.ok()) << digest.status().message();
  EXPECT_EQ(digest->parameters.size(), 2U);
  EXPECT_TRUE(ShardedCheckpoint::Open(pattern, folder_.options().source.strategy).ok());
  ConversionSpec against;
  against.target.folder = Path("target");
  against.source.path = pattern;
  against.source.strategy = folder_.options().source.strategy;
  against.target.strategy = folder_.options().target.strategy;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_TRUE(proved->equal());
}

TEST_F(ConvertSourcesTest, AMapNamesEachFile) {
  CopyTo("downloads/{}");
  folder_.options().source.path.clear();
  for (int64_t rank = 0; rank < 4; ++rank) {
    folder_.options().source.files[rank] = Path(fmt::format("downloads/{}", rank));
  }
  ExpectConverts();
  ConversionSpec against;
  against.target.folder = folder_.options().target.folder;
  against.source.files = folder_.options().source.files;
  against.source.strategy = folder_.options().source.strategy;
  against.target.strategy = folder_.options().target.strategy;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_TRUE(proved->equal());
}

// Hosts that have downloaded different files do one conversion together.
TEST_F(ConvertSourcesTest, AMapOfWhatATargetRankNeedsWillDo) {
  folder_.options().source.path.clear();
  for (int64_t rank = 0; rank < 2; ++rank) {
    folder_.options().selection.ranks = {rank};
    folder_.options().source.files.clear();
    for (int64_t needed = 2 * rank; needed < 2 * rank + 2; ++needed) {
      folder_.options().source.files[needed] = Path("source/" + RankPath(needed));
    }
    // What no layout cuts comes from local rank 0 or 1, as everywhere.
    folder_.options().source.files[rank] = Path("source/" + RankPath(rank));
    const auto report = Convert(folder_.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->warnings, IsEmpty());
  }
  EXPECT_EQ(Outputs(), expected_);
}

TEST_F(ConvertSourcesTest, RejectsMapsThatCannotBe) {
  folder_.options().source.files = {{0, Path("source/" + RankPath(0))}};
  EXPECT_EQ(Fault().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Fault().message(), Naming("`source.files`"));
  folder_.options().source.path.clear();
  EXPECT_EQ(Fault().code(), StatusCode::kMismatch);
  EXPECT_THAT(Fault().message(),
              Naming("no checkpoint for ranks 1-3, which ",
                     folder_.options().source.strategy.path(), " needs (first gap: "));
  folder_.options().source.files[4] = Path("source/" + RankPath(3));
  EXPECT_EQ(Fault().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Fault().message(),
            fmt::format("`source.files`: expected source ranks 0-3 (by {}), found 4",
                        folder_.options().source.strategy.path()));
  folder_.options().source.files = {{0, Path("nowhere")}};
  EXPECT_EQ(Fault().code(), StatusCode::kNotFound);
  folder_.options().source.files.clear();
  EXPECT_EQ(Fault().message(), "a source and a target folder are needed");
}

TEST_F(ConvertSourcesTest, AMapOfOneFileStandsForFullTensors) {
  folder_.options().source.path.clear();
  folder_.options().source.strategy = {};
  folder_.WriteRank(
      7, {MakeTensor("w", DType::kFloat32, {8, 3}), MakeTensor("step", DType::kInt64, {})});
  folder_.options().source.files = {{0, Path("source/" + RankPath(7))}};
  ExpectConverts();
}

// Both strategies of memory, read or made, give what their files give, the fingerprint included.
TEST_F(ConvertSourcesTest, StrategiesOfMemoryStandForFiles) {
  ConvertOptions& options = folder_.options();
  const auto from_files = Convert(options);
  ASSERT_TRUE(from_files.ok()) << from_files.status().message();
  const FolderContents expected = ReadFolder(options.target.folder);
  const auto source = ReadStrategy(options.source.strategy.path());
  const auto target = ReadStrategy(options.target.strategy.path());
  ASSERT_TRUE(source.ok() && target.ok());
  options.source.strategy = *source;
  options.target.strategy = *target;
  options.target.folder = Path("of_memory");
  const auto of_memory = Convert(options);
  ASSERT_TRUE(of_memory.ok()) << of_memory.status().message();
  EXPECT_EQ(ReadFolder(options.target.folder), expected);
}

}  // namespace
}  // namespace reshard::convert_sources_test

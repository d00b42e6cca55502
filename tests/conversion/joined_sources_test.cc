// Runs for some target ranks each (--rank): they join one manifest only if they read one
// checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::joined_sources_test {
namespace {

namespace fs = std::filesystem;

const ParameterLayout kHalves = MakeLayout({2}, {{0, -1}});
const ParameterLayout kQuarters = MakeLayout({4}, {{0, -1}});

class JoinedSourcesTest : public testing::Test {
 protected:
  // Rank r of the target takes its rows from rank r / 2 of the source, and `own`, which no layout
  // cuts, from rank r modulo 2.
  JoinedSourcesTest() { WriteSources(1); }

  // Other values of the second rank's rows for another `value`.
  void WriteSources(char value) const {
    TestTensor weight = MakeTensor("w", DType::kFloat32, {8, 5});
    for (size_t i = weight.content.size() / 2; i < weight.content.size(); ++i) {
      weight.content[i] = static_cast<char>(weight.content[i] ^ value);
    }
    const TestTensor scalar = MakeTensor("own", DType::kFloat32, {1});
    folder_.WriteStage({weight, scalar}, {{"w", kHalves}}, 2);
  }

  Result<ConvertReport> Run(std::vector<int64_t> ranks) {
    folder_.options().selection.ranks = std::move(ranks);
    return Convert(folder_.options());
  }

  ConversionFolder folder_{{{"w", kHalves}}, {{"w", kQuarters}}};
};

TEST_F(JoinedSourcesTest, OfOneCheckpointJoin) {
  for (int64_t rank = 0; rank < 4; ++rank) {
    const auto report = Run({rank});
    ASSERT_TRUE(report.ok()) << report.status().message();
  }
  const FolderContents one_by_one = ReadFolder(folder_.options().target.folder);
  fs::remove_all(folder_.options().target.folder);
  ASSERT_TRUE(Run({}).ok());
  EXPECT_EQ(ReadFolder(folder_.options().target.folder), one_by_one);
}

TEST_F(JoinedSourcesTest, OfAnotherCheckpointOfTheSameSizesDoNot) {
  ASSERT_TRUE(Run({2}).ok());
  WriteSources(2);
  const FolderContents before = ReadFolder(folder_.options().target.folder);
  for (const bool checksum : {true, false}) {
    folder_.options().checks.checksum = checksum;
    const auto report = Run({3});
    EXPECT_EQ(report.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(report.status().message(), Naming("manifest.json: ", "\"rank_1/"));
    EXPECT_EQ(Plan(folder_.options()).status().message(), report.status().message());
    EXPECT_EQ(ReadFolder(folder_.options().target.folder), before);
  }
  folder_.options().force = true;
  const auto forced = Run({3});
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_THAT(forced->warnings, testing::Contains(Says(WarningCode::kFilesAbandoned,
                                                       Naming(": rank_2/checkpoint_2.ckpt"))));
}

TEST_F(JoinedSourcesTest, AFileThatOnlyOneOfThemReadsIsNotCompared) {
  folder_.options().selection.exclude = {"own"};
  ASSERT_TRUE(Run({0}).ok());  // from rank 0
  WriteSources(2);
  EXPECT_TRUE(Run({3}).ok());
}

TEST_F(JoinedSourcesTest, WithoutDigestsOnlySizesAreCompared) {
  folder_.options().checks.checksum = false;
  ASSERT_TRUE(Run({2}).ok());
  WriteSources(2);
  EXPECT_TRUE(Run({3}).ok());
}

// A host that lacks the file of a rank takes what no layout cuts from another one, as it may.
TEST_F(JoinedSourcesTest, HostsWithOtherFilesOfOneCheckpointJoin) {
  ASSERT_TRUE(Run({2}).ok());  // `own` from rank 0
  folder_.RemoveRank(0);
  const auto report = Run({3});
  EXPECT_TRUE(report.ok()) << report.status().message();
}

TEST_F(JoinedSourcesTest, WhatIsWrittenAnewIsNotCompared) {
  ASSERT_TRUE(Run({}).ok());
  WriteSources(2);
  folder_.options().force = true;
  const auto report = Run({});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->warnings.empty());
}

}  // namespace
}  // namespace reshard::joined_sources_test

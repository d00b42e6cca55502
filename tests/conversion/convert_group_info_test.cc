// Ranks that by group_info files hold the same weights stand in for each other.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/verify.h"
#include "src/frontend/layout_report.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_group_info_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string GroupInfo(const std::vector<int64_t>& ranks) {
  std::string list;
  for (const int64_t rank : ranks) list += NumberField(1, static_cast<uint64_t>(rank));
  return BlockField(1, BlockField(1, "group") + BlockField(2, list)) + BlockField(2, list);
}

TestTensor OwnTensor(const std::string& name, uint64_t salt) {
  return MakeTensor(name, DType::kInt64, {2}, salt);
}

// Ranks 0, 2 and 1, 3 are replicas; "own" is in no layout and differs between them.
class ConvertGroupInfoTest : public testing::Test {
 protected:
  ConvertGroupInfoTest() {
    for (int64_t rank = 0; rank < 4; ++rank) {
      folder_.folder().Write(fmt::format("info/rank_{}/group_info.pb", rank),
                             GroupInfo({rank % 2, rank % 2 + 2}));
    }
    WriteRanks({0, 1, 2, 3}, false);
  }

  // With `apart` every rank holds only what its replica does not, as where redundancy was removed.
  void WriteRanks(const std::vector<int64_t>& ranks, bool apart) {
    for (int64_t rank = 0; rank < 4; ++rank) folder_.RemoveRank(rank);
    for (const int64_t rank : ranks) {
      const uint64_t shard = static_cast<uint64_t>(rank) % 2;
      std::vector<TestTensor> tensors;
      if (!apart || rank < 2) tensors.push_back(MakeTensor("w", DType::kFloat32, {4}, shard));
      if (!apart || rank >= 2) tensors.push_back(OwnTensor("own", shard));
      folder_.WriteRank(rank, tensors);
    }
  }

  std::string Info(const std::string& name) const {
    return folder_.folder().path() / "info" / name;
  }

  ConversionFolder folder_{{{"w", MakeLayout({2, 2}, {{0}})}}, {{"w", MakeLayout({2}, {{0}})}}};
};

TEST_F(ConvertGroupInfoTest, AMissingRankIsServedByOneThatHoldsTheSame) {
  WriteRanks({0, 3}, false);
  const auto without = Convert(folder_.options());
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_THAT(without->warnings, ElementsAre(Says(WarningCode::kMissingRanks, Naming(": 1-2")),
                                             Says(WarningCode::kWithoutLayout)));
  // Nothing tells that rank 3 has what rank 1 had.
  EXPECT_THAT(folder_.Target(1), testing::Contains(OwnTensor("own", 0)));

  folder_.options().source.group_info = {Info("rank_{rank}/group_info.pb")};
  folder_.options().target.folder = folder_.folder().path() / "with";
  const auto with = Convert(folder_.options());
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_THAT(with->warnings, ElementsAre(Says(WarningCode::kWithoutLayout)));
  EXPECT_THAT(folder_.Target(0), testing::Contains(OwnTensor("own", 0)));
  EXPECT_THAT(folder_.Target(1), testing::Contains(OwnTensor("own", 1)));

  ConversionSpec against;
  against.target.folder = folder_.options().target.folder;
  against.source.path = folder_.options().source.path;
  against.source.strategy = folder_.options().source.strategy;
  against.target.strategy = folder_.options().target.strategy;
  // Lists that are left out are those of the run; without them all is not as it was.
  const auto of_run = VerifyAgainst(against);
  ASSERT_TRUE(of_run.ok()) << of_run.status().message();
  EXPECT_TRUE(of_run->equal());
  EXPECT_THAT(of_run->from_origin, testing::Contains("group_info"));
  ASSERT_TRUE(std::filesystem::remove(against.target.folder + "/origin.jsonl"));
  EXPECT_FALSE(VerifyAgainst(against)->equal());
  against.source.group_info = folder_.options().source.group_info;
  EXPECT_TRUE(VerifyAgainst(against)->equal());
}

TEST_F(ConvertGroupInfoTest, AParameterThatARankLacksIsTakenFromOneThatHoldsTheSame) {
  WriteRanks({0, 1, 2, 3}, true);
  folder_.options().source.group_info = {Info("rank_0/group_info.pb"),
                                         Info("rank_1/group_info.pb")};
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (int64_t rank = 0; rank < 2; ++rank) {
    const auto salt = static_cast<uint64_t>(rank);
    EXPECT_THAT(folder_.Target(rank),
                ElementsAre(MakeTensor("w", DType::kFloat32, {4}, salt), OwnTensor("own", salt)));
  }
}

// Target ranks 0 and 1 need source files that hold the same; only for one of them the lists tell of
// more.
TEST_F(ConvertGroupInfoTest, ListsCountForTheirRanksOnly) {
  WriteRanks({0, 1, 2}, false);
  folder_.WriteRank(
      2, {MakeTensor("w", DType::kFloat32, {4}, 0), OwnTensor("own", 0), OwnTensor("extra", 0)});
  folder_.options().source.group_info = {Info("rank_0/group_info.pb")};
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(folder_.Target(0).size(), 3U);
  EXPECT_EQ(folder_.Target(1).size(), 2U);
}

TEST_F(ConvertGroupInfoTest, RunsWithOtherListsAreOtherPlans) {
  folder_.options().selection.ranks = {0};
  ASSERT_TRUE(Convert(folder_.options()).ok());
  folder_.options().selection.ranks = {1};
  folder_.options().source.group_info = {Info("rank_0/group_info.pb")};
  EXPECT_EQ(Convert(folder_.options()).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(ConvertGroupInfoTest, Rejects) {
  struct Row {
    std::vector<std::string> paths;
    StatusCode code;
    std::string message;
  };
  folder_.folder().Write("info/wrong.pb", GroupInfo({0, 1}));
  folder_.folder().Write("info/wide.pb", GroupInfo({0, 1, 2, 3}));
  const Row rows[] = {
      {{Info("wrong.pb")}, StatusCode::kMismatch, "hold different shards of parameter \"w\""},
      {{Info("wide.pb"), Info("rank_1/group_info.pb")},
       StatusCode::kMismatch,
       "is in two lists of ranks that hold the same weights"},
      {{folder_.options().source.strategy.path()},
       StatusCode::kCorrupt,
       "src.ckpt: expected a group_info file, found"},
      {{Info("nowhere.pb")}, StatusCode::kNotFound, "nowhere.pb"},
      {{Info("rank_{rank}/nothing.pb")},
       StatusCode::kNotFound,
       "expected group_info files of this pattern, found none"},
  };
  for (const Row& row : rows) {
    folder_.options().source.group_info = row.paths;
    const auto report = Convert(folder_.options());
    ASSERT_FALSE(report.ok()) << row.message;
    EXPECT_EQ(report.status().code(), row.code) << report.status().message();
    EXPECT_THAT(report.status().message(), HasSubstr(row.message));
  }
}

// Data parallel training has no strategy: each parameter lies in one of the ranks' files.
class FullTensorsTest : public ConvertGroupInfoTest {
 protected:
  FullTensorsTest() {
    folder_.options().source.strategy = {};
    folder_.options().source.group_info = {
        folder_.folder().Write("all.pb", GroupInfo({0, 1, 2, 3}))};
    for (int64_t rank = 0; rank < 4; ++rank) {
      folder_.WriteRank(
          rank, {MakeTensor(rank == 3 ? "w" : fmt::format("p{}", rank), DType::kFloat32, {8})});
    }
  }
};

TEST_F(FullTensorsTest, AreGatheredFromTheRanksOfOneList) {
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->parameters, 4U);
  EXPECT_THAT(report->source_ranks, ElementsAre(0, 1, 2, 3));
  const TestTensor w = MakeTensor("w", DType::kFloat32, {8});
  EXPECT_THAT(folder_.Target(1),
              testing::Contains(TestTensor{"w", w.dtype, {4}, w.content.substr(16)}));
  EXPECT_THAT(folder_.Target(1), testing::Contains(MakeTensor("p2", DType::kFloat32, {8})));
}

TEST_F(FullTensorsTest, RankZeroMayBeMissingWhereAllHoldAll) {
  for (const int64_t rank : {2, 3}) {
    folder_.WriteRank(rank, {MakeTensor("w", DType::kFloat32, {8})});
  }
  folder_.RemoveRank(0);
  folder_.RemoveRank(1);
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->source_ranks, ElementsAre(2));
  EXPECT_THAT(report->warnings, IsEmpty());
}

TEST_F(FullTensorsTest, AreAllNeededWhereTheyDiffer) {
  folder_.RemoveRank(1);
  const auto report = Convert(folder_.options());
  EXPECT_EQ(report.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(report.status().message(), Naming("ranks 0-3", "`group_info`", "rank 1 "));
}

// Without a source strategy any rank may hold the full tensors: all files count.
TEST_F(ConvertGroupInfoTest, AReportHasAllReplicasOfFullTensors) {
  LayoutReportOptions report{folder_.options(), {}};
  report.conversion.source.strategy = {};
  report.conversion.source.group_info = {
      folder_.folder().Write("info/all.pb", GroupInfo({0, 1, 2, 3}))};
  const auto made = MakeLayoutReport(report);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->source.by_rank.size(), 4U);
  for (const FileBin& bin : made->source.by_rank) EXPECT_EQ(bin.files, 1U);
}

}  // namespace
}  // namespace reshard::convert_group_info_test

// Convert with check_replicas: source ranks that ought to hold the same, compared first.

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/with_bytes.h"

namespace reshard::convert_replicas_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const ParameterLayout kWLayout = MakeLayout({2, 2}, {{1, -1}});  // ranks 0, 1 and ranks 2, 3
const ParameterLayout kVLayout = MakeLayout({2, 2}, {{-1, 0}});  // ranks 0, 2 and ranks 1, 3
const ParameterLayout kXLayout = MakeLayout({4}, {{0, -1}});
const std::vector<NamedLayout> kLayouts = {{"w", kWLayout}, {"v", kVLayout}, {"x", kXLayout}};
const TestTensor kW = MakeTensor("w", DType::kFloat32, {8, 3});    // 2 replicas of 48 bytes
const TestTensor kV = MakeTensor("v", DType::kInt8, {4, 6}, 1);    // 2 replicas of 12 bytes
const TestTensor kX = MakeTensor("x", DType::kInt16, {4, 1}, 2);   // no replica
const TestTensor kOwn = MakeTensor("own", DType::kInt64, {1}, 3);  // in no layout

// 4 source ranks, full tensors as the target.
class ConvertReplicasTest : public testing::Test {
 protected:
  ConvertReplicasTest() : folder_(kLayouts, {}) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      files_.push_back({NaiveShard(kW, kWLayout, rank), NaiveShard(kV, kVLayout, rank),
                        NaiveShard(kX, kXLayout, rank),
                        MakeTensor("own", DType::kInt64, {1}, static_cast<uint64_t>(rank))});
      folder_.WriteRank(rank, files_.back());
    }
    folder_.options().checks.replicas = CheckChoice::Replicas::kAll;
  }

  // Changes one byte of a rank's shard.
  void Flip(size_t rank, size_t tensor, size_t offset) {
    char& byte = files_[rank][tensor].content.at(offset);
    byte = static_cast<char>(byte ^ 1);
    folder_.WriteRank(static_cast<int64_t>(rank), files_[rank]);
  }

  // Expects that the conversion is refused and leaves nothing behind.
  std::string Refusal() const {
    const Status status = Convert(folder_.options()).status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_FALSE(std::filesystem::exists(folder_.options().target.folder));
    return status.message();
  }

  ConversionFolder folder_;
  std::vector<std::vector<TestTensor>> files_;  // by rank
};

TEST_F(ConvertReplicasTest, EqualOnesAreCountedAndTheResultIsTheSame) {
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_TRUE(report->replicas.has_value());
  EXPECT_EQ(report->replicas->compared, 2U);
  EXPECT_EQ(report->replicas->shards, 8U);
  EXPECT_EQ(report->replicas->bytes, 4 * 48U + 4 * 12U);
  EXPECT_EQ(report->replicas->differing, 0U);
  const FolderContents checked = ReadFolder(folder_.options().target.folder);
  EXPECT_EQ(folder_.Target(0).front(), kW);
  folder_.options().checks.replicas = CheckChoice::Replicas::kNone;
  folder_.options().force = true;
  const auto unchecked = Convert(folder_.options());
  ASSERT_TRUE(unchecked.ok()) << unchecked.status().message();
  EXPECT_FALSE(unchecked->replicas.has_value());
  EXPECT_EQ(ReadFolder(folder_.options().target.folder), checked);
}

TEST_F(ConvertReplicasTest, TheRanksThatDisagreeAreNamedAndNothingIsWritten) {
  Flip(1, 0, 47);
  Flip(3, 1, 0);
  const std::string message = Refusal();
  EXPECT_THAT(message, Naming("2 of 2 "));
  EXPECT_THAT(message, Naming("\n  \"w\": rank 1 ", " rank 0 ", "byte 47 "));
  EXPECT_THAT(message, Naming("\n  \"v\": rank 3 ", " rank 1 ", "byte 0 "));
  // What the message advises.
  folder_.RemoveRank(1);
  folder_.RemoveRank(3);
  folder_.options().target.strategy = {};
  EXPECT_THAT(Refusal(), Naming("ranks 1 and 3, "));
  files_[1][0] = NaiveShard(kW, kWLayout, 1);
  Flip(1, 3, 0);
  files_[3][1] = NaiveShard(kV, kVLayout, 3);
  Flip(3, 3, 0);  // "own" may differ
  EXPECT_TRUE(Convert(folder_.options()).ok());
}

TEST_F(ConvertReplicasTest, WithoutTheOptionOneOfThemIsTaken) {
  Flip(1, 0, 47);
  folder_.options().checks.replicas = CheckChoice::Replicas::kNone;
  EXPECT_TRUE(Convert(folder_.options()).ok());
}

TEST_F(ConvertReplicasTest, AMissingReplicaIsNotCompared) {
  // Without "x", of which each rank has a part of its own.
  for (auto& file : files_) file.erase(file.begin() + 2);
  Flip(0, 0, 5);
  for (size_t rank = 1; rank < 4; ++rank) Flip(rank, 2, 0);
  EXPECT_THAT(Refusal(),
              AllOf(Naming("\"w\": rank 1 ", " rank 0 ", "byte 5 "), Not(HasSubstr("\"v\""))));
  folder_.RemoveRank(0);
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->replicas->compared, 2U);
  EXPECT_EQ(report->replicas->shards, 4U);  // of "w" in ranks 2 and 3, of "v" in ranks 1 and 3
  EXPECT_EQ(report->replicas->bytes, 2 * 48U + 2 * 12U);
}

TEST_F(ConvertReplicasTest, WhatCopiesOfAnOptimizerShardAreHoldsByTheLayout) {
  // Cut in 2 by the layout, each half in 2 by the optimizer: of 8 ranks, 2 hold each quarter.
  ParameterLayout layout = MakeLayout({2, 4}, {{1, -1}});
  layout.opt_weight_shard_step = 1;
  layout.opt_weight_shard_size = 2;
  std::vector<int64_t> copies;
  for (int64_t rank = 1; rank < 8; ++rank) {
    if (PartsByDefinition(layout, 2, rank) == PartsByDefinition(layout, 2, 0)) {
      copies.push_back(rank);
    }
  }
  ASSERT_EQ(copies.size(), 1U);
  ConversionFolder folder({{"adam_m.w", layout}}, {});
  const TestTensor state = MakeTensor("adam_m.w", DType::kFloat32, {8, 3});
  folder.WriteStage({state}, {{"adam_m.w", layout}}, 8);
  folder.options().checks.replicas = CheckChoice::Replicas::kAll;
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->replicas->compared, 1U);
  EXPECT_EQ(report->replicas->shards, 8U);
  EXPECT_EQ(report->replicas->bytes, 2 * state.content.size());

  TestTensor shard = NaiveShard(state, layout, copies[0]);
  shard.content[1] = static_cast<char>(shard.content[1] ^ 1);
  folder.WriteRank(copies[0], {shard});
  folder.options().force = true;
  const FolderContents before = ReadFolder(folder.options().target.folder);
  const Status refused = Convert(folder.options()).status();
  EXPECT_EQ(refused.code(), StatusCode::kMismatch);
  EXPECT_THAT(refused.message(),
              Naming("\"adam_m.w\": rank " + std::to_string(copies[0]), " rank 0 ", "byte 1 "));
  EXPECT_EQ(ReadFolder(folder.options().target.folder), before);
}

TEST_F(ConvertReplicasTest, OnlyStagesThatAreNeededAreCompared) {
  const ParameterLayout both = MakeLayout({2}, {{-1, -1}});
  ConversionFolder folder({{"0-w", both}, {"1-v", both}}, {{"0-w", both}, {"1-v", both}});
  for (const int64_t rank : {0, 1}) folder.WriteRank(rank, {kW});
  folder.WriteRank(2, {kV});
  TestTensor other = kV;
  other.content[0] ^= 1;
  folder.WriteRank(3, {other});
  folder.options().checks.replicas = CheckChoice::Replicas::kAll;
  folder.options().selection.ranks = {0};
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->replicas->compared, 1U);
  folder.options().selection.ranks = {2};
  EXPECT_THAT(Convert(folder.options()).status().message(), Naming("\"v\": rank 3 ", " rank 2 "));
}

TEST_F(ConvertReplicasTest, FullTensorsHaveNone) {
  ConversionFolder folder({}, {{"w", kWLayout}});
  folder.WriteRank(0, {kW});
  folder.options().checks.replicas = CheckChoice::Replicas::kAll;
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->replicas->shards, 0U);
}

TEST_F(ConvertReplicasTest, ProgressCountsWhatIsCompared) {
  Progress last;
  uint64_t sources = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    sources += std::filesystem::file_size(std::filesystem::path(folder_.options().source.path) /
                                          RankPath(rank));
  }
  folder_.options().run.progress = [&](const Progress& progress) { last = progress; };
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(last.total_bytes, sources + report->bytes_written);
  EXPECT_EQ(last.done_bytes, last.total_bytes);
}

TEST_F(ConvertReplicasTest, AStopWhileComparingLeavesNothing) {
  std::stop_source stop;
  folder_.options().run.stop = stop.get_token();
  folder_.options().run.jobs = 1;
  folder_.options().run.progress = WithBytes([&] { stop.request_stop(); });
  EXPECT_EQ(Convert(folder_.options()).status().code(), StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(folder_.options().target.folder));
}

}  // namespace
}  // namespace reshard::convert_replicas_test

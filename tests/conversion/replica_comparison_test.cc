#include "src/verify/replica_comparison.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "reshard/convert.h"
#include "src/convert/opened_source.h"
#include "src/convert/source_checks.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::replica_comparison_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Two stages of 8 ranks: "rows" has 4 replicas of each half, "all" 8, "none" none; "own" has no
// layout.
class ReplicaComparisonTest : public testing::Test {
 protected:
  ReplicaComparisonTest() {
    for (int64_t stage = 0; stage < 2; ++stage) {
      for (int64_t local = 0; local < 8; ++local) {
        std::vector<TestTensor> shards;
        for (const TestTensor& full : tensors_) {
          shards.push_back(NaiveShard(full, layouts_.at(full.name), local));
        }
        const int64_t rank = stage * 8 + local;
        shards.push_back(MakeTensor("own", DType::kInt64, {}, static_cast<uint64_t>(rank)));
        files_[rank] = std::move(shards);
        Write(rank);
      }
    }
    std::vector<NamedLayout> merged;
    for (const std::string stage : {"0-", "1-"}) {
      for (const auto& [name, layout] : layouts_) merged.push_back({stage + name, layout});
    }
    strategy_ = folder_.folder().Write("s.ckpt", ProtobufStrategy(1, merged));
  }

  void Write(int64_t rank) const { folder_.WriteRank(rank, files_.at(rank)); }

  // Changes one byte of a shard.
  void Flip(int64_t rank, size_t tensor, size_t offset) {
    char& byte = files_.at(rank)[tensor].content.at(offset);
    byte = static_cast<char>(byte ^ 1);
    Write(rank);
  }

  Result<ReplicaReport> Compare(const std::vector<int64_t>& stages = {0, 1}, size_t workers = 2,
                                const std::stop_token& stop = {}) const {
    auto source = OpenSource({folder_.options().source.path, strategy_});
    if (!source.ok()) return source.status();
    return CompareReplicas((*source)->tensors(), (*source)->rule().source(), ParameterChoice(),
                           stages, {.workers = workers, .stop = stop, .progress = nullptr});
  }

  // "parameter@stage: rank/reference+offset ..."
  static std::vector<std::string> Words(const Result<ReplicaReport>& report) {
    if (!report.ok()) return {report.status().message()};
    std::vector<std::string> words;
    for (const ReplicaReport::Difference& difference : report->differences) {
      std::string line = difference.parameter + "@" + std::to_string(difference.stage) + ":";
      for (const ReplicaReport::Pair& pair : difference.pairs) {
        line += " " + std::to_string(pair.rank) + "/" + std::to_string(pair.reference) +
                (pair.other_type ? " type" : "+" + std::to_string(pair.offset));
      }
      words.push_back(line);
    }
    return words;
  }

  const std::vector<TestTensor> tensors_ = {MakeTensor("rows", DType::kFloat32, {6, 5}),
                                            MakeTensor("all", DType::kInt16, {7}),
                                            MakeTensor("none", DType::kFloat16, {8, 2})};
  const std::map<std::string, ParameterLayout> layouts_ = {
      {"rows", MakeLayout({2, 4}, {{1, -1}})},
      {"all", MakeLayout({2, 4}, {{-1}})},
      {"none", MakeLayout({2, 4}, {{1, 0}, {-1}})}};
  ConversionFolder folder_;
  std::string strategy_;
  std::map<int64_t, std::vector<TestTensor>> files_;  // by rank
};

TEST_F(ReplicaComparisonTest, EqualOnesAreCounted) {
  const auto report = Compare();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->compared, 4U);  // "rows" and "all" in both stages
  EXPECT_EQ(report->differing, 0U);
  EXPECT_THAT(report->differences, IsEmpty());
  EXPECT_TRUE(CheckNoneDiffer(*report, true).ok());
}

TEST_F(ReplicaComparisonTest, EachDisagreementIsFound) {
  Flip(3, 0, 59);  // the last byte of the first half
  Flip(6, 0, 7);
  Flip(9, 1, 0);
  for (const size_t workers : {1U, 2U, 7U}) {
    EXPECT_THAT(Words(Compare({0, 1}, workers)),
                ElementsAre("rows@0: 3/0+59 6/4+7", "all@1: 9/8+0"));
  }
  EXPECT_THAT(Words(Compare({1})), ElementsAre("all@1: 9/8+0"));
  const Status status = CheckNoneDiffer(*Compare(), true);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(),
              Naming("2 of 4 ", "\"rows\": rank 3 ", "rank 6 ", "rank 4 ", "byte 7"));
}

// All others differ from the one that is damaged, as nobody knows which is right.
TEST_F(ReplicaComparisonTest, TheLowestRankIsTheReference) {
  Flip(0, 1, 3);
  EXPECT_THAT(Words(Compare()), ElementsAre("all@0: 1/0+3 2/0+3 3/0+3 4/0+3 5/0+3 6/0+3 7/0+3"));
}

TEST_F(ReplicaComparisonTest, WhatIsNoReplicaMayDiffer) {
  Flip(5, 2, 0);  // "none"
  Flip(7, 3, 0);  // "own"
  EXPECT_THAT(Words(Compare()), IsEmpty());
}

TEST_F(ReplicaComparisonTest, AccumulatedGradientsMayDiffer) {
  for (auto& [rank, shards] : files_) {
    shards[1].name = "accu_grads.all";
    Write(rank);
  }
  const ParameterLayout layout = layouts_.at("all");
  folder_.folder().Write(
      "s.ckpt", ProtobufStrategy(1, {{"0-accu_grads.all", layout}, {"1-accu_grads.all", layout}}));
  Flip(3, 1, 0);
  const auto report = Compare();
  EXPECT_THAT(Words(report), IsEmpty());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->compared, 2U);
  EXPECT_THAT(report->own_values, ElementsAre("accu_grads.all"));
  EXPECT_TRUE(CheckNoneDiffer(*report, true).ok());
}

TEST_F(ReplicaComparisonTest, RanksThatAreMissingAreNotCompared) {
  Flip(2, 1, 0);
  for (const int64_t rank : {0, 1, 4, 8, 9, 10, 11, 12, 13, 14}) folder_.RemoveRank(rank);
  EXPECT_THAT(Words(Compare()), ElementsAre("all@0: 3/2+0 5/2+0 6/2+0 7/2+0"));
  const auto report = Compare();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->compared, 2U);  // one file of stage 1 is left
}

TEST_F(ReplicaComparisonTest, ParametersThatSomeRanksDoNotHoldAreComparedElsewhere) {
  for (const int64_t rank : {0, 1, 2}) {
    std::erase_if(files_.at(rank), [](const TestTensor& tensor) { return tensor.name == "rows"; });
    Write(rank);
  }
  Flip(3, 0, 1);
  EXPECT_THAT(Words(Compare()), IsEmpty());  // the only one of its half
  Flip(7, 0, 2);
  EXPECT_THAT(Words(Compare()), ElementsAre("rows@0: 7/4+2"));
}

TEST_F(ReplicaComparisonTest, OtherTypesAreDifferences) {
  files_.at(4)[1] = {"all", DType::kUInt16, {7}, tensors_[1].content};
  Write(4);
  files_.at(5)[1] = MakeTensor("all", DType::kInt16, {6});
  Write(5);
  EXPECT_THAT(Words(Compare()), ElementsAre("all@0: 4/0 type 5/0 type"));
  EXPECT_THAT(CheckNoneDiffer(*Compare(), true).message(), Naming("rank 4 ", "rank 0"));
}

TEST_F(ReplicaComparisonTest, AnotherNumberOfDimensionsIsAnError) {
  files_.at(4)[1] = MakeTensor("all", DType::kInt16, {7, 1});
  Write(4);
  // The layout of "all" is of one dimension.
  EXPECT_EQ(Compare().status().code(), StatusCode::kMismatch);
}

TEST_F(ReplicaComparisonTest, TheCutsOfValuesDoNotMatter) {
  const std::string& content = tensors_[1].content;
  std::string bytes;
  for (const auto& [begin, end] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {0, 3}, {3, 14}}) {
    bytes += EncodeValueHeader("all", DType::kInt16, {7}, end - begin);
    bytes += content.substr(begin, end - begin);
  }
  folder_.WriteRank(2, bytes);
  EXPECT_THAT(Words(Compare()), IsEmpty());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  folder_.WriteRank(2, bytes);
  EXPECT_THAT(Words(Compare()), ElementsAre("all@0: 2/0+13"));
}

TEST_F(ReplicaComparisonTest, NoMoreThanTwentyAreListed) {
  std::vector<NamedLayout> layouts;
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "p" + std::to_string(100 + i);
    layouts.push_back({name, MakeLayout({40}, {{-1}})});
    tensors.push_back(MakeTensor(name, DType::kInt8, {2}));
  }
  const ConversionFolder folder(layouts, {});
  folder.WriteStage(tensors, layouts, 40);
  for (TestTensor& tensor : tensors) tensor.content[1] ^= 1;
  folder.WriteRank(0, tensors);
  auto source = OpenSource(folder.options().source);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const std::vector<int64_t> stages = {0};
  const auto report = CompareReplicas((*source)->tensors(), (*source)->rule().source(),
                                      ParameterChoice(), stages, {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->compared, 30U);
  EXPECT_EQ(report->differing, 30U);
  ASSERT_THAT(report->differences, SizeIs(20));
  EXPECT_EQ(report->differences[0].parameter, "p100");
  EXPECT_EQ(report->differences[0].pair_count, 39U);
  EXPECT_THAT(report->differences[0].pairs, SizeIs(20));
  EXPECT_THAT(CheckNoneDiffer(*report, true).message(),
              AllOf(Naming("36 more", "\"p102\""), Not(HasSubstr("\"p103\""))));
}

TEST_F(ReplicaComparisonTest, AStopEndsIt) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Compare({0, 1}, 2, stop.get_token()).status().code(), StatusCode::kCancelled);
}

TEST_F(ReplicaComparisonTest, WithoutSourceStrategyThereAreNone) {
  const auto source = OpenSource({folder_.options().source.path + "/rank_0/checkpoint_0.ckpt"},
                                 {.target = {.strategy = strategy_}});
  ASSERT_TRUE(source.ok()) << source.status().message();
  const std::vector<int64_t> stages = {0};
  const auto report = CompareReplicas((*source)->tensors(), (*source)->rule().source(),
                                      ParameterChoice(), stages, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->compared, 0U);
}

TEST(StagesOfTest, AreThoseThatTheRanksNeed) {
  const auto file = [](const std::vector<NamedLayout>& layouts) {
    auto strategy = StrategyTables::FromFile(ParsedStrategy("s", 0, layouts));
    EXPECT_TRUE(strategy.ok()) << strategy.status().message();
    return *std::move(strategy);
  };
  const ParameterLayout two = MakeLayout({2}, {{-1}});
  const Strategy source = file({{"0-a", two}, {"1-b", two}, {"2-c", two}});
  const Strategy target = file({{"0-a", two}, {"0-b", two}, {"1-c", two}});
  const ConversionRule rule(&source, &target);
  const auto stages_of = [&](std::vector<int64_t> ranks) { return StagesOf(rule, ranks); };
  EXPECT_THAT(stages_of({0}), ElementsAre(0, 1));
  EXPECT_THAT(stages_of({3}), ElementsAre(2));
  EXPECT_THAT(stages_of({0, 1, 2, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(stages_of({-1, 3, 4}), ElementsAre(2));
}

}  // namespace
}  // namespace reshard::replica_comparison_test

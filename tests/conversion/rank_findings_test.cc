// What diff and digest find among the ranks of a checkpoint: replicas, values of their own, copies
// in other stages.

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::rank_findings_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A checkpoint of any stages, of whose ranks single bytes are changed.
class RankedCheckpoint {
 public:
  // `stages` of four devices. Parameters that no stage has a layout of are in every file.
  RankedCheckpoint(const std::vector<TestTensor>& tensors,
                   const std::vector<std::vector<NamedLayout>>& stages) {
    std::vector<NamedLayout> merged;
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      for (const auto& [name, layout] : stages[stage]) {
        merged.push_back({std::to_string(stage) + "-" + name, layout});
      }
      for (int64_t local = 0; local < 4; ++local) {
        std::vector<TestTensor>& file = files_[static_cast<int64_t>(stage) * 4 + local];
        for (const TestTensor& tensor : tensors) {
          const auto has_it = [&](const NamedLayout& layout) { return layout.name == tensor.name; };
          const auto layout = std::find_if(stages[stage].begin(), stages[stage].end(), has_it);
          if (layout != stages[stage].end()) {
            file.push_back(NaiveShard(tensor, layout->layout, local));
          } else if (std::none_of(stages.begin(), stages.end(), [&](const auto& layouts) {
                       return std::any_of(layouts.begin(), layouts.end(), has_it);
                     })) {
            file.push_back(tensor);
          }
        }
      }
    }
    strategy_ = folder_.folder().Write("strategy.ckpt", ProtobufStrategy(1, merged));
    for (const auto& [rank, file] : files_) Write(rank);
  }

  std::vector<TestTensor>& Rank(int64_t rank) { return files_.at(rank); }
  void Write(int64_t rank) const { folder_.WriteRank(rank, files_.at(rank)); }
  void Remove(int64_t rank) const { folder_.RemoveRank(rank); }

  // Changes one byte of a rank's parameter.
  void Flip(int64_t rank, const std::string& name, size_t offset) {
    for (TestTensor& tensor : files_.at(rank)) {
      if (tensor.name == name) tensor.content.at(offset) ^= 1;
    }
    Write(rank);
  }
  void Erase(int64_t rank, const std::string& name) {
    std::erase_if(files_.at(rank), [&](const TestTensor& tensor) { return tensor.name == name; });
    Write(rank);
  }

  SourceSpec side() const { return {folder_.options().source.path, strategy_}; }

 private:
  ConversionFolder folder_;
  std::string strategy_;
  std::map<int64_t, std::vector<TestTensor>> files_;
};

// "w: 3/1+7" for each pair of replicas, those without differences left out.
std::vector<std::string> Pairs(const ReplicaReport& report) {
  std::vector<std::string> words;
  for (const ReplicaReport::Difference& difference : report.differences) {
    std::string line = difference.parameter + ":";
    for (const ReplicaReport::Pair& pair : difference.pairs) {
      line += " " + std::to_string(pair.rank) + "/" + std::to_string(pair.reference) +
              (pair.other_type ? " type" : "+" + std::to_string(pair.offset));
    }
    words.push_back(line);
  }
  EXPECT_EQ(report.differing, words.size());
  return words;
}

class RankFindingsTest : public testing::Test {
 protected:
  RankFindingsTest() {
    diff_.source = a_.side();
    diff_.b = b_.side();
  }

  DiffReport Compare() const {
    auto report = Diff(diff_);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : DiffReport();
  }

  DigestReport DigestB(bool one_replica = false) const {
    ContentOptions options;
    options.source.path = diff_.b.path;
    options.source.strategy = diff_.b.strategy;
    options.one_replica = one_replica;
    auto report = DigestCheckpoint(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : DigestReport();
  }

  // The parameters that are not equal, by name.
  static std::vector<std::string> Different(const DiffReport& report) {
    std::vector<std::string> names;
    for (const DiffReport::Parameter& diff : report.parameters) {
      if (diff.relation != DiffReport::Relation::kEqual) names.push_back(diff.name);
    }
    return names;
  }

  static const DiffReport::Parameter& Find(const DiffReport& report, const std::string& name) {
    return *std::find_if(report.parameters.begin(), report.parameters.end(),
                         [&](const DiffReport::Parameter& diff) { return diff.name == name; });
  }

  // "w" has two replicas of each half, "all" four; "none" none.
  const std::vector<TestTensor> tensors_ = {
      MakeTensor("w", DType::kFloat32, {6, 4}), MakeTensor("all", DType::kInt16, {7}),
      MakeTensor("none", DType::kFloat16, {8, 2}), MakeTensor("accu_grads.w", DType::kInt8, {10}),
      MakeTensor("step", DType::kInt64, {})};
  const ParameterLayout replicated_ = MakeLayout({2, 2}, {{-1}});
  const std::vector<NamedLayout> layouts_ = {{"w", MakeLayout({2, 2}, {{0, -1}})},
                                             {"all", replicated_},
                                             {"none", MakeLayout({2, 2}, {{1, 0}})},
                                             {"accu_grads.w", MakeLayout({2, 2}, {{0}})}};
  RankedCheckpoint a_{tensors_, {layouts_}};
  RankedCheckpoint b_{tensors_, {layouts_}};
  DiffOptions diff_;
};

TEST_F(RankFindingsTest, EqualReplicasAreCounted) {
  for (const int jobs : {1, 2, 8}) {
    diff_.run.jobs = jobs;
    const DiffReport report = Compare();
    EXPECT_TRUE(report.equal());
    ASSERT_TRUE(report.a && report.b);
    EXPECT_EQ(report.a->compared, 3U);
    EXPECT_EQ(report.a->shards, 12U);
    EXPECT_THAT(Pairs(*report.b), IsEmpty());
    EXPECT_THAT(report.b->own_values, IsEmpty());
  }
}

TEST_F(RankFindingsTest, ARankThatDiffersFromItsReplicaIsNamed) {
  b_.Flip(3, "w", 40);
  const DiffReport report = Compare();
  EXPECT_FALSE(report.equal());
  EXPECT_THAT(Different(report), IsEmpty());  // the lower rank's is what A has
  EXPECT_THAT(Pairs(*report.a), IsEmpty());
  EXPECT_THAT(Pairs(*report.b), ElementsAre("w: 3/1+40"));
  const DigestReport digest = DigestB();
  EXPECT_THAT(Pairs(*digest.replicas), ElementsAre("w: 3/1+40"));
  std::swap(diff_.source, diff_.b);
  EXPECT_THAT(Pairs(*Compare().a), ElementsAre("w: 3/1+40"));
}

TEST_F(RankFindingsTest, OneReplicaIsTheFastWay) {
  b_.Flip(3, "w", 40);
  diff_.one_replica = true;
  const DiffReport report = Compare();
  EXPECT_TRUE(report.equal());
  EXPECT_FALSE(report.a || report.b);
  EXPECT_FALSE(DigestB(true).replicas);
  b_.Flip(1, "w", 3);
  EXPECT_THAT(Different(Compare()), ElementsAre("w"));
}

TEST_F(RankFindingsTest, TheLowestRanksAreWhatIsComparedWithTheOtherSide) {
  b_.Flip(0, "w", 3);
  const DiffReport report = Compare();
  EXPECT_THAT(Different(report), ElementsAre("w"));
  EXPECT_THAT(Pairs(*report.b), ElementsAre("w: 2/0+3"));
}

TEST_F(RankFindingsTest, MissingReplicasAreNotCompared) {
  for (const int64_t rank : {0, 1, 2, 3}) {
    a_.Erase(rank, "none");
    b_.Erase(rank, "none");
  }
  b_.Flip(0, "w", 1);
  b_.Remove(2);
  const DiffReport report = Compare();
  EXPECT_THAT(Different(report), ElementsAre("w"));
  EXPECT_THAT(Pairs(*report.b), IsEmpty());
  EXPECT_EQ(report.b->compared, 3U);
}

TEST_F(RankFindingsTest, WhatOnlyOneRankHoldsIsComparedThere) {
  for (const int64_t rank : {0, 2, 3}) b_.Erase(rank, "all");
  for (const int64_t rank : {0, 1, 2}) b_.Erase(rank, "step");
  EXPECT_TRUE(Compare().equal());
  EXPECT_EQ(Compare().b->compared, 2U);
  b_.Flip(1, "all", 13);
  b_.Flip(3, "step", 0);
  EXPECT_THAT(Different(Compare()), ElementsAre("all", "step"));
}

TEST_F(RankFindingsTest, OtherTypesAreNamed) {
  b_.Rank(2)[0] = {"w", DType::kInt32, {3, 4}, b_.Rank(2)[0].content};
  b_.Write(2);
  EXPECT_THAT(Pairs(*Compare().b), ElementsAre("w: 2/0 type"));
}

TEST_F(RankFindingsTest, AccumulatedGradientsMayDiffer) {
  b_.Flip(2, "accu_grads.w", 4);
  DiffReport report = Compare();
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.b->own_values, ElementsAre("accu_grads.w"));
  EXPECT_EQ(DigestB().replicas->differing, 0U);
  b_.Flip(0, "accu_grads.w", 4);
  EXPECT_THAT(Different(Compare()), ElementsAre("accu_grads.w"));
}

TEST_F(RankFindingsTest, ALayoutThatDoesNotCutMakesNoDifference) {
  a_.Flip(3, "all", 0);
  b_.Flip(1, "all", 0);
  DiffReport report = Compare();
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.a->own_values, ElementsAre("all"));
  b_.Flip(2, "all", 5);
  report = Compare();
  EXPECT_THAT(Different(report), ElementsAre("all"));
  EXPECT_THAT(Find(report, "all").b_ranks, ElementsAre(2));
  EXPECT_EQ(DigestB().replicas->differing, 0U);
  EXPECT_THAT(DigestB().parameters[1].ranks, ElementsAre(0, 3));
}

TEST_F(RankFindingsTest, WhatNothingCutsDiffersWhereAValueIsOnOneSideOnly) {
  // The same two values, in other ranks.
  a_.Flip(1, "step", 0);
  b_.Flip(0, "step", 0);
  b_.Flip(3, "step", 0);
  DiffReport report = Compare();
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(report.a->own_values, ElementsAre("step"));
  EXPECT_THAT(report.b->own_values, ElementsAre("step"));
  b_.Flip(2, "step", 1);
  report = Compare();
  EXPECT_THAT(Different(report), ElementsAre("step"));
  EXPECT_THAT(Find(report, "step").a_ranks, IsEmpty());
  EXPECT_THAT(Find(report, "step").b_ranks, ElementsAre(2));
  a_.Flip(3, "step", 2);
  report = Compare();
  EXPECT_THAT(Find(report, "step").a_ranks, ElementsAre(3));
  EXPECT_THAT(Find(report, "step").b_ranks, ElementsAre(2));
}

TEST_F(RankFindingsTest, DigestsOfWhatNothingCutsAreByRank) {
  b_.Flip(1, "step", 0);
  b_.Flip(3, "step", 0);
  const DigestReport report = DigestB();
  ASSERT_THAT(report.parameters, SizeIs(tensors_.size() + 1));
  const DigestReport::Parameter& first = report.parameters[4];
  const DigestReport::Parameter& second = report.parameters[5];
  EXPECT_EQ(first.name, "step");
  EXPECT_EQ(second.name, "step");
  EXPECT_NE(first.digest, second.digest);
  EXPECT_THAT(first.ranks, ElementsAre(0, 2));
  EXPECT_THAT(second.ranks, ElementsAre(1, 3));
  EXPECT_THAT(report.parameters[0].ranks, IsEmpty());
  EXPECT_EQ(report.replicas->differing, 0U);
  EXPECT_THAT(report.replicas->own_values, ElementsAre("step"));
  EXPECT_THAT(DigestB(true).parameters, SizeIs(tensors_.size()));
}

// Shared by two stages, with other layouts in each.
class SharedStagesTest : public RankFindingsTest {
 protected:
  SharedStagesTest() { diff_.b = b_stages_.side(); }
  const std::vector<NamedLayout> second_ = {{"w", MakeLayout({2, 2}, {{1, 0}})}};
  RankedCheckpoint b_stages_{tensors_, {layouts_, second_}};
};

TEST_F(SharedStagesTest, CopiesInHigherStagesAreCompared) {
  DiffReport report = Compare();
  EXPECT_TRUE(report.equal());
  EXPECT_EQ(report.b->compared, 4U);
  b_stages_.Flip(7, "w", 20);  // of a quarter that no other rank of the stage holds
  report = Compare();
  EXPECT_FALSE(report.equal());
  EXPECT_THAT(Different(report), IsEmpty());
  EXPECT_THAT(Pairs(*report.b), ElementsAre("w: 7/1+20"));
}

TEST_F(SharedStagesTest, WhatIsThereOfAStageIsCompared) {
  b_stages_.Remove(4);
  EXPECT_TRUE(Compare().equal());
  b_stages_.Flip(5, "w", 0);
  EXPECT_THAT(Pairs(*Compare().b), ElementsAre("w: 5/0+0"));
}

TEST_F(RankFindingsTest, AMissingPartOfATensorWithoutElementsIsNoDifference) {
  const std::vector<NamedLayout> layouts = {{"nothing", MakeLayout({4}, {{-1, 0}})},
                                            {"w", MakeLayout({4}, {{-1, -1}})}};
  const RankedCheckpoint checkpoint(
      {MakeTensor("nothing", DType::kInt8, {0, 8}), MakeTensor("w", DType::kInt8, {1, 2})},
      {layouts});
  checkpoint.Remove(2);
  diff_.source = diff_.b = checkpoint.side();
  EXPECT_TRUE(Compare().equal());
}

}  // namespace
}  // namespace reshard::rank_findings_test

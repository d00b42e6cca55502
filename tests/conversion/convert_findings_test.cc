// What a conversion says of sources and strategies that do not quite fit, and where it goes on.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "reshard/convert.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_findings_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const ParameterLayout kRowsOf4 = MakeLayout({4}, {{0, -1}});
const ParameterLayout kRowsOf2 = MakeLayout({2}, {{0, -1}});
const ParameterLayout kRowsTwice = MakeLayout({2, 2}, {{1, -1}});  // ranks 0, 1 and ranks 2, 3
const TestTensor kWeight = MakeTensor("w", DType::kFloat32, {8, 3});

TestTensor Step(uint64_t value) { return MakeTensor("step", DType::kInt64, {}, value); }

ConvertReport RunConvert(const ConversionFolder& folder) {
  auto report = Convert(folder.options());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : ConvertReport();
}

// Expects that the conversion is refused before anything is at the target.
std::string RefusedAsMismatch(const ConversionFolder& folder) {
  const auto report = Convert(folder.options());
  EXPECT_EQ(report.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(ReadFolder(folder.options().target.folder), IsEmpty());
  return report.status().message();
}

TEST(MissingRanksTest, AreAWarningWhereReplicasServe) {
  ConversionFolder folder({{"w", kRowsTwice}}, {{"w", kRowsOf2}});
  folder.WriteStage({kWeight, Step(0)}, {{"w", kRowsTwice}}, 4);
  folder.RemoveRank(0);
  folder.RemoveRank(3);
  const ConvertReport report = RunConvert(folder);
  EXPECT_THAT(report.warnings,
              ElementsAre(Says(WarningCode::kMissingRanks, Naming("0-3", "src.ckpt", ": 0, 3"))));
  EXPECT_THAT(report.source_ranks, ElementsAre(1, 2));
  for (const int64_t rank : {0, 1}) {
    EXPECT_THAT(folder.Target(rank), ElementsAre(NaiveShard(kWeight, kRowsOf2, rank), Step(0)));
  }
}

TEST(MissingRanksTest, AreNamedWhereAPartIsInNoFile) {
  ConversionFolder folder({{"w", kRowsTwice}}, {{"w", kRowsOf2}});
  folder.WriteStage({kWeight}, {{"w", kRowsTwice}}, 4);
  folder.RemoveRank(2);
  folder.RemoveRank(3);
  EXPECT_THAT(RefusedAsMismatch(folder),
              Naming("no checkpoint for ranks 2-3, ", "src.ckpt ", "rows 4 to 7 of w"));
  // The other half can be had.
  folder.options().selection.ranks = {0};
  EXPECT_THAT(RunConvert(folder).warnings, IsEmpty());
  EXPECT_THAT(folder.Target(0), ElementsAre(NaiveShard(kWeight, kRowsOf2, 0)));
}

TEST(MissingRanksTest, ManyAreRanges) {
  const ParameterLayout all = MakeLayout({64}, {{-1, -1}});
  ConversionFolder folder({{"w", all}}, {});
  folder.WriteRank(40, {kWeight});
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kMissingRanks, Naming("0-63", ": 0-39, 41-63"))));
  EXPECT_THAT(folder.Target(0), ElementsAre(kWeight));
}

TEST(MissingRanksTest, NoneOfTheRanksIsAnError) {
  ConversionFolder folder({{"w", kRowsOf2}}, {});
  folder.WriteRank(2, {kWeight});
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("/source: ", "ranks 0-1", "src.ckpt", "rank 2"));
}

TEST(RankFoldersTest, BeyondDevicesTimesStagesMeanAnotherStrategy) {
  ConversionFolder folder({{"0-w", kRowsOf2}, {"1-v", kRowsOf2}}, {});
  folder.WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  const TestTensor other = MakeTensor("v", DType::kInt8, {4, 1});
  folder.WriteStage({other}, {{"v", kRowsOf2}}, 2, 2);
  folder.WriteRank(4, "not even a checkpoint");
  folder.WriteRank(1000, {kWeight});
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("/source: ", "ranks 0-3", ": 4, 1000;"));
}

TEST(RankFoldersTest, SeveralWithoutAStrategyAreNotFullTensors) {
  ConversionFolder folder({}, {{"w", kRowsOf2}});
  folder.WriteRank(0, {kWeight});
  folder.WriteRank(1, {kWeight});
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("/source: ", "rank 1 ", "`source.strategy`"));
}

// What was saved without redundancy: each shard in one of the files that could hold it.
TEST(SavedWithoutRedundancyTest, ShardsComeFromWhicheverReplicaHasThem) {
  const std::vector<NamedLayout> layouts = {{"w", kRowsTwice}, {"v", kRowsTwice}};
  ConversionFolder folder(layouts, {{"w", kRowsOf4}, {"v", kRowsOf4}});
  const TestTensor v = MakeTensor("v", DType::kInt8, {4, 1});
  folder.WriteRank(0, {NaiveShard(v, kRowsTwice, 0)});
  folder.WriteRank(1, {NaiveShard(kWeight, kRowsTwice, 1)});
  folder.WriteRank(2, {NaiveShard(kWeight, kRowsTwice, 2)});
  folder.WriteRank(3, {NaiveShard(v, kRowsTwice, 3), Step(3)});
  const ConvertReport report = RunConvert(folder);
  EXPECT_THAT(report.warnings, IsEmpty());
  for (const int64_t rank : {0, 1, 2, 3}) {
    EXPECT_THAT(folder.Target(rank),
                testing::UnorderedElementsAre(NaiveShard(v, kRowsOf4, rank),
                                              NaiveShard(kWeight, kRowsOf4, rank), Step(3)))
        << rank;
  }
}

TEST(SavedWithoutRedundancyTest, AShardThatIsInNoFileIsNamed) {
  ConversionFolder folder({{"w", kRowsTwice}}, {{"w", kRowsOf4}});
  for (const int64_t rank : {0, 1}) folder.WriteRank(rank, {NaiveShard(kWeight, kRowsTwice, rank)});
  for (const int64_t rank : {2, 3}) folder.WriteRank(rank, {Step(0)});
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("rows 4 to 7 of w", "ranks 2-3"));
}

TEST(SavedWithoutRedundancyTest, WhatIsCopiedComesFromARankOfTheSameBox) {
  const ParameterLayout by_turns = MakeLayout({2, 2}, {{0, -1}});  // ranks 0, 2 and ranks 1, 3
  ConversionFolder folder({{"w", kRowsOf4}, {"v", by_turns}}, {{"w", kRowsOf2}});
  const TestTensor v = MakeTensor("v", DType::kInt8, {4, 1});
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::vector<TestTensor> tensors = {NaiveShard(kWeight, kRowsOf4, rank)};
    if (rank == 1 || rank == 2) tensors.push_back(NaiveShard(v, by_turns, rank));
    folder.WriteRank(rank, tensors);
  }
  RunConvert(folder);
  for (const int64_t rank : {0, 1}) {
    EXPECT_THAT(folder.Target(rank),
                ElementsAre(NaiveShard(kWeight, kRowsOf2, rank), NaiveShard(v, by_turns, rank)))
        << rank;
  }
  folder.WriteRank(2, {NaiveShard(kWeight, kRowsOf4, 2)});
  folder.options().force = true;
  EXPECT_THAT(Convert(folder.options()).status().message(),
              Naming("rows 0 to 1 of v", "ranks 0, 2"));
}

// Nothing that the target needs by its strategy is in their files.
TEST(SavedWithoutRedundancyTest, WhatIsCopiedMayBeInOtherFilesAlone) {
  const ParameterLayout whole = MakeLayout({1}, {{-1, -1}});
  ConversionFolder folder({{"w", kRowsTwice}, {"v", kRowsTwice}}, {{"w", whole}});
  const TestTensor v = MakeTensor("v", DType::kInt8, {4, 1});
  for (const int64_t rank : {0, 2}) folder.WriteRank(rank, {NaiveShard(kWeight, kRowsTwice, rank)});
  for (const int64_t rank : {1, 3}) folder.WriteRank(rank, {NaiveShard(v, kRowsTwice, rank)});
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kUnmatchedParameters, HasSubstr("\"v\""))));
  EXPECT_THAT(folder.Target(0), ElementsAre(kWeight, NaiveShard(v, kRowsTwice, 1)));
}

TEST(SafetensorsTargetTest, MetadataThatAParameterHasTheNameOfIsLeftOut) {
  ConversionFolder folder({{"w", kRowsOf2}}, {});
  folder.WriteStage({kWeight, MakeTensor("format", DType::kInt8, {2})}, {{"w", kRowsOf2}}, 2);
  folder.options().target.strategy = {};
  EXPECT_THAT(RunConvert(folder).warnings,
              testing::Not(testing::Contains(Says(WarningCode::kLeftOut, HasSubstr("metadata")))));
  folder.options().force = true;
  folder.options().prune = true;
  folder.options().target.format = TargetFormat::kSafetensors;
  EXPECT_THAT(RunConvert(folder).warnings,
              testing::Contains(Says(WarningCode::kLeftOut, Naming("metadata", "\"format\""))));
}

TEST(UnifiedTargetTest, WhatTheFirstRankLacksIsNamed) {
  ConversionFolder folder({{"w", kRowsOf2}}, {});
  folder.WriteRank(0, {NaiveShard(kWeight, kRowsOf2, 0), Step(0)});
  folder.WriteRank(
      1, {NaiveShard(kWeight, kRowsOf2, 1), Step(1), MakeTensor("late", DType::kBool, {1})});
  folder.options().target.strategy = {};
  folder.options().target.format = TargetFormat::kUnified;
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kWithoutLayout, Naming("\"late\"")),
                          Says(WarningCode::kCountersDiffer, Naming("\"step\""))));
}

// The files that are there show that each holds what the others do not.
TEST(SavedWithoutRedundancyTest, AParameterOfAMissingRankIsAnError) {
  const TestTensor other = MakeTensor("v", DType::kFloat32, {8, 3}, 5);
  const TestTensor lost = MakeTensor("x", DType::kFloat32, {8, 3}, 6);
  const ParameterLayout whole = MakeLayout({3}, {{-1, -1}});
  ConversionFolder folder({{"w", whole}, {"v", whole}, {"x", whole}},
                          {{"w", kRowsOf2}, {"v", kRowsOf2}, {"x", kRowsOf2}});
  folder.WriteRank(0, {kWeight});
  folder.WriteRank(1, {other});
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("\"x\"", "rank 2"));
  folder.WriteRank(2, {lost});
  RunConvert(folder);
}

TEST(CopiedTest, ComesFromTheFileOfItsRankElseFromTheLowestThatHasIt) {
  ConversionFolder folder({{"w", kRowsOf4}}, {{"w", kRowsOf2}});
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::vector<TestTensor> tensors = {NaiveShard(kWeight, kRowsOf4, rank)};
    if (rank >= 1) tensors.push_back(Step(static_cast<uint64_t>(rank)));
    if (rank >= 2) tensors.push_back(MakeTensor("late", DType::kBool, {1}, 7));
    folder.WriteRank(rank, tensors);
  }
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kCountersDiffer, Naming("\"step\""))));
  const TestTensor late = MakeTensor("late", DType::kBool, {1}, 7);
  EXPECT_THAT(folder.Target(0),
              testing::UnorderedElementsAre(NaiveShard(kWeight, kRowsOf2, 0), Step(1), late));
  EXPECT_THAT(folder.Target(1),
              testing::UnorderedElementsAre(NaiveShard(kWeight, kRowsOf2, 1), Step(1), late));
}

class UnmatchedTest : public testing::Test {
 protected:
  UnmatchedTest() {
    folder_.WriteStage({kWeight, old_, fresh_, Step(0)}, {{"w", kRowsOf2}, {"old", kRowsOf2}}, 2);
  }

  const TestTensor old_ = MakeTensor("old", DType::kFloat16, {4, 2});
  const TestTensor fresh_ = MakeTensor("fresh", DType::kFloat16, {4, 2});
  // Of rows: "old" is cut in the source, "fresh" would be in the target.
  ConversionFolder folder_{{{"w", kRowsOf2}, {"old", kRowsOf2}},
                           {{"w", kRowsOf4}, {"fresh", kRowsOf4}}};
};

TEST_F(UnmatchedTest, IsCopiedWithAWarningThatCountsAndNames) {
  EXPECT_THAT(
      RunConvert(folder_).warnings,
      ElementsAre(Says(WarningCode::kUnmatchedParameters, Naming("2 ", ": \"fresh\", \"old\""))));
  EXPECT_THAT(folder_.Target(3), ElementsAre(NaiveShard(kWeight, kRowsOf4, 3),
                                             NaiveShard(old_, kRowsOf2, 1), fresh_, Step(0)));
}

TEST_F(UnmatchedTest, IsDroppedOnRequest) {
  folder_.options().selection.unmatched = Selection::Unmatched::kDrop;
  EXPECT_THAT(
      RunConvert(folder_).warnings,
      ElementsAre(Says(WarningCode::kUnmatchedParameters, Naming("2 ", ": \"fresh\", \"old\""))));
  EXPECT_THAT(folder_.Target(3), ElementsAre(NaiveShard(kWeight, kRowsOf4, 3), Step(0)));
}

TEST_F(UnmatchedTest, IsRefusedOnRequest) {
  folder_.options().selection.unmatched = Selection::Unmatched::kError;
  EXPECT_THAT(RefusedAsMismatch(folder_),
              Naming("2 ", ": \"fresh\", \"old\";", "`unmatched=copy`", "`unmatched=drop`"));
}

// What one strategy cuts and the other does not know is unmatched; here nothing says how it is cut.
class WithoutLayoutTest : public testing::Test {
 protected:
  const TestTensor buffer_ = MakeTensor("buffer", DType::kInt8, {2});
  const TestTensor element_ = MakeTensor("element", DType::kInt8, {1, 1});
};

TEST_F(WithoutLayoutTest, InTheSourceIsAWarningOrRefused) {
  for (const auto& target : {std::vector<NamedLayout>{}, {{"w", kRowsOf4}}}) {
    ConversionFolder folder({{"w", kRowsOf2}}, target);
    folder.WriteStage({kWeight, buffer_, element_, Step(0)}, {{"w", kRowsOf2}}, 2);
    EXPECT_THAT(RunConvert(folder).warnings,
                ElementsAre(Says(WarningCode::kWithoutLayout, Naming("1 ", ": \"buffer\""))));
    folder.options().selection.unmatched = Selection::Unmatched::kError;
    folder.options().target.folder += "2";
    EXPECT_THAT(RefusedAsMismatch(folder), Naming("parameter \"buffer\" Int8 [2]"));
  }
}

TEST_F(WithoutLayoutTest, InTheTargetIsAWarningOrRefused) {
  ConversionFolder folder({}, {{"w", kRowsOf2}});
  folder.WriteRank(0, {kWeight, buffer_, element_});
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kWithoutLayout, Naming("1 ", ": \"buffer\""))));
  EXPECT_THAT(folder.Target(1), ElementsAre(NaiveShard(kWeight, kRowsOf2, 1), buffer_, element_));
  folder.options().selection.unmatched = Selection::Unmatched::kError;
  folder.options().target.folder += "2";
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("parameter \"buffer\""));
}

TEST_F(WithoutLayoutTest, OfOneDeviceThereIsNothingToCut) {
  ConversionFolder folder({{"w", MakeLayout({1}, {{-1, -1}})}}, {});
  folder.WriteRank(0, {kWeight, buffer_});
  EXPECT_THAT(RunConvert(folder).warnings, IsEmpty());
}

TEST(AbsentTest, ParametersOfTheStrategiesInNoFileAreAWarning) {
  ConversionFolder folder({{"w", kRowsOf2}, {"both", kRowsOf2}, {"in_source", kRowsOf2}},
                          {{"w", kRowsOf2}, {"both", kRowsOf2}, {"in_target", kRowsOf2}});
  folder.WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  EXPECT_THAT(
      RunConvert(folder).warnings,
      ElementsAre(Says(WarningCode::kAbsentParameters, Naming("2 ", ": \"both\", \"in_target\""))));
  EXPECT_THAT(folder.Target(1), ElementsAre(NaiveShard(kWeight, kRowsOf2, 1)));
}

TEST(AbsentTest, WithoutATargetStrategyThoseOfTheSource) {
  ConversionFolder folder({{"0-w", kRowsOf2}, {"1-gone", kRowsOf2}}, {});
  folder.WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  folder.WriteStage({Step(1)}, {}, 2, 2);
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kAbsentParameters, Naming("1 ", ": \"gone\""))));
  EXPECT_THAT(folder.Target(0), ElementsAre(kWeight, Step(1)));
}

TEST(AbsentTest, AFileWithoutParametersIsAWarning) {
  ConversionFolder folder({{"0-w", kRowsOf2}, {"1-v", kRowsOf2}},
                          {{"0-w", kRowsOf2}, {"0-v", kRowsOf2}, {"1-fresh", kRowsOf2}});
  folder.WriteStage({kWeight, Step(0)}, {{"w", kRowsOf2}}, 2);
  folder.WriteStage({Step(0)}, {}, 2, 2);
  EXPECT_THAT(
      RunConvert(folder).warnings,
      ElementsAre(Says(WarningCode::kAbsentParameters, Naming(": \"fresh\", \"v\"")),
                  Says(WarningCode::kEmptyTargets,
                       Naming("2 ", ": rank_2/checkpoint_2.ckpt, rank_3/checkpoint_3.ckpt"))));
  EXPECT_THAT(folder.Target(1), ElementsAre(NaiveShard(kWeight, kRowsOf2, 1), Step(0)));
  EXPECT_EQ(ReadFolder(folder.options().target.folder).at(RankPath(2)), "");
}

// Whether the checkpoint has what only files of that stage could hold cannot be known.
TEST(MissingRanksTest, AllOfAStageAreAnErrorWhereTheTargetNeedsIt) {
  ConversionFolder folder({{"0-w", kRowsOf2}, {"1-v", kRowsOf2}, {"1-old", kRowsOf2}},
                          {{"0-w", kRowsOf2}, {"1-v", kRowsOf2}});
  folder.WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("ranks 2-3, ", "src.ckpt ", "stage 1", "\"old\""));
  folder.options().selection.unmatched = Selection::Unmatched::kDrop;
  EXPECT_THAT(RefusedAsMismatch(folder), HasSubstr("\"v\""));
  folder.options().selection.ranks = {0, 1};
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kMissingRanks, Naming(": 2-3"))));
}

TEST(StatedShapeTest, OfJsonIsAWarningWhereItDisagrees) {
  ConversionFolder folder;
  ParameterLayout source = kRowsOf2;
  source.tensor_shape = Shape{8, 3};
  ParameterLayout target = kRowsOf4;
  target.tensor_shape = Shape{8, 4};
  folder.options().source.strategy =
      folder.folder().Write("src.json", JsonStrategy(0, {{"w", source}}));
  folder.options().target.strategy =
      folder.folder().Write("dst.json", JsonStrategy(0, {{"w", target}}));
  folder.WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kOtherShapes,
                               Naming("tensor_shape", "\"w\"", "[8, 3]", "dst.json: [8, 4]"))));
  EXPECT_THAT(folder.Target(3), ElementsAre(NaiveShard(kWeight, kRowsOf4, 3)));
}

TEST(DivisionTest, ADimensionThatDoesNotDivideIsNamedAndSwappedStrategiesAreAskedFor) {
  // Two ranks of 3 rows each; by the swapped strategies it would be three such ranks.
  ConversionFolder folder({{"w", MakeLayout({3}, {{0, -1}})}}, {{"w", kRowsOf2}});
  folder.WriteStage({MakeTensor("w", DType::kInt8, {6, 2})}, {{"w", kRowsOf2}}, 2);
  EXPECT_THAT(
      RefusedAsMismatch(folder),
      AllOf(Naming("dst.ckpt: parameter \"w\": dimension 0 of the full shape [9, 2] ", " 2 "),
            HasSubstr("are the two strategies swapped?")));
}

TEST(WrongStrategyTest, ARankThatHasAFileIsNotSaidToBeMissing) {
  ConversionFolder folder({{"w", kRowsOf2}}, {});
  folder.WriteRank(0, {NaiveShard(kWeight, kRowsOf2, 0)});
  folder.WriteRank(1, {Step(0)});
  EXPECT_THAT(RefusedAsMismatch(folder), Naming("rows 4 to 7 of w", "rank 1,"));
}

TEST(DisagreementTest, ShardsOfUnequalShapesAreRefused) {
  ConversionFolder folder({{"w", kRowsOf4}}, {});
  for (const int64_t rank : {0, 1, 2, 3})
    folder.WriteRank(rank, {NaiveShard(kWeight, kRowsOf4, rank)});
  folder.WriteRank(2, {MakeTensor("w", DType::kFloat32, {3, 3})});
  EXPECT_THAT(RefusedAsMismatch(folder),
              Naming("rank_2/checkpoint_2.ckpt: parameter \"w\": expected Float32 [2, 3]",
                     "found Float32 [3, 3]"));
}

TEST(DisagreementTest, ShardsOfUnequalDTypesAreRefused) {
  ConversionFolder folder({{"w", kRowsOf4}}, {});
  for (const int64_t rank : {0, 1, 2, 3})
    folder.WriteRank(rank, {NaiveShard(kWeight, kRowsOf4, rank)});
  folder.WriteRank(3, {MakeTensor("w", DType::kInt32, {2, 3})});
  EXPECT_THAT(RefusedAsMismatch(folder),
              Naming("rank_3/checkpoint_3.ckpt: parameter \"w\": expected Float32 [2, 3]",
                     "found Int32 [2, 3]"));
}

TEST(WarningsTest, NameTheFirstThree) {
  std::vector<NamedLayout> layouts = {{"w", kRowsOf2}};
  for (int i = 10; i < 35; ++i) layouts.push_back({"gone" + std::to_string(i), kRowsOf2});
  ConversionFolder folder(layouts, layouts);
  folder.WriteStage({kWeight}, {{"w", kRowsOf2}}, 2);
  const ConvertReport report = RunConvert(folder);
  ASSERT_THAT(report.warnings, SizeIs(1));
  EXPECT_THAT(report.warnings[0].message, Naming("25 ", "\"gone12\" and 22 more"));
}

}  // namespace
}  // namespace reshard::convert_findings_test

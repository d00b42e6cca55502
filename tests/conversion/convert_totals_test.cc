// How many parameters the whole source has, and a stage that is converted alone.

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/target_view.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_totals_test {
namespace {

using testing::AllOf;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

using Totals = std::optional<Findings::Totals>;

// A safetensors file of this header and so many zero bytes.
std::string SafetensorsBytes(std::string header, size_t content) {
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string file(8, '\0');
  for (size_t i = 0, length = header.size(); i < 8; ++i, length >>= 8) {
    file[i] = static_cast<char>(length & 0xff);
  }
  return file + header + std::string(content, '\0');
}

const ParameterLayout kHalves = MakeLayout({2}, {{0, -1}});
const ParameterLayout kOneWhole = MakeLayout({2}, {{-1, -1}});

// What Plan and Convert say, which is the same.
Totals TotalsOf(const ConversionFolder& folder) {
  const auto planned = Plan(folder.options());
  const auto report = Convert(folder.options());
  EXPECT_TRUE(planned.ok()) << planned.status().message();
  EXPECT_TRUE(report.ok()) << report.status().message();
  if (!planned.ok() || !report.ok()) return {};
  EXPECT_EQ(planned->totals, report->totals);
  EXPECT_EQ(planned->stage_alone, report->stage_alone);
  return report->totals;
}

// Expects a refusal, before anything is written.
Status Refused(const ConversionFolder& folder) {
  const Status status = Convert(folder.options()).status();
  EXPECT_EQ(Plan(folder.options()).status().message(), status.message());
  EXPECT_THAT(ReadFolder(folder.options().target.folder), IsEmpty());
  return status;
}

TEST(TotalsTest, AreOfFloatingPointTensorsInFull) {
  const std::vector<NamedLayout> layouts = {
      {"w", kHalves},         {"norm", kOneWhole}, {"adam_m.w", kHalves},
      {"moments.w", kHalves}, {"ids", kHalves},    {"f8", kHalves},
      {"scale", kOneWhole},   {"two", kHalves},    {"accu_grads.w", kHalves}};
  ConversionFolder folder(layouts, {});
  folder.WriteStage(
      {MakeTensor("w", DType::kBFloat16, {8, 3}), MakeTensor("norm", DType::kFloat32, {5, 1}),
       MakeTensor("adam_m.w", DType::kFloat32, {8, 3}),
       MakeTensor("moments.w", DType::kFloat16, {8, 3}),
       MakeTensor("accu_grads.w", DType::kFloat64, {8, 3}),
       MakeTensor("ids", DType::kInt64, {100, 2}), MakeTensor("f8", DType::kFloat8E4M3FN, {2, 7}),
       MakeTensor("scale", DType::kFloat32, {1, 1}), MakeTensor("two", DType::kFloat32, {2, 1}),
       MakeTensor("buffer", DType::kFloat32, {6}), MakeTensor("step", DType::kFloat32, {})},
      layouts, 2);
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{24 + 5 + 14 + 2 + 6, 3 * 24}));
}

TEST(TotalsTest, OfAFileOfFullTensors) {
  ConversionFolder folder({}, {{"w", kHalves}});
  folder.WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 3}),
                       MakeTensor("adam_v.w", DType::kFloat32, {8, 3})});
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{24, 24}));
}

TEST(TotalsTest, OfWhatIsChosenAreToldApart) {
  ConversionFolder folder({}, {{"w", kHalves}});
  folder.WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 3}),
                       MakeTensor("exp_avg.w", DType::kFloat32, {8, 3}),
                       MakeTensor("exp_avg_sq_row_w", DType::kFloat32, {8})});
  folder.options().selection.exclude = {"exp_avg*"};
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->totals, Optional(Findings::Totals{24, 32}));
  EXPECT_THAT(report->chosen_totals, Optional(Findings::Totals{24, 0}));
}

TEST(TotalsTest, OfElementsSmallerThanAByteAreOfElements) {
  ConversionFolder folder({}, {});
  folder.options().source.path = folder.folder().Write(
      "m.safetensors",
      SafetensorsBytes(R"({"f4":{"dtype":"F4","shape":[4,6],"data_offsets":[0,12]},)"
                       R"("odd":{"dtype":"F4","shape":[2,3],"data_offsets":[12,15]}})",
                       15));
  folder.options().target.format = TargetFormat::kHuggingFace;
  folder.options().target.strategy = "";
  folder.options().source.strategy = "";
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{24 + 6, 0}));
}

// A second network with the names of the first behind a prefix.
class RepeatedWeightsTest : public testing::Test {
 protected:
  RepeatedWeightsTest() {
    std::vector<TestTensor> tensors;
    for (const char* prefix : {"", "ref_model."}) {
      for (const char* name : {"model.a", "model.b"}) {
        tensors.push_back(MakeTensor(std::string(prefix) + name, DType::kFloat32, {8, 3}));
      }
    }
    // Other modules have parameters of one name, too.
    tensors.push_back(MakeTensor("model.c.weight", DType::kFloat32, {8, 3}));
    tensors.push_back(MakeTensor("weight", DType::kFloat32, {8, 3}));
    folder_.WriteRank(0, tensors);
  }

  ConversionFolder folder_{{}, {{"model.a", kHalves}}};
};

TEST_F(RepeatedWeightsTest, CountAndAreWarnedOf) {
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->totals, Optional(Findings::Totals{6 * 24, 0}));
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kRepeatedWeights,
                                     Naming("2 ", "\"ref_model.\"", "48 ", "'ref_model.*'"))));
}

TEST_F(RepeatedWeightsTest, AreNotExpectedWithoutThem) {
  folder_.options().checks.parameters = std::to_string(4 * 24);
  const Status status = Refused(folder_);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("144 ", "'ref_model.*'"));
  folder_.options().selection.exclude = {"ref_model.*"};
  const auto report = Convert(folder_.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(
      report->warnings,
      Not(testing::Contains(testing::Field(&Warning::code, WarningCode::kRepeatedWeights))));
}

// Two stages of two ranks that share a parameter.
class PipelineTotalsTest : public testing::Test {
 protected:
  PipelineTotalsTest() {
    folder_.WriteStage(first_, {{"w", kHalves}, {"shared", kHalves}}, 2);
    folder_.WriteStage(second_, {{"v", kHalves}, {"shared", kHalves}}, 2, 2);
  }

  const TestTensor shared_ = MakeTensor("shared", DType::kFloat32, {2, 5});
  const TestTensor buffer_ = MakeTensor("buffer", DType::kFloat32, {7});
  const std::vector<TestTensor> first_ = {MakeTensor("w", DType::kFloat32, {8, 3}), shared_,
                                          buffer_};
  const std::vector<TestTensor> second_ = {MakeTensor("v", DType::kFloat32, {4, 4}), shared_,
                                           buffer_};
  const Findings::Totals all_{24 + 16 + 10 + 7, 0};
  ConversionFolder folder_{
      {{"0-w", kHalves}, {"0-shared", kHalves}, {"1-v", kHalves}, {"1-shared", kHalves}},
      {{"0-w", kHalves}, {"0-shared", kHalves}, {"1-v", kHalves}}};
};

TEST_F(PipelineTotalsTest, CountWhatStagesShareOnce) { EXPECT_THAT(TotalsOf(folder_), Eq(all_)); }

TEST_F(PipelineTotalsTest, AreOfTheWholeSourceWhateverIsWritten) {
  folder_.options().selection.ranks = {0};
  EXPECT_THAT(TotalsOf(folder_), Eq(all_));
  // The files of the other stage were opened for that only, so they are stamped only.
  const std::string manifest = ReadFolder(folder_.options().target.folder).at("manifest.json");
  EXPECT_THAT(manifest.substr(0, manifest.find("\"stamps\"")),
              AllOf(HasSubstr("\"path\": \"rank_0/"), Not(HasSubstr("rank_2/"))));
  folder_.options().selection.ranks.clear();
  folder_.options().target.folder += "2";
  folder_.options().selection.exclude = {"v"};
  EXPECT_THAT(TotalsOf(folder_), Eq(all_));
  folder_.options().target.folder += "2";
  folder_.options().shard = WorkerShare{.index = 0, .count = 2};
  EXPECT_THAT(TotalsOf(folder_), Eq(all_));
}

TEST(TotalsTest, NeedOneRankOfEachStage) {
  const std::vector<NamedLayout> layouts = {{"0-w", kHalves}, {"1-v", kHalves}};
  ConversionFolder folder(layouts, layouts);
  folder.WriteStage({MakeTensor("w", DType::kFloat32, {8, 3})}, {{"w", kHalves}}, 2);
  folder.WriteRank(3, {MakeTensor("v", DType::kFloat32, {2, 3})});
  folder.options().selection.ranks = {0, 1};
  folder.options().force = true;
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{24 + 12, 0}));
  // What nobody needs otherwise stops nothing.
  folder.WriteRank(3, "not a checkpoint");
  EXPECT_THAT(TotalsOf(folder), Eq(std::nullopt));
  folder.RemoveRank(3);
  EXPECT_THAT(TotalsOf(folder), Eq(std::nullopt));
  folder.options().checks.parameters = "36";
  folder.options().target.folder += "2";
  const Status status = Refused(folder);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), Naming("stage 1 "));
}

TEST_F(PipelineTotalsTest, HaveToBeTheExpectedOnes) {
  folder_.options().checks.parameters = "0.06K";
  EXPECT_THAT(TotalsOf(folder_), Eq(all_));
  folder_.options().checks.parameters = "58";
  folder_.options().target.folder += "2";
  const Status status = Refused(folder_);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("57 ", "58;"));
  folder_.options().checks.parameters = "0.07K";
  EXPECT_THAT(Refused(folder_).message(), Naming("70 ", "10;"));
}

// Before the source is looked at.
TEST(TotalsTest, AreExpectedInWordsOfANumber) {
  ConversionFolder folder({{"w", kHalves}}, {});
  folder.options().checks.parameters = "6.74G";
  for (const Status& status : {Convert(folder.options()).status(), Plan(folder.options()).status(),
                               TargetView::Open(folder.options()).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.option(), "checks.parameters");
    EXPECT_THAT(status.message(), Naming("\"6.74G\"", "6.74B"));
  }
}

// Files are opened for the totals alone up to a bound, unless they are asked for.
TEST(TotalsTest, OfManyStagesAreStatedWhereTheyAreAskedFor) {
  constexpr int kStages = 18;
  std::vector<NamedLayout> layouts;
  for (int stage = 0; stage < kStages; ++stage) {
    layouts.push_back({std::to_string(stage) + "-w" + std::to_string(stage), kHalves});
  }
  ConversionFolder folder(layouts, layouts);
  for (int stage = 0; stage < kStages; ++stage) {
    const std::string name = "w" + std::to_string(stage);
    folder.WriteStage({MakeTensor(name, DType::kFloat32, {4, 1})}, {{name, kHalves}}, 2, 2 * stage);
  }
  folder.options().selection.ranks = {0, 1, 2, 3};
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{4 * kStages, 0}));
  folder.options().selection.ranks = {0, 1};
  folder.options().target.folder += "2";
  EXPECT_THAT(TotalsOf(folder), Eq(std::nullopt));
  folder.options().checks.parameters = std::to_string(4 * kStages);
  folder.options().force = true;
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{4 * kStages, 0}));
}

TEST(TotalsTest, AreOfAllFilesWhereRedundancyWasRemoved) {
  const ParameterLayout twice = MakeLayout({2, 2}, {{1, -1}});  // ranks 0, 1 and ranks 2, 3
  ConversionFolder folder({{"w", twice}, {"v", twice}, {"gone", twice}}, {});
  const TestTensor w = MakeTensor("w", DType::kFloat32, {8, 3});
  const TestTensor v = MakeTensor("v", DType::kFloat32, {4, 1});
  folder.WriteRank(0, {NaiveShard(v, twice, 0)});
  folder.WriteRank(1, {NaiveShard(w, twice, 1), NaiveShard(v, twice, 1)});
  folder.WriteRank(2, {NaiveShard(w, twice, 2)});
  folder.WriteRank(3, {NaiveShard(v, twice, 3)});
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{28, 0}));
}

TEST(TotalsTest, AreLeftOutWhereMissingFilesMayHoldMore) {
  ConversionFolder folder({{"w", kOneWhole}, {"gone", kOneWhole}}, {});
  folder.WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 3})});
  EXPECT_THAT(TotalsOf(folder), Eq(std::nullopt));
  folder.WriteRank(1, {MakeTensor("w", DType::kFloat32, {8, 3})});
  folder.options().force = true;
  EXPECT_THAT(TotalsOf(folder), Optional(Findings::Totals{24, 0}));
}

// Left out, it may be at odds with the strategy.
TEST(TotalsTest, AreLeftOutWhereALayoutDoesNotFit) {
  ConversionFolder folder({{"w", kHalves}, {"odd", kHalves}}, {});
  folder.WriteStage(
      {MakeTensor("w", DType::kFloat32, {8, 3}), MakeTensor("odd", DType::kFloat32, {2, 2, 2})},
      {{"w", kHalves}}, 2);
  folder.options().selection.exclude = {"odd"};
  EXPECT_THAT(TotalsOf(folder), Eq(std::nullopt));
}

TEST(StageAloneTest, IsReported) {
  ConversionFolder folder({{"w", kHalves}}, {{"w", kHalves}, {"v", kHalves}});
  folder.WriteStage({MakeTensor("w", DType::kFloat32, {8, 3})}, {{"w", kHalves}}, 2);
  EXPECT_THAT(TotalsOf(folder), Eq(std::nullopt));
  EXPECT_TRUE(Plan(folder.options()).ok());  // the set is complete
  folder.options().force = true;
  EXPECT_THAT(Convert(folder.options())->stage_alone, Optional(0));
  folder.options().target.folder += "2";
  folder.options().checks.parameters = "24";
  EXPECT_THAT(Refused(folder).message(), Naming("stage 0 "));
}

TEST(StageAloneTest, IsToldByTheNumberOfTheStage) {
  ConversionFolder folder({{"w", kHalves}}, {});
  folder.options().source.strategy =
      folder.folder().Write("stage_1.ckpt", ProtobufStrategy(1, {{"w", kHalves}}));
  folder.WriteStage({MakeTensor("w", DType::kFloat32, {8, 3})}, {{"w", kHalves}}, 2);
  EXPECT_THAT(Plan(folder.options())->stage_alone, Optional(1));
  EXPECT_THAT(Convert(folder.options())->stage_alone, Optional(1));
}

TEST(StageAloneTest, IsNotSaidOfAWholeSource) {
  ConversionFolder folder({{"w", kHalves}}, {});
  folder.WriteStage({MakeTensor("w", DType::kFloat32, {8, 3})}, {{"w", kHalves}}, 2);
  EXPECT_THAT(Convert(folder.options())->stage_alone, Eq(std::nullopt));
}

}  // namespace
}  // namespace reshard::convert_totals_test

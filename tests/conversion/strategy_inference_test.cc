// Strategies from shards and full tensors: the boxes that come out, and what stays open.

#include "reshard/strategy.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "src/mindspore/strategy_loader.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_inference_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ParameterLayout Sharded(ParameterLayout layout, int64_t step, int64_t size) {
  layout.opt_weight_shard_step = step;
  layout.opt_weight_shard_size = size;
  return layout;
}

// Zeros, as an optimizer's copies are at the beginning.
TestTensor Zeros(std::string name, Shape shape) {
  TestTensor tensor = MakeTensor(std::move(name), DType::kFloat32, std::move(shape));
  tensor.content.assign(tensor.content.size(), '\0');
  return tensor;
}

class StrategyInferenceTest : public testing::Test {
 protected:
  Result<StrategyReport> Infer(const std::vector<TestTensor>& reference) {
    const std::string full = folder_.folder().Write("full.ckpt", EncodeCheckpoint(reference));
    output_ = (folder_.folder().path() / "inferred.ckpt").string();
    return InferStrategy(folder_.options().source.path, full, output_, true);
  }

  // Expects each rank of a stage to hold what `layouts` say, by the strategy that was written.
  void ExpectBoxes(const std::vector<NamedLayout>& layouts, const std::vector<TestTensor>& tensors,
                   int64_t devices, size_t stage = 0) {
    const auto strategy = LoadStrategy(output_);
    ASSERT_TRUE(strategy.ok()) << strategy.status().message();
    ASSERT_EQ(strategy->devices_per_stage(), devices);
    for (const auto& [name, layout] : layouts) {
      const ParameterLayout* found = strategy->stages()[stage].Find(name);
      ASSERT_NE(found, nullptr) << name;
      size_t dims = 0;
      for (const TestTensor& tensor : tensors) {
        if (tensor.name == name) dims = tensor.shape.size();
      }
      for (int64_t rank = 0; rank < devices; ++rank) {
        EXPECT_EQ(PartsByDefinition(*found, dims, rank), PartsByDefinition(layout, dims, rank))
            << name << " of rank " << rank;
      }
    }
  }

  const ConversionFolder folder_;
  std::string output_;
};

const std::vector<TestTensor> kTensors = {MakeTensor("rows", DType::kFloat32, {16, 8}),
                                          MakeTensor("columns", DType::kInt16, {4, 16}),
                                          MakeTensor("both", DType::kFloat32, {8, 8}),
                                          MakeTensor("whole", DType::kFloat16, {5}),
                                          MakeTensor("scalar", DType::kInt64, {}),
                                          MakeTensor("optimizer", DType::kFloat32, {24}),
                                          MakeTensor("several", DType::kFloat32, {8, 16}),
                                          MakeTensor("moments.rows", DType::kFloat32, {16, 8})};

TEST_F(StrategyInferenceTest, AReferenceOfTheSameValuesTellsEveryLayout) {
  const std::vector<NamedLayout> layouts = {{"rows", MakeLayout({2, 4}, {{0, -1}})},
                                            {"columns", MakeLayout({4, 2}, {{-1, 1}})},
                                            {"both", MakeLayout({2, 2, 2}, {{0, 2}})},
                                            {"whole", MakeLayout({8}, {{-1}})},
                                            {"scalar", MakeLayout({8}, {{}})},
                                            {"optimizer", Sharded(MakeLayout({4, 2}, {{0}}), 2, 4)},
                                            {"several", MakeLayout({2, 2, 2}, {{-1}, {0, 2, 1}})},
                                            {"moments.rows", MakeLayout({2, 4}, {{0, -1}})}};
  folder_.WriteStage(kTensors, layouts, 8);
  const auto report = Infer(kTensors);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->layouts, 8U);
  EXPECT_THAT(report->warnings, IsEmpty());
  ExpectBoxes(layouts, kTensors, 8);
}

TEST_F(StrategyInferenceTest, NamesLikeThoseOfAPipelineKeepTheirDash) {
  const std::vector<TestTensor> tensors = {MakeTensor("0-w", DType::kFloat32, {8, 6})};
  const std::vector<NamedLayout> layouts = {{"0-w", MakeLayout({2}, {{-1, 0}})}};
  folder_.WriteStage(tensors, layouts, 2);
  const auto report = Infer(tensors);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ExpectBoxes(layouts, tensors, 2);
}

TEST_F(StrategyInferenceTest, StagesAreToldByTheirParameters) {
  const std::vector<TestTensor> first = {kTensors[0], kTensors[3]};
  const std::vector<TestTensor> second = {kTensors[2], kTensors[3]};
  const std::vector<NamedLayout> rows = {{"rows", MakeLayout({4}, {{0, -1}})},
                                         {"whole", MakeLayout({4}, {{-1}})}};
  const std::vector<NamedLayout> both = {{"both", MakeLayout({2, 2}, {{0, 1}})},
                                         {"whole", MakeLayout({4}, {{-1}})}};
  folder_.WriteStage(first, rows, 4);
  folder_.WriteStage(second, both, 4, 4);
  const auto report = Infer({kTensors[0], kTensors[2], kTensors[3]});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->stages, 2);
  ExpectBoxes(rows, kTensors, 4, 0);
  ExpectBoxes(both, kTensors, 4, 1);
}

TEST_F(StrategyInferenceTest, WithoutValuesReplicasTell) {
  // Columns, which optimizer sharding never cuts, and fewer parts than could be ordered otherwise.
  const std::vector<NamedLayout> layouts = {{"columns", MakeLayout({2, 4}, {{-1, 0}})},
                                            {"rows", MakeLayout({4, 2}, {{0, -1}})}};
  const std::vector<TestTensor> tensors = {kTensors[0], kTensors[1]};
  folder_.WriteStage(tensors, layouts, 8);
  const auto report = Infer({MakeTensor("rows", DType::kFloat32, {16, 8}, 7),
                             MakeTensor("columns", DType::kInt16, {4, 16}, 7)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ExpectBoxes(layouts, tensors, 8);
}

TEST_F(StrategyInferenceTest, LayoutsThatGiveDifferentResultsAreAnError) {
  folder_.WriteStage({kTensors[2]}, {{"both", MakeLayout({2, 2}, {{0, 1}})}}, 4);
  const auto report = Infer({MakeTensor("both", DType::kFloat32, {8, 8}, 7)});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(
      report.status().message(),
      HasSubstr(R"("both": full shape [8, 8], shards [4, 4]: the reference holds other values, )"
                R"(and several layouts fit: device matrix [2, 2], tensor map)"));
}

TEST_F(StrategyInferenceTest, EqualShardsFollowTheirParameterOrAreOpen) {
  const ParameterLayout layout = MakeLayout({2, 4}, {{-1, 1}});
  const std::vector<TestTensor> tensors = {kTensors[1], Zeros("adam_m.columns", {4, 16}),
                                           Zeros("bias", {16})};
  const std::vector<NamedLayout> layouts = {
      {"columns", layout}, {"adam_m.columns", layout}, {"bias", MakeLayout({2, 4}, {{0}})}};
  folder_.WriteStage(tensors, layouts, 8);
  const auto report = Infer({tensors[0], tensors[2]});  // the optimizer's copy is not there
  ASSERT_TRUE(report.ok()) << report.status().message();
  ExpectBoxes({layouts[0], layouts[1]}, tensors, 8);
  EXPECT_THAT(report->warnings, ElementsAre(Says(WarningCode::kAmbiguousLayouts, Naming("1 "))));
}

// The parameter's zeros fit any layout, the bytes of its copy only one.
TEST_F(StrategyInferenceTest, WhatAParameterLeavesOpenItsCopyTells) {
  for (const ParameterLayout& layout :
       {MakeLayout({2, 2}, {{1, 0}}), MakeLayout({2, 2}, {{0, 1}})}) {
    const std::vector<TestTensor> tensors = {Zeros("w", {4, 6}),
                                             MakeTensor("adam_m.w", DType::kFloat32, {4, 6})};
    folder_.WriteStage(tensors, {{"w", layout}, {"adam_m.w", layout}}, 4);
    const auto report = Infer(tensors);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ExpectBoxes({{"adam_m.w", layout}}, tensors, 4);
    const auto without = Infer({tensors[0]});
    ASSERT_FALSE(without.ok());
    EXPECT_THAT(without.status().message(), HasSubstr(R"("adam_m.w": full shape [4, 6], )"));
    EXPECT_THAT(without.status().message(), HasSubstr("several layouts fit"));
  }
}

TEST_F(StrategyInferenceTest, ACopyCutOtherwiseThanItsParameterIsToldByItsValues) {
  const std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat32, {4, 6}),
                                           MakeTensor("adam_m.w", DType::kFloat32, {4, 6})};
  const std::vector<NamedLayout> layouts = {{"w", MakeLayout({2, 2}, {{1, 0}})},
                                            {"adam_m.w", MakeLayout({2, 2}, {{0, 1}})}};
  folder_.WriteStage(tensors, layouts, 4);
  const auto report = Infer(tensors);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ExpectBoxes(layouts, tensors, 4);
}

TEST_F(StrategyInferenceTest, WhatIsLeftOutIsTold) {
  for (int64_t rank = 0; rank < 2; ++rank) {
    folder_.WriteRank(rank, {NaiveShard(kTensors[0], MakeLayout({2}, {{0, -1}}), rank),
                             MakeTensor("own", DType::kInt32, {3}, static_cast<uint64_t>(rank)),
                             MakeTensor("stranger", DType::kInt32, {3})});
  }
  const auto report = Infer({kTensors[0], MakeTensor("own", DType::kInt32, {3})});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->layouts, 1U);
  EXPECT_THAT(report->warnings,
              ElementsAre(Says(WarningCode::kNotInReference, Naming("1 ", "\"stranger\"")),
                          Says(WarningCode::kReplicasDiffer, Naming("1 "))));
}

TEST_F(StrategyInferenceTest, ShardsThatFitNothing) {
  struct Row {
    const char* name;
    std::vector<TestTensor> ranks;  // of rank 0, 1 and so on
    const char* message;
  };
  const TestTensor full = MakeTensor("w", DType::kFloat32, {4, 4});
  const TestTensor half = MakeTensor("w", DType::kFloat32, {2, 4});
  const TestTensor odd = MakeTensor("w", DType::kFloat32, {3, 4});
  const TestTensor flat = MakeTensor("w", DType::kFloat32, {8});
  const TestTensor quarter = MakeTensor("w", DType::kFloat32, {1, 4});
  const TestTensor other = MakeTensor("w", DType::kInt32, {2, 4});
  const Row rows[] = {
      {"not an equal part",
       {odd, odd},
       "the shape [3, 4] of its shard is not an equal part of the full"},
      {"other dimensions", {flat, flat}, "the shape [8] of its shard is not an equal part"},
      {"too many parts", {quarter, quarter}, "are no equal parts for 2 ranks"},
      {"shapes of ranks",
       {half, quarter},
       "expected the shape [2, 4] of other ranks, found [1, 4]"},
      {"dtypes of ranks", {half, other}, "of other ranks, found"},
      {"a dtype of its own",
       {other, other},
       "expected the dtype Float32 of the reference, found Int32"},
  };
  for (const Row& row : rows) {
    for (size_t rank = 0; rank < row.ranks.size(); ++rank) {
      folder_.WriteRank(static_cast<int64_t>(rank), {row.ranks[rank]});
    }
    const auto report = Infer({full});
    ASSERT_FALSE(report.ok()) << row.name;
    EXPECT_EQ(report.status().code(), StatusCode::kMismatch) << row.name;
    EXPECT_THAT(report.status().message(), HasSubstr(row.message)) << row.name;
  }
  folder_.RemoveRank(0);
  const auto missing = Infer({full});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), Naming("rank 0"));
}

}  // namespace
}  // namespace reshard::strategy_inference_test

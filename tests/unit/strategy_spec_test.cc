// Strategies from specifications: what layouts entries come to, and specifications that are wrong.

#include "reshard/strategy.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "reshard/convert.h"
#include "src/mindspore/spec_layouts.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_spec_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(LayoutOfCutsTest, ReplicasAreTheSlowestAxis) {
  struct Row {
    int64_t devices;
    std::vector<int64_t> cuts;
    int64_t shards;
    ParameterLayout layout;
  };
  const auto sharded = [](ParameterLayout layout, int64_t step, int64_t size) {
    layout.opt_weight_shard_step = step;
    layout.opt_weight_shard_size = size;
    return layout;
  };
  const Row rows[] = {
      {8, {2, 4}, 1, MakeLayout({2, 4}, {{1, 0}})},
      {8, {1, 4}, 1, MakeLayout({2, 4}, {{-1, 0}})},
      {8, {2, 1}, 1, MakeLayout({4, 2}, {{0, -1}})},
      {8, {1, 1}, 1, MakeLayout({8}, {{-1, -1}})},
      {8, {}, 1, MakeLayout({8}, {{}})},
      {1, {1}, 1, MakeLayout({1}, {{-1}})},
      {8, {1, 2}, 4, sharded(MakeLayout({4, 2}, {{-1, 0}}), 2, 4)},
      {8, {1, 2}, 2, sharded(MakeLayout({4, 2}, {{-1, 0}}), 2, 2)},
      {8, {1}, 8, sharded(MakeLayout({8}, {{-1}}), 1, 8)},
      {56, {7, 2, 1}, 1, MakeLayout({4, 7, 2}, {{1, 0, -1}})},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(LayoutOfCuts(row.devices, row.cuts, row.shards), row.layout)
        << row.devices << testing::PrintToString(row.cuts) << row.shards;
  }
}

// Specifications and the checkpoint that they are made for, in a folder.
class StrategySpecTest : public testing::Test {
 protected:
  Result<StrategyReport> Make(const std::string& spec, bool from = true) {
    options_.spec = folder_.folder().Write("spec.json", spec);
    options_.output = (folder_.folder().path() / "made.ckpt").string();
    options_.checkpoint =
        from ? folder_.folder().Write("full.ckpt", EncodeCheckpoint(tensors_)) : "";
    options_.force = true;
    return MakeStrategy(options_);
  }

  // "stage name matrix map step size", of the strategy that was made.
  std::vector<std::string> Made() const {
    const auto strategy = ReadStrategy(options_.output);
    if (!strategy.ok()) return {strategy.status().message()};
    std::vector<std::string> lines;
    for (const Strategy::Stage& stage : strategy->stages()) {
      for (const auto [name, layout] : stage) {
        lines.push_back(std::to_string(stage.number()) + " " + std::string(name) + " " +
                        ToString(layout.device_matrix) + " " + ToString(layout.tensor_map[0]) +
                        " " + std::to_string(layout.opt_weight_shard_step) + " " +
                        std::to_string(layout.opt_weight_shard_size));
      }
    }
    return lines;
  }

  const std::vector<TestTensor> tensors_ = {
      MakeTensor("layer.w", DType::kFloat32, {16, 8}), MakeTensor("layer.b", DType::kFloat32, {8}),
      MakeTensor("adam_m.layer.w", DType::kFloat32, {16, 8}),
      MakeTensor("moments.layer.b", DType::kFloat32, {8}), MakeTensor("step", DType::kInt64, {})};
  const ConversionFolder folder_;
  MakeStrategyOptions options_;
};

TEST_F(StrategySpecTest, TheFirstEntryThatMatchesCountsAndCopiesFollow) {
  const auto report = Make(R"({"devices": 8, "parameters": [
      {"parameter": "*.w", "cuts": [2, 2], "optimizer_shards": 2},
      {"parameter": "layer.w", "cuts": [1, 1]},
      {"parameter": "layer.*"}]})");
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(Made(), ElementsAre("0 layer.w [2, 2, 2] [1, 0] 4 2", "0 layer.b [8] [-1] 0 0",
                                  "0 adam_m.layer.w [2, 2, 2] [1, 0] 4 2",
                                  "0 moments.layer.b [8] [-1] 0 0"));
  EXPECT_EQ(report->layouts, 4U);
  EXPECT_THAT(report->warnings,
              ElementsAre(Says(WarningCode::kUnusedPatterns,
                               HasSubstr(R"(parameters[1]: "layer.w" matches no parameter)"))));
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr(R"(1 of 5 parameters match no entry)")));
}

TEST_F(StrategySpecTest, AnEntryForCopiesAloneStandsBeforeThatOfParameters) {
  ASSERT_TRUE(Make(R"({"devices": 4, "parameters": [
      {"parameter": "adam_*", "cuts": [4, 1]}, {"parameter": "*.w", "cuts": [1, 4]}]})")
                  .ok());
  EXPECT_THAT(Made(), ElementsAre("0 layer.w [4] [-1, 0] 0 0", "0 adam_m.layer.w [4] [0, -1] 0 0"));
}

TEST_F(StrategySpecTest, StagesOfAPipelineAndOneStageAlone) {
  ASSERT_TRUE(Make(R"({"devices": 2, "stages": [[{"parameter": "*.w", "cuts": [2, 1]}],
                                                [{"parameter": "*.b", "cuts": [2]}]]})")
                  .ok());
  EXPECT_THAT(Made(), ElementsAre("0 layer.w [2] [0, -1] 0 0", "0 adam_m.layer.w [2] [0, -1] 0 0",
                                  "1 layer.b [2] [0] 0 0", "1 moments.layer.b [2] [0] 0 0"));
  ASSERT_TRUE(
      Make(R"({"devices": 2, "stage": 3, "parameters": [{"parameter": "*.b", "cuts": [2]}]})")
          .ok());
  EXPECT_THAT(Made(), ElementsAre("0 layer.b [2] [0] 0 0", "0 moments.layer.b [2] [0] 0 0"));
}

TEST_F(StrategySpecTest, WithoutACheckpointTheSpecificationHasTheNames) {
  const auto report =
      Make(R"({"devices": 4, "parameters": [{"parameter": "x", "cuts": [2, 1]}]})", false);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(Made(), ElementsAre("0 x [2, 2] [0, -1] 0 0"));
  const auto pattern =
      Make(R"({"devices": 4, "parameters": [{"parameter": "x*", "cuts": [2]}]})", false);
  ASSERT_FALSE(pattern.ok());
  EXPECT_EQ(pattern.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(pattern.status().message(),
              HasSubstr(R"(parameters[0].parameter: expected a name, as no checkpoint is given, )"
                        R"(found the pattern "x*"; `checkpoint`)"));
  const auto uncut = Make(R"({"devices": 4, "parameters": [{"parameter": "x"}]})", false);
  ASSERT_FALSE(uncut.ok());
  EXPECT_THAT(uncut.status().message(), HasSubstr("parameters[0].cuts: expected the cuts"));
}

// Readers tell a pipeline's strategy by such names.
TEST_F(StrategySpecTest, NamesThatLookLikeThoseOfStagesNeedAPipeline) {
  const auto alone =
      Make(R"({"devices": 2, "parameters": [{"parameter": "0-w", "cuts": [2]}]})", false);
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(alone.status().message(), HasSubstr(R"(found only names such as "0-w")"));
  ASSERT_TRUE(
      Make(R"({"devices": 2, "stages": [[{"parameter": "0-w", "cuts": [2]}]]})", false).ok());
  EXPECT_THAT(Made(), ElementsAre("0 0-w [2] [0] 0 0"));
  ASSERT_TRUE(Make(R"({"devices": 2, "parameters": [
      {"parameter": "0-w", "cuts": [2]}, {"parameter": "w", "cuts": [2]}]})",
                   false)
                  .ok());
  EXPECT_THAT(Made(), ElementsAre("0 0-w [2] [0] 0 0", "0 w [2] [0] 0 0"));
}

TEST_F(StrategySpecTest, ParametersThatCannotBeCutSo) {
  const auto report = Make(R"({"devices": 12, "parameters": [
      {"parameter": "*.w", "cuts": [3, 1]}, {"parameter": "*.b", "cuts": [2, 1]},
      {"parameter": "step", "optimizer_shards": 2}]})");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(report.status().message(), HasSubstr("5 parameters of"));
  EXPECT_THAT(report.status().message(),
              HasSubstr(R"("layer.w": shape [16, 8]: parameters[0]: dimension 0 of 16 elements )"
                        R"(cannot be cut into 3 equal parts)"));
  EXPECT_THAT(report.status().message(), HasSubstr("2 cuts for its 1 dimensions"));
  const auto scalar = Make(R"({"devices": 2, "parameters": [
      {"parameter": "step", "optimizer_shards": 2}]})");
  EXPECT_THAT(scalar.status().message(), HasSubstr("a scalar has no first dimension"));
  const auto none = Make(R"({"devices": 2, "parameters": [{"parameter": "nothing"}]})");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), HasSubstr("expected an entry of stage 0 to match"));
}

// The tutorial's second phase: a full checkpoint, of 64 cards once, for 56.
TEST_F(StrategySpecTest, AFullCheckpointIsCutFor56Cards) {
  const std::vector<TestTensor> full = {MakeTensor("weight", DType::kFloat32, {28, 16}),
                                        MakeTensor("moments.weight", DType::kFloat32, {28, 16}),
                                        MakeTensor("bias", DType::kFloat16, {56})};
  folder_.WriteRank(0, full);
  options_.spec = folder_.folder().Write("spec.json", R"({"devices": 56, "parameters": [
      {"parameter": "weight", "cuts": [7, 2], "optimizer_shards": 2},
      {"parameter": "bias", "cuts": [1], "optimizer_shards": 56}]})");
  options_.checkpoint = folder_.options().source.path + "/" + RankPath(0);
  options_.output = (folder_.folder().path() / "s56.ckpt").string();
  ASSERT_TRUE(MakeStrategy(options_).ok());
  ConvertOptions convert = folder_.options();
  convert.source.strategy = {};
  convert.target.strategy = options_.output;
  const auto converted = Convert(convert);
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  for (int64_t rank = 0; rank < 56; ++rank) {
    const std::vector<TestTensor> shards = folder_.Target(rank);
    ASSERT_EQ(shards.size(), 3U);
    for (const TestTensor& shard : shards) {
      const TestTensor& whole = shard.name == "bias"     ? full[2]
                                : shard.name == "weight" ? full[0]
                                                         : full[1];
      const int64_t rows = shard.name == "bias" ? 1 : 2;
      // Ranks: replica, seventh of the rows, half of the columns; of the four replicas the faster
      // two hold half of the rows each.
      const int64_t row = shard.name == "bias" ? rank : (rank / 2 % 7 * 2 + rank / 14 % 2) * rows;
      const int64_t columns = shard.name == "bias" ? 1 : 8;
      const int64_t column = shard.name == "bias" ? 0 : rank % 2 * 8;
      const int64_t width = shard.name == "bias" ? 1 : 16;
      const auto item = static_cast<int64_t>(ItemBytes(shard.dtype));
      std::string expected;
      for (int64_t r = row; r < row + rows; ++r) {
        expected += whole.content.substr(static_cast<size_t>((r * width + column) * item),
                                         static_cast<size_t>(columns * item));
      }
      EXPECT_EQ(shard.content, expected) << shard.name << " of rank " << rank;
    }
  }
}

TEST(StrategySpecMalformedTest, EachErrorSaysWhere) {
  struct Row {
    const char* spec;
    const char* message;
  };
  const Row rows[] = {
      {"", "s: expected JSON, found its end at byte 0"},
      {R"({"devices": 8,)", "expected JSON, found its end at byte 14"},
      {"{]", "expected JSON, found an error at byte 2, near "},
      {"[[[[", "s: expected an object, found a list"},
      {"{}", R"(s: expected the key "devices", found an object without it)"},
      {R"({"devices": 8})", R"(expected either "parameters" or "stages", found neither)"},
      {R"({"devices": 8, "parameters": [], "stages": []})", "found both"},
      {R"({"devices": 0, "parameters": []})", "devices: expected an integer from 1 to 1048576"},
      {R"({"devices": 8.0, "parameters": []})", "devices: expected an integer"},
      {R"({"devices": "8", "parameters": []})", "devices: expected an integer"},
      {R"({"devices": 18446744073709551615, "parameters": []})", "found 18446744073709551615"},
      {R"({"devices": 8, "parameters": []})",
       "parameters: expected a list of entries, one at least, found a list of 0"},
      {R"({"devices": 8, "stages": [[]]})", "stages[0]: expected a list of entries"},
      {R"({"devices": 8, "stage": 0, "stages": [[]]})", "stage: expected no such key beside"},
      {R"({"devices": 8, "stage": -1, "parameters": [{"parameter": "w"}]})",
       "stage: expected an integer from 0 to 131071, found -1"},
      {R"({"devices": 8, "parameters": [], "extra": 1})",
       R"(s: expected only the keys devices, stage, parameters, stages, found "extra")"},
      {R"({"devices": 8, "devices": 4, "parameters": []})",
       R"(s: the key "devices" occurs twice in one object)"},
      {R"({"devices": 8, "parameters": [{"cuts": [2]}]})",
       R"(parameters[0]: expected the key "parameter")"},
      {R"({"devices": 8, "parameters": ["w"]})", R"(parameters[0]: expected an object, found "w")"},
      {R"({"devices": 8, "parameters": [{"parameter": ""}]})",
       "parameters[0].parameter: expected the name of a parameter, or a pattern"},
      {R"({"devices": 8, "parameters": [{"parameter": 7}]})", "found 7"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cut": [2]}]})",
       R"(parameters[0]: expected only the keys parameter, cuts, optimizer_shards, )"
       R"(found "cut")"},
      {R"({"devices": 8, "parameters": [{"parameter": "w"}, {"parameter": "w"}]})",
       R"(parameters[1].parameter: expected each name or pattern once in a stage, found "w" again)"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": 2}]})",
       "parameters[0].cuts: expected a list of at most 64 integers, one for each dimension, found "
       "2"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": [2, 0]}]})",
       "parameters[0].cuts[1]: expected an integer from 1 to 8, found 0"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": [[2]]}]})",
       "parameters[0].cuts[0]: expected an integer from 1 to 8, found a list"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": [3]}]})",
       "parameters[0].cuts: expected cuts with a product that divides the 8 devices, found [3]"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": [4, 4]}]})", "found [4, 4]"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": [4], "optimizer_shards": 4}]})",
       "parameters[0].optimizer_shards: expected a divisor of the 2 replicas (8 devices, 4 parts), "
       "found 4"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "cuts": [], "optimizer_shards": 2}]})",
       "expected 1 for a scalar"},
      {R"({"devices": 8, "parameters": [{"parameter": "w", "optimizer_shards": 16}]})",
       "parameters[0].optimizer_shards: expected an integer from 1 to 8, found 16"},
      {R"({"parameters": [{"parameter": "w", "cuts": [3]}], "devices": 8})",
       "parameters[0].cuts: expected cuts with a product that divides the 8 devices, found [3]"},
      {R"({"devices": 8, "stages": [{"parameter": "w"}]})",
       "stages[0]: expected a list of entries, one at least, found an object"},
      {R"({"devices": 8, "stages": []})",
       "stages: expected a list of 1 to 131072 lists of entries, found a list of 0"},
      {R"({"stage": 131072, "devices": 8, "parameters": [{"parameter": "w"}]})",
       "stage: expected an integer from 0 to 131071, found 131072"},
  };
  for (const Row& row : rows) {
    const auto spec = ParseStrategySpec("s", row.spec);
    ASSERT_FALSE(spec.ok()) << row.spec;
    EXPECT_EQ(spec.status().code(), StatusCode::kInvalidArgument) << row.spec;
    EXPECT_THAT(spec.status().message(), HasSubstr(row.message)) << row.spec;
  }
  EXPECT_FALSE(ParseStrategySpec("s", std::string("{}\0{}", 5)).ok());
  EXPECT_FALSE(ParseStrategySpec("s", std::string(1'000'000, '[')).ok());
}

TEST(StrategySpecMalformedTest, EveryByteMayBeWrong) {
  const std::string good =
      R"({"devices": 4, "stages": [[{"parameter": "w*", "cuts": [2, 1], "optimizer_shards": 2}]]})";
  ASSERT_TRUE(ParseStrategySpec("s", good).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseStrategySpec("s", good.substr(0, i)).ok()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      static_cast<void>(ParseStrategySpec("s", bytes));
    }
  }
}

}  // namespace
}  // namespace reshard::strategy_spec_test

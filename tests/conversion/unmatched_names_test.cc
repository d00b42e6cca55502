// Strategies whose names are not those of the files are refused, honest ones are not.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::unmatched_names_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ParameterLayout kRowsOf2Ranks = MakeLayout({2}, {{0, -1}});
const ParameterLayout kRowsOf4Ranks = MakeLayout({4}, {{0, -1}});
using Names = std::vector<std::string>;

std::vector<NamedLayout> LayoutsOf(const Names& names, const ParameterLayout& layout) {
  std::vector<NamedLayout> layouts;
  for (const std::string& name : names) layouts.push_back({name, layout});
  return layouts;
}

// Two ranks that hold one half each of every tensor, converted by strategies with these names;
// without any, there is no strategy on that side.
class NamedFolder : public ConversionFolder {
 public:
  NamedFolder(const Names& in_files, const Names& in_source, const Names& in_target)
      : ConversionFolder(LayoutsOf(in_source, kRowsOf2Ranks), LayoutsOf(in_target, kRowsOf4Ranks)) {
    std::vector<TestTensor> tensors;
    for (const std::string& name : in_files) {
      tensors.push_back(MakeTensor(name, DType::kFloat32, {8, 3}, tensors.size()));
    }
    tensors.push_back(MakeTensor("step", DType::kInt64, {}, 7));
    WriteStage(tensors, LayoutsOf(in_files, kRowsOf2Ranks), 2);
  }
};

Status ConvertStatus(const ConversionFolder& folder) {
  const Status planned = Plan(folder.options()).status();
  const auto report = Convert(folder.options());
  EXPECT_EQ(report.status().message(), planned.message());
  if (!report.ok()) {
    EXPECT_THAT(ReadFolder(folder.options().target.folder), IsEmpty());
  }
  return report.status();
}

const Names kLayers = {"layers.0.w", "layers.1.w", "adam_m.layers.0.w", "adam_m.layers.1.w"};
const Names kModelLayers = {"model.layers.0.w", "model.layers.1.w", "adam_m.model.layers.0.w",
                            "adam_m.model.layers.1.w"};

struct SubstitutionRow {
  Names in_files;
  Names in_strategy;
  std::string words;
};

class SubstitutionTest : public testing::TestWithParam<SubstitutionRow> {};

TEST_P(SubstitutionTest, OfTheSourceStrategyIsNamed) {
  const auto& [in_files, in_strategy, words] = GetParam();
  NamedFolder folder(in_files, in_strategy, {});
  const Status status = ConvertStatus(folder);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("src.ckpt: has no layout for"), HasSubstr(words),
                                      HasSubstr("; `unmatched=copy` converts anyway")));
  folder.options().selection.unmatched = Selection::Unmatched::kCopy;
  EXPECT_TRUE(ConvertStatus(folder).ok());
}

TEST_P(SubstitutionTest, OfTheTargetStrategyIsNamed) {
  const auto& [in_files, in_strategy, words] = GetParam();
  const NamedFolder folder(in_files, in_files, in_strategy);
  const Status status = ConvertStatus(folder);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("dst.ckpt: has no layout for"), HasSubstr(words)));
}

INSTANTIATE_TEST_SUITE_P(
    Changes, SubstitutionTest,
    testing::Values(
        SubstitutionRow{kLayers, kModelLayers,
                        "4 of the files' tensors, states of the others not counted, but 4 of their "
                        "names are names of the strategy with one change: the files lack "
                        "\"model.\", as in \"layers.0.w\" and \"model.layers.0.w\";"},
        SubstitutionRow{kModelLayers, kLayers,
                        "the strategy lacks \"model.\", as in \"model.layers.0.w\" and "
                        "\"layers.0.w\";"},
        SubstitutionRow{{"net.a.w", "net.b.w", "accu_grads.net.b.w"},
                        {"model.core.a.w", "model.core.b.w", "accu_grads.model.core.b.w"},
                        "\"net\" in the files is \"model.core\" in the strategy"},
        // Half of the names, and an optimizer's prefix before them.
        SubstitutionRow{{"adam_v.a.w", "b.w", "c", "d"},
                        {"adam_v.model.a.w", "model.b.w", "x"},
                        "4 of the files' tensors, states of the others not counted, but 2 of their "
                        "names are names of the strategy with one change: the files lack "
                        "\"model.\", as in \"b.w\""},
        SubstitutionRow{{"lone", "w"}, {"model.lone", "w"}, "1 of the files' tensors"},
        SubstitutionRow{{"w", "model.tok_embeddings.weight"},
                        {"w", "model.embed_tokens.weight"},
                        "\"tok_embeddings\" in the files is \"embed_tokens\" in the strategy"},
        // In the middle of names.
        SubstitutionRow{{"w", "layers.0.attention.wq", "layers.1.attention.wq"},
                        {"w", "layers.0.attn.wq", "layers.1.attn.wq"},
                        "\"attention\" in the files is \"attn\" in the strategy, as in "
                        "\"layers.0.attention.wq\" and \"layers.0.attn.wq\""},
        SubstitutionRow{{"w", "layers.0.block.wq", "layers.1.block.wq"},
                        {"w", "layers.0.wq", "layers.1.wq"},
                        "the strategy lacks \"block.\""},
        // A word within components, with different ones around it.
        SubstitutionRow{{"w", "l.0.attention_norm", "l.1.attention.wq", "l.2.old_attention"},
                        {"w", "l.0.attn_norm", "l.1.attn.wq", "l.2.old_attn"},
                        "\"attention\" in the files is \"attn\" in the strategy"},
        // Several components with the number of a layer between them, which stays.
        SubstitutionRow{{"w", "h.0.mlp.w", "h.1.mlp.w"},
                        {"w", "layers.0.ffn.w", "layers.1.ffn.w"},
                        "\"h.#.mlp\" in the files is \"layers.#.ffn\" in the strategy"},
        // Of two forms that the change fits, one has a name with the same numbers.
        SubstitutionRow{{"w", "enc.0.attn.b", "enc.0.attn.w"},
                        {"w", "enc.0.attention.b", "enc.1.attention.w"},
                        "\"attn\" in the files is \"attention\" in the strategy, as in "
                        "\"enc.0.attn.b\" and \"enc.0.attention.b\""},
        SubstitutionRow{{"z", "conv1.w", "conv2.w"},
                        {"z", "linear1.w", "linear2.w"},
                        "\"conv#\" in the files is \"linear#\" in the strategy"}));

TEST(UnmatchedNamesTest, WhatIsLeftOutIsNotUnmatched) {
  NamedFolder folder({"layers.0.w", "w"}, {"model.layers.0.w", "w"}, {});
  folder.options().selection.exclude = {"layers.*"};
  EXPECT_TRUE(ConvertStatus(folder).ok());
}

TEST(UnmatchedNamesTest, AFewThatAnotherNameWouldFitAreNone) {
  for (const auto& [in_files, in_strategy] : std::vector<std::pair<Names, Names>>{
           {{"w", "head.bias"}, {"w", "norm.bias"}},
           {{"w", "layers.4.a", "layers.4.b"}, {"w", "layers.5.a", "layers.5.b"}},
           {{"w", "adam_m.w"}, {"w", "adam_v.w"}},
           {{"w", "model.head.bias"}, {"w", "model.head.gamma"}},
           {{"w", "inner_b", "outer_b"}, {"w", "b"}},
           {{"w", "conv1.a", "conv1.b"}, {"w", "conv2.a", "conv2.b"}},
           {{"w", "layer1.a", "layer1.b"}, {"w", "stage2.a", "stage2.b"}},
           {{"w", "layer7.w"}, {"w", "adam_m.layer7.w"}},
           {{"w", "e.a", "e.b"}, {"w", "e.0.a", "e.0.b"}},
           {{"w", "ema.w", "old.opt.w"}, {"w", "ema.x.w", "old.opt.x.w"}},
           {{"w", "a", "b", "c"}, {"w", "model.a"}}}) {
    const NamedFolder folder(in_files, in_strategy, {});
    EXPECT_EQ(ConvertStatus(folder).message(), "") << in_files[1];
  }
}

TEST(UnmatchedNamesTest, OfOneDeviceNothingIsCut) {
  ConversionFolder folder({{"model.w", MakeLayout({1}, {{-1, -1}})}}, {});
  folder.WriteRank(0, {MakeTensor("w", DType::kFloat32, {8, 3})});
  EXPECT_TRUE(ConvertStatus(folder).ok());
}

// Names "u0" to "u8", and so on.
Names Numbered(size_t count) {
  Names names;
  for (size_t i = 0; i < count; ++i) names.push_back("u" + std::to_string(i));
  return names;
}

Names WithW(Names names) {
  names.insert(names.begin(), "w");
  return names;
}

// Nine of them may be honest, as in MindSpore's conversions of few parameters.
TEST(UnmatchedNamesTest, TenMatricesThatDifferBetweenRanksAreRefused) {
  EXPECT_TRUE(ConvertStatus(NamedFolder(WithW(Numbered(9)), {"w"}, {})).ok());
  NamedFolder folder(WithW(Numbered(10)), {"w"}, {});
  const Status status = ConvertStatus(folder);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(),
              Naming("src.ckpt: ", "10 ", "\"u0\"", "`unmatched=copy`", "`exclude`"));
  folder.options().selection.exclude = {"u0"};
  EXPECT_TRUE(ConvertStatus(folder).ok());
  folder.options().selection.exclude.clear();
  folder.options().selection.unmatched = Selection::Unmatched::kCopy;
  folder.options().target.folder += "2";
  EXPECT_TRUE(ConvertStatus(folder).ok());

  const Status target = ConvertStatus(NamedFolder(WithW(Numbered(10)), WithW(Numbered(10)), {"w"}));
  EXPECT_EQ(target.code(), StatusCode::kMismatch);
  EXPECT_THAT(target.message(), Naming("dst.ckpt: ", "10 ", "written as it stands"));
}

TEST(UnmatchedNamesTest, TheTenMayBeFewOfMany) {
  ConversionFolder folder({{"w", kRowsOf2Ranks}}, {});
  for (const int64_t rank : {0, 1}) {
    std::vector<TestTensor> tensors = {
        NaiveShard(MakeTensor("w", DType::kFloat32, {8, 3}), kRowsOf2Ranks, rank)};
    for (size_t i = 0; i < 100; ++i) {
      const uint64_t salt = i % 10 == 0 ? static_cast<uint64_t>(rank) : 0;
      tensors.push_back(MakeTensor("u" + std::to_string(i), DType::kFloat32, {8, 3}, salt));
    }
    folder.WriteRank(rank, tensors);
  }
  EXPECT_THAT(ConvertStatus(folder).message(), Naming("src.ckpt: ", "100 ", "10 differ"));
}

// Ranks that hold the same have no shards of them, however many they are.
TEST(UnmatchedNamesTest, CountAndBytesAloneWarn) {
  ConversionFolder folder({{"w", kRowsOf2Ranks}}, {});
  std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat32, {8, 3})};
  for (const std::string& name : Numbered(40)) {
    tensors.push_back(MakeTensor(name, DType::kFloat32, {8, 3}));
  }
  folder.WriteStage(tensors, {{"w", kRowsOf2Ranks}}, 2);
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, Contains(Says(WarningCode::kWithoutLayout, HasSubstr("40 "))));
}

TEST(UnmatchedNamesTest, AStrategyWithoutANameOfTheFilesWarns) {
  const NamedFolder folder({"a", "b"}, {"x", "y"}, {});
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, Contains(Says(WarningCode::kWithoutLayout)));
}

// What each rank has of its own, such as accumulated gradients and vectors, tells nothing.
TEST(UnmatchedNamesTest, GradientsCopiesAndVectorsAreNoEvidence) {
  Names in_files = {"w"};
  for (const std::string& name : Numbered(12)) {
    in_files.push_back("accu_grads." + name);
    in_files.push_back("w" + name);
    in_files.push_back("my_state.w" + name);
  }
  Names in_strategy = {"w"};
  for (const std::string& name : Numbered(12)) in_strategy.push_back("w" + name);
  EXPECT_EQ(ConvertStatus(NamedFolder(in_files, in_strategy, {})).message(), "");

  ConversionFolder folder({{"w", kRowsOf2Ranks}}, {});
  for (int64_t rank = 0; rank < 2; ++rank) {
    std::vector<TestTensor> tensors = {
        MakeTensor("w", DType::kFloat32, {4, 3}, static_cast<uint64_t>(rank))};
    for (const std::string& name : Numbered(12)) {
      tensors.push_back(
          MakeTensor(name + ".moving_mean", DType::kFloat32, {64}, static_cast<uint64_t>(rank)));
    }
    folder.WriteRank(rank, tensors);
  }
  EXPECT_EQ(ConvertStatus(folder).message(), "");
}

// Trained on some cards, to infer on others: the target strategy has no optimizer states.
TEST(UnmatchedNamesTest, AnInferenceTargetGetsTheStatesWithOneWarning) {
  Names in_files;
  Names weights;
  for (int layer = 0; layer < 4; ++layer) {
    for (const std::string name : {"attention.wq", "ffn.w1", "ffn.w2"}) {
      weights.push_back("layers." + std::to_string(layer) + "." + name);
    }
  }
  for (const std::string prefix : {"", "adam_m.", "adam_v.", "my_state."}) {
    for (const std::string& name : weights) in_files.push_back(prefix + name);
  }
  for (const bool any_source : {true, false}) {
    SCOPED_TRACE(any_source);
    NamedFolder folder(in_files, any_source ? in_files : Names(), weights);
    if (!any_source) {
      folder.RemoveRank(1);
      folder.options().checks.replicas = CheckChoice::Replicas::kNone;
    }
    const auto report = Convert(folder.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->warnings,
                ElementsAre(Says(WarningCode::kWithoutLayout,
                                 AllOf(HasSubstr("dst.ckpt: has no layout for 36 "),
                                       HasSubstr("`exclude='adam_m.*'` and `exclude='adam_v.*'` "
                                                 "and `exclude='my_state.*'`"))),
                            Says(WarningCode::kRepeatedWeights, HasSubstr("\"my_state.\""))));
    const auto made = ReadFolder(folder.options().target.folder);
    folder.options().target.folder += "2";
    folder.options().selection.unmatched = Selection::Unmatched::kCopy;
    ASSERT_TRUE(Convert(folder.options()).ok());
    for (int64_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(made.at(RankPath(rank)),
                ReadFolder(folder.options().target.folder).at(RankPath(rank)));
    }
    folder.options().target.folder += "3";
    folder.options().selection.unmatched.reset();
    folder.options().selection.exclude = {"adam_m.*", "adam_v.*", "my_state.*"};
    const auto without = Convert(folder.options());
    ASSERT_TRUE(without.ok());
    EXPECT_THAT(without->warnings, IsEmpty());
  }
}

// Whoever reads a checkpoint by a strategy.
TEST(UnmatchedNamesTest, AreRefusedWhereNothingIsConverted) {
  NamedFolder folder(kLayers, kModelLayers, {});
  const ConvertOptions& options = folder.options();
  ConversionSpec against;
  against.target.folder = folder.folder().path();
  against.source.path = options.source.path;
  against.source.strategy = options.source.strategy;
  ContentOptions digest;
  digest.source.path = options.source.path;
  digest.source.strategy = options.source.strategy;
  DiffOptions diff;
  diff.source = {options.source.path, options.source.strategy};
  diff.b = diff.source;
  for (const Status& status :
       {VerifyAgainst(against).status(), DigestCheckpoint(digest).status(), Diff(diff).status(),
        ShardedCheckpoint::Open(options.source.path, options.source.strategy).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), Naming("\"model.\"", "\"layers.0.w\""));
  }
  folder.options().selection.unmatched = Selection::Unmatched::kCopy;
  ASSERT_TRUE(Convert(options).ok());
  against.target.folder = options.target.folder;
  against.selection.unmatched = Selection::Unmatched::kCopy;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_TRUE(proved->equal());
}

}  // namespace
}  // namespace reshard::unmatched_names_test

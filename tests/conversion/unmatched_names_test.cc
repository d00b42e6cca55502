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
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {
namespace {

using testing::AllOf;
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

struct PrefixRow {
  Names in_files;
  Names in_strategy;
  std::string words;
};

class PrefixTest : public testing::TestWithParam<PrefixRow> {};

TEST_P(PrefixTest, OfTheSourceStrategyIsNamed) {
  const auto& [in_files, in_strategy, words] = GetParam();
  NamedFolder folder(in_files, in_strategy, {});
  const Status status = ConvertStatus(folder);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("src.ckpt: has no layout for"), HasSubstr(words),
                                      HasSubstr("; `unmatched=copy` converts anyway")));
  folder.options().selection.unmatched = UnmatchedPolicy::kCopy;
  EXPECT_TRUE(ConvertStatus(folder).ok());
}

TEST_P(PrefixTest, OfTheTargetStrategyIsNamed) {
  const auto& [in_files, in_strategy, words] = GetParam();
  const NamedFolder folder(in_files, in_files, in_strategy);
  const Status status = ConvertStatus(folder);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("dst.ckpt: has no layout for"), HasSubstr(words)));
}

INSTANTIATE_TEST_SUITE_P(
    Changes, PrefixTest,
    testing::Values(
        PrefixRow{kLayers, kModelLayers,
                  "4 of the files' tensors, but 4 of their names differ from names of the strategy "
                  "by a prefix only: the strategy's have \"model.\" before them, as in "
                  "\"layers.0.w\" and \"model.layers.0.w\";"},
        PrefixRow{kModelLayers, kLayers,
                  "the files' have \"model.\" before them, as in \"model.layers.0.w\" and "
                  "\"layers.0.w\";"},
        PrefixRow{{"net.a.w", "net.b.w", "accu_grads.net.b.w"},
                  {"model.core.a.w", "model.core.b.w", "accu_grads.model.core.b.w"},
                  "\"net.\" in the files, \"model.core.\" in the strategy"},
        // An optimizer whose prefix is not known, and half of the names.
        PrefixRow{{"exp_avg.a.w", "b.w", "c", "d"},
                  {"exp_avg.model.a.w", "model.b.w", "x"},
                  "4 of the files' tensors, but 2 of their names differ from names of the strategy "
                  "by a prefix only: the strategy's have \"model.\" before them, as in \"b.w\""},
        PrefixRow{{"lone", "w"}, {"model.lone", "w"}, "1 of the files' tensors, but 1 of"}));

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
           {{"w", "inner_b", "outer_b"}, {"w", "b"}},
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

// Nine of them may be honest, as in MindSpore's conversions of few parameters.
TEST(UnmatchedNamesTest, ManyThatHoldOverHalfOfTheBytesAreRefused) {
  Names unmatched;
  Names in_files = {"w"};
  while (unmatched.size() < 9) {
    unmatched.push_back("u" + std::to_string(unmatched.size()));
    in_files.push_back(unmatched.back());
  }
  EXPECT_TRUE(ConvertStatus(NamedFolder(in_files, {"w"}, {})).ok());
  unmatched.emplace_back("u9");
  in_files.emplace_back("u9");
  NamedFolder folder(in_files, {"w"}, {});
  const Status status = ConvertStatus(folder);
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("src.ckpt: ", "10 ", "480 B", "584 B", "\"u0\"",
                                       "`unmatched=copy`", "`exclude`"));
  folder.options().selection.exclude = {"u0"};
  EXPECT_TRUE(ConvertStatus(folder).ok());
  folder.options().selection.exclude.clear();
  folder.options().selection.unmatched = UnmatchedPolicy::kCopy;
  folder.options().target.folder += "2";
  EXPECT_TRUE(ConvertStatus(folder).ok());

  // As many as there are matched ones of the full size hold less.
  Names half = unmatched;
  half.insert(half.end(), {"w", "w1", "w2", "w3", "w4"});
  EXPECT_TRUE(ConvertStatus(NamedFolder(half, {"w", "w1", "w2", "w3", "w4"}, {})).ok());
}

TEST(UnmatchedNamesTest, AStrategyWithoutANameOfTheFilesIsRefused) {
  const Status status = ConvertStatus(NamedFolder({"a", "b"}, {"x", "y"}, {}));
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming("2 ", "96 B", "104 B"));
}

// Whoever reads a checkpoint by a strategy.
TEST(UnmatchedNamesTest, AreRefusedWhereNothingIsConverted) {
  NamedFolder folder(kLayers, kModelLayers, {});
  const ConvertOptions& options = folder.options();
  AgainstOptions against;
  against.target.folder = folder.folder().path();
  against.source.path = options.source.path;
  against.source.strategy = options.source.strategy;
  DigestOptions digest;
  digest.source.path = options.source.path;
  digest.source.strategy = options.source.strategy;
  DiffOptions diff;
  diff.a = {options.source.path, options.source.strategy};
  diff.b = diff.a;
  for (const Status& status :
       {VerifyAgainst(against).status(), DigestCheckpoint(digest).status(), Diff(diff).status(),
        ShardedCheckpoint::Open(options.source.path, options.source.strategy).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), Naming("\"model.\""));
  }
  folder.options().selection.unmatched = UnmatchedPolicy::kCopy;
  ASSERT_TRUE(Convert(options).ok());
  against.target.folder = options.target.folder;
  against.selection.unmatched = UnmatchedPolicy::kCopy;
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_TRUE(proved->equal());
}

}  // namespace
}  // namespace reshard

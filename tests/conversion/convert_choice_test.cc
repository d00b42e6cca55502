// Conversions of chosen parameters under new names: what is written, and what is said about it.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/convert.h"
#include "reshard/verify.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::convert_choice_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

const ParameterLayout kRowsOf2 = MakeLayout({2}, {{0, -1}});
const ParameterLayout kTwice = MakeLayout({2}, {{-1, -1}});
const std::vector<NamedLayout> kLayouts = {{"w", kRowsOf2}, {"adam_m.w", kRowsOf2}};
const TestTensor kWeight = MakeTensor("w", DType::kFloat32, {8, 3});
const TestTensor kMoment = MakeTensor("adam_m.w", DType::kFloat32, {8, 3});
const TestTensor kStep = MakeTensor("step", DType::kInt64, {});

// Two ranks of a weight, its moment and a step, to be joined to full tensors.
class SampleFolder : public ConversionFolder {
 public:
  SampleFolder() : ConversionFolder(kLayouts, {}) {
    WriteStage({kMoment, kWeight, kStep}, kLayouts, 2);
  }
};

TestTensor Named(TestTensor tensor, std::string name) {
  tensor.name = std::move(name);
  return tensor;
}

ConvertReport RunConvert(const ConvertOptions& options) {
  auto report = Convert(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : ConvertReport();
}

// Expects that the conversion is refused before anything is at the target.
std::string Refused(const ConversionFolder& folder, StatusCode code) {
  const auto report = Convert(folder.options());
  EXPECT_EQ(report.status().code(), code);
  EXPECT_THAT(ReadFolder(folder.options().target.folder), IsEmpty());
  return report.status().message();
}

ConversionSpec ProofOf(const ConvertOptions& options) {
  ConversionSpec against;
  against.target.folder = options.target.folder;
  against.source.path = options.source.path;
  against.source.strategy = options.source.strategy;
  against.target.strategy = options.target.strategy;
  against.selection.include = options.selection.include;
  against.selection.exclude = options.selection.exclude;
  against.selection.renames = options.selection.renames;
  return against;
}

TEST(ConvertChoiceTest, TakesWhatIsIncludedAndNotExcluded) {
  struct Row {
    std::vector<std::string> include;
    std::vector<std::string> exclude;
    std::vector<TestTensor> expected;
  };
  const Row rows[] = {
      {{}, {"adam_*"}, {kWeight, kStep}},
      {{}, {"adam_*", "step"}, {kWeight}},
      {{"*w"}, {}, {kMoment, kWeight}},
      {{"*w", "step"}, {"adam_*"}, {kWeight, kStep}},
      {{"st?p"}, {}, {kStep}},
  };
  for (const Row& row : rows) {
    SampleFolder folder;
    folder.options().selection.include = row.include;
    folder.options().selection.exclude = row.exclude;
    const ConvertReport report = RunConvert(folder.options());
    EXPECT_EQ(folder.Target(0), row.expected);
    EXPECT_EQ(report.parameters, row.expected.size());
    EXPECT_EQ(report.left_out, 3 - row.expected.size());
    EXPECT_EQ(report.renamed, 0U);
    EXPECT_THAT(report.warnings, IsEmpty());
  }
}

// What training has beside the weights, and weights that look alike.
TEST(ConvertChoiceTest, WeightsOnlyLeavesOutStatesOfTraining) {
  const std::vector<TestTensor> states = {
      kMoment,
      MakeTensor("linear.w", DType::kFloat32, {8, 3}),  // of w, by FTRL
      MakeTensor("accu_grads.w", DType::kFloat32, {8, 3}),
      MakeTensor("learning_rate", DType::kFloat32, {}),
      MakeTensor("loss_scale", DType::kFloat32, {1}),
      MakeTensor("scale_sense", DType::kFloat32, {}),
      MakeTensor("beta1_power", DType::kFloat32, {}),
      MakeTensor("momentum", DType::kFloat32, {}),
      MakeTensor("epoch_num", DType::kInt32, {}),
      MakeTensor("optim.state.w.exp_avg", DType::kFloat32, {8, 3}),
      MakeTensor("optim.state.w.step", DType::kFloat32, {}),
      kStep,
  };
  const std::vector<TestTensor> weights = {
      kWeight,
      MakeTensor("linear.weight", DType::kFloat32, {4}),  // of a module
      MakeTensor("logit_scale", DType::kFloat32, {}),
      MakeTensor("prompt_tokens", DType::kFloat32, {2, 2}),
      MakeTensor("position_ids", DType::kInt64, {6}),
      MakeTensor("layers.0.zero_point", DType::kInt8, {1}),
      MakeTensor("pool.power", DType::kFloat32, {1}),
  };
  const std::vector<NamedLayout> layouts = {
      {"w", kRowsOf2}, {"adam_m.w", kRowsOf2}, {"linear.w", kRowsOf2}, {"accu_grads.w", kRowsOf2}};
  for (const bool cut : {true, false}) {
    ConversionFolder folder(cut ? layouts : std::vector<NamedLayout>(),
                            cut ? std::vector<NamedLayout>() : layouts);
    std::vector<TestTensor> all = states;
    all.insert(all.end(), weights.begin(), weights.end());
    folder.WriteStage(all, layouts, cut ? 2 : 1);
    if (!cut) folder.WriteRank(0, all);
    folder.options().selection.weights_only = true;
    const ConvertReport report = RunConvert(folder.options());
    if (cut) {
      EXPECT_THAT(folder.Target(0), testing::UnorderedElementsAreArray(weights));
    }
    EXPECT_EQ(report.parameters, weights.size());
    EXPECT_EQ(report.left_out, states.size());
    ASSERT_TRUE(report.chosen_totals);
    EXPECT_EQ(report.chosen_totals->optimizer, 0U);
    EXPECT_EQ(report.chosen_totals->weights, report.totals->weights);
    EXPECT_GT(report.totals->optimizer, 0U);
    ConversionSpec proof = ProofOf(folder.options());
    const auto of_run = VerifyAgainst(proof);
    ASSERT_TRUE(of_run.ok()) << of_run.status().message();
    EXPECT_TRUE(of_run->equal());
  }
}

TEST(ConvertChoiceTest, WeightsOnlyOfStatesAlone) {
  ConversionFolder folder({{"adam_m.w", kRowsOf2}}, {});
  folder.WriteStage({kMoment, kStep}, {{"adam_m.w", kRowsOf2}}, 2);
  folder.options().selection.weights_only = true;
  EXPECT_THAT(Refused(folder, StatusCode::kInvalidArgument), HasSubstr("`weights_only`"));
}

TEST(ConvertChoiceTest, OptimizerStatesForTransformersAreNoted) {
  SampleFolder folder;
  folder.options().target.format = TargetFormat::kHuggingFace;
  const auto noted =
      Contains(AllOf(HasSubstr("1 of 3"), HasSubstr("\"adam_m.w\""), HasSubstr("`weights_only`")));
  EXPECT_THAT(RunConvert(folder.options()).notes, noted);
  folder.options().force = true;
  folder.options().selection.weights_only = true;
  EXPECT_THAT(RunConvert(folder.options()).notes, testing::Not(noted));
}

TEST(ConvertChoiceTest, LargestShapesAreThoseOfParametersBeforeCopies) {
  const TestTensor large = MakeTensor("adam_m.w", DType::kFloat64, {8, 3});
  const TestTensor same = MakeTensor("v", DType::kInt16, {8, 3});
  const TestTensor other = MakeTensor("adam_m.u", DType::kFloat32, {4, 2});
  const std::vector<NamedLayout> layouts = {
      {"adam_m.w", kRowsOf2}, {"v", kRowsOf2}, {"w", kRowsOf2}, {"adam_m.u", kRowsOf2}};
  ConversionFolder folder(layouts, {});
  folder.WriteStage({large, same, kWeight, other, kStep}, layouts, 2);
  const ConvertReport report = RunConvert(folder.options());
  EXPECT_EQ(report.largest.front().name, "adam_m.w");
  ASSERT_EQ(report.largest_shapes.size(), 2U);
  EXPECT_EQ(report.largest_shapes[0].name, "w");
  EXPECT_EQ(report.largest_shapes[1].name, "step");

  folder.options().selection.include = {"adam_m.*", "step"};  // one element tells nothing
  folder.options().force = true;
  const ConvertReport copies = RunConvert(folder.options());
  ASSERT_EQ(copies.largest_shapes.size(), 3U);
  EXPECT_EQ(copies.largest_shapes[0].name, "adam_m.w");
  EXPECT_EQ(copies.largest_shapes[1].name, "adam_m.u");
}

TEST(ConvertChoiceTest, RenamesChangeNothingButNames) {
  SampleFolder folder;
  ConvertOptions& options = folder.options();
  options.selection.exclude = {"step"};
  options.selection.renames.names = {{"w", "adam_m.w"}, {"adam_m.w", "w"}, {"step", "global_step"}};
  const ConvertReport report = RunConvert(options);
  EXPECT_THAT(folder.Target(0), ElementsAre(Named(kMoment, "w"), Named(kWeight, "adam_m.w")));
  EXPECT_EQ(report.renamed, 2U);
  EXPECT_EQ(report.left_out, 1U);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(report.largest.front().name, "adam_m.w");
  ASSERT_EQ(report.largest_shapes.size(), 1U);
  EXPECT_EQ(report.largest_shapes[0].name, "adam_m.w");  // which is no copy

  const auto damage = Verify(options.target.folder);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_THAT(damage->damages, IsEmpty());
  const auto proof = VerifyAgainst(ProofOf(options));
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_TRUE(proof->equal());
  EXPECT_EQ(proof->renamed, 2U);
  EXPECT_EQ(proof->left_out, 1U);
  // Renames that are left out are those of the run; others, of which none applies, are not.
  ConversionSpec other = ProofOf(options);
  other.selection.renames = {};
  const auto of_run = VerifyAgainst(other);
  ASSERT_TRUE(of_run.ok()) << of_run.status().message();
  EXPECT_TRUE(of_run->equal());
  EXPECT_THAT(of_run->from_origin, ElementsAre("renames"));
  other.selection.renames.names = {{"step", "global_step"}};
  const auto refuted = VerifyAgainst(other);
  ASSERT_TRUE(refuted.ok()) << refuted.status().message();
  EXPECT_FALSE(refuted->equal());
}

TEST(ConvertChoiceTest, PatternsRenameWhatTheyFit) {
  SampleFolder folder;
  ConvertOptions& options = folder.options();
  options.selection.exclude = {"step"};
  options.selection.renames = {{{"w", "weight"}}, {{"adam_m.*", "m.*"}, {"none.*", "n.*"}}};
  const ConvertReport report = RunConvert(options);
  EXPECT_THAT(folder.Target(0), ElementsAre(Named(kMoment, "m.w"), Named(kWeight, "weight")));
  EXPECT_EQ(report.renamed, 2U);
  EXPECT_THAT(report.warnings,
              ElementsAre(Says(WarningCode::kUnusedRenames, HasSubstr("\"none.*\""))));
  const auto proof = VerifyAgainst(ProofOf(options));
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_TRUE(proof->equal());
  // A name that is another one's is an error like any other.
  options.force = true;
  options.selection.renames = {{{"w", "m.w"}}, {{"adam_m.*", "m.*"}}};
  EXPECT_THAT(Convert(options).status().message(), Naming("\"adam_m.w\"", "\"w\"", "\"m.w\""));
}

// A text, an empty text, a MapTensor of two Values and one without entries, then a tensor.
std::string Oddities(const std::string& prefix) {
  const auto map = [](const std::string& keys, int64_t count) {
    return std::vector<std::string>{
        TensorMessage("int32", {count}, keys),
        TensorMessage("float32", {count, 2}, std::string(static_cast<size_t>(count) * 8, 'v')),
        TensorMessage("int32", {count}, keys)};
  };
  return TensorValue(prefix + "note", "str", {0}, std::string("h\0\0\0i\0\0\0", 8)) +
         TensorValue(prefix + "hollow", "str", {0}, "") +
         MapValue(prefix + "map", map("key1key2", 2)) + MapValue(prefix + "map", map("key3", 1)) +
         MapValue(prefix + "none", map("", 0)) +
         TensorValue(prefix + "w", "Float32", {2}, "12345678");
}

TEST(ConvertChoiceTest, NotesAndMapsAreRenamed) {
  for (const bool checksum : {true, false}) {
    ConversionFolder folder({}, {{"w", MakeLayout({1}, {{-1}})}});
    ConvertOptions& options = folder.options();
    folder.WriteRank(0, Oddities(""));
    options.checks.checksum = checksum;
    options.selection.unmatched = Selection::Unmatched::kError;
    // Longer than 127 bytes in all: lengths take other numbers of bytes than before.
    const std::string prefix(200, 'x');
    for (const char* name : {"note", "hollow", "map", "none", "w"}) {
      options.selection.renames.names.emplace(name, prefix + name);
    }
    const ConvertReport report = RunConvert(options);
    EXPECT_EQ(report.renamed, 5U);
    const std::string tensor = TensorValue(prefix + "w", "Float32", {2}, "12345678");
    std::string expected = Oddities(prefix);
    expected.resize(expected.size() - tensor.size());
    // What is converted comes first.
    EXPECT_EQ(ReadOutputs(options.target.folder).at(RankPath(0)), tensor + expected);
    const auto damage = Verify(options.target.folder);
    ASSERT_TRUE(damage.ok()) << damage.status().message();
    EXPECT_THAT(damage->damages, IsEmpty());
    const auto proof = VerifyAgainst(ProofOf(options));
    ASSERT_TRUE(proof.ok()) << proof.status().message();
    EXPECT_TRUE(proof->equal());
  }
}

// MapTensors are refused and texts left out, by name: nothing is lost without a word.
TEST(ConvertChoiceTest, OtherFormatsRefuseMapsAndLeaveTextsOut) {
  for (const TargetFormat format :
       {TargetFormat::kSafetensors, TargetFormat::kUnified, TargetFormat::kHuggingFace}) {
    ConversionFolder folder({{"w", MakeLayout({1}, {{-1}})}}, {});
    ConvertOptions& options = folder.options();
    folder.WriteRank(0, Oddities(""));
    options.target.format = format;
    EXPECT_THAT(Refused(folder, StatusCode::kUnsupported), Naming("parameter \"map\": "));
    EXPECT_EQ(Plan(options).status().code(), StatusCode::kUnsupported);
    options.selection.exclude = {"map"};
    EXPECT_THAT(Refused(folder, StatusCode::kUnsupported), HasSubstr("parameter \"none\""));
    options.selection.exclude = {"map", "none"};
    options.selection.unmatched = Selection::Unmatched::kError;
    EXPECT_THAT(Refused(folder, StatusCode::kMismatch),
                AllOf(HasSubstr("\"hollow\""), HasSubstr("\"note\"")));
    options.selection.unmatched = Selection::Unmatched::kCopy;
    const ConvertReport report = RunConvert(options);
    EXPECT_THAT(report.warnings,
                Contains(Says(WarningCode::kLeftOut,
                              AllOf(HasSubstr("\"hollow\""), HasSubstr("\"note\"")))));
    ASSERT_FALSE(report.files.empty());
    const auto written = Checkpoint::Open(options.target.folder + "/" + report.files.front().path);
    ASSERT_TRUE(written.ok()) << written.status().message();
    ASSERT_EQ(written->parameters().size(), 1U);
    EXPECT_EQ(written->parameters().front().name, "w");
  }
}

TEST(ConvertChoiceTest, RefusesNamesThatCannotBe) {
  struct Row {
    std::map<std::string, std::string> renames;
    StatusCode code;
    std::string message;
  };
  const Row rows[] = {
      {{{"w", ""}}, StatusCode::kInvalidArgument, "renaming \"w\" to \"\": a parameter's name"},
      {{{"", "w"}}, StatusCode::kInvalidArgument, "renaming \"\" to \"w\": a parameter's name"},
      {{{"w", std::string(65537, 'x')}},
       StatusCode::kInvalidArgument,
       "expected a name of at most 65536 bytes, found 65537"},
      {{{"no", "x"}, {"w", "x"}},
       StatusCode::kInvalidArgument,
       "renaming gives the parameters \"no\" and \"w\" the same name \"x\""},
      {{{"w", "adam_m.w"}},
       StatusCode::kMismatch,
       "the parameters \"adam_m.w\" and \"w\" would both be written as \"adam_m.w\""},
      {{{"w", "step"}},
       StatusCode::kMismatch,
       "the parameters \"w\" and \"step\" would both be written as \"step\""},
  };
  for (const Row& row : rows) {
    SampleFolder folder;
    folder.options().selection.renames.names = row.renames;
    EXPECT_THAT(Refused(folder, row.code), HasSubstr(row.message));
    EXPECT_THAT(Plan(folder.options()).status().message(), HasSubstr(row.message));
    EXPECT_EQ(VerifyAgainst(ProofOf(folder.options())).ok(), false);
  }
  SampleFolder folder;
  folder.options().selection.renames.names = {{"w", std::string(65536, 'x')}, {"adam_m.w", "w"}};
  EXPECT_EQ(RunConvert(folder.options()).renamed, 2U);
  EXPECT_EQ(folder.Target(0)[1].name, std::string(65536, 'x'));
}

TEST(ConvertChoiceTest, NothingLeftIsAnError) {
  SampleFolder folder;
  folder.options().selection.include = {"W", "Step"};
  EXPECT_THAT(Refused(folder, StatusCode::kInvalidArgument),
              Naming("`include`", "`exclude`", "all 3 ", "\"adam_m.w\""));
}

TEST(ConvertChoiceTest, WarnsOfWhatFitsNothing) {
  SampleFolder folder;
  ConvertOptions& options = folder.options();
  options.selection.include = {"w", "adam_v.*", "step"};
  options.selection.exclude = {"accu_grads*", "ada?_m.w"};
  options.selection.renames.names = {{"weight", "x"}, {"adam_m.w", "y"}, {"step", "z"}};
  EXPECT_THAT(
      RunConvert(options).warnings,
      ElementsAre(Says(WarningCode::kUnusedPatterns,
                       "1 of the patterns of `include` matches no parameter: \"adam_v.*\""),
                  Says(WarningCode::kUnusedPatterns,
                       "1 of the patterns of `exclude` matches no parameter: \"accu_grads*\""),
                  Says(WarningCode::kUnusedRenames,
                       "1 of the names that `renames` replaces is in no source file: \"weight\"")));
  EXPECT_THAT(folder.Target(0), ElementsAre(kWeight, Named(kStep, "z")));
}

// What is left out may be absent, damaged or at odds with the strategies.
TEST(ConvertChoiceTest, WhatIsLeftOutIsNotLookedAt) {
  const std::vector<NamedLayout> layouts = {
      {"w", kRowsOf2}, {"adam_m.w", kTwice}, {"gone", kRowsOf2}};
  ConversionFolder folder(layouts, {{"w", kRowsOf2}, {"adam_v.w", kRowsOf2}, {"gone", kRowsOf2}});
  folder.WriteRank(0, {NaiveShard(kWeight, kRowsOf2, 0), kMoment});
  folder.WriteRank(1, {NaiveShard(kWeight, kRowsOf2, 1),
                       MakeTensor("adam_m.w", DType::kFloat32, {8, 3}, /*salt=*/1)});
  ConvertOptions& options = folder.options();
  options.checks.replicas = CheckChoice::Replicas::kAll;
  options.selection.unmatched = Selection::Unmatched::kError;
  Refused(folder, StatusCode::kMismatch);
  options.selection.include = {"w"};
  const ConvertReport report = RunConvert(options);
  EXPECT_THAT(report.warnings, IsEmpty());
  ASSERT_TRUE(report.replicas.has_value());
  EXPECT_EQ(report.replicas->compared, 0U);
  EXPECT_THAT(folder.Target(0), ElementsAre(NaiveShard(kWeight, kRowsOf2, 0)));
}

TEST(ConvertChoiceTest, AnotherChoiceIsAnotherPlan) {
  SampleFolder folder;
  ConvertOptions options = folder.options();
  options.target.strategy = options.source.strategy;
  options.selection.include = {"w", "adam*"};
  options.selection.ranks = {0};
  RunConvert(options);
  options.selection.ranks = {1};
  for (const auto& change : std::vector<void (*)(ConvertOptions&)>{
           [](ConvertOptions& changed) { changed.selection.include = {"w"}; },
           [](ConvertOptions& changed) { changed.selection.exclude = {"step"}; },
           [](ConvertOptions& changed) {
             changed.selection.renames.names = {{"w", "x"}};
           },
           [](ConvertOptions& changed) {
             changed.selection.renames.patterns = {{"w*", "x*"}};
           }}) {
    ConvertOptions changed = options;
    change(changed);
    EXPECT_EQ(Convert(changed).status().code(), StatusCode::kAlreadyExists);
  }
  // The same one in other words joins.
  options.selection.include = {"adam*", "w", "adam*"};
  RunConvert(options);
  EXPECT_THAT(folder.Target(1),
              ElementsAre(NaiveShard(kMoment, kRowsOf2, 1), NaiveShard(kWeight, kRowsOf2, 1)));
}

TEST(ConvertChoiceTest, ShardsWriteTheSame) {
  SampleFolder folder;
  ConvertOptions options = folder.options();
  options.selection.exclude = {"step"};
  options.selection.renames.names = {{"w", "model.w"}};
  for (const uint64_t shard : {uint64_t{0}, uint64_t{1}}) {
    options.shard = WorkerShare{shard, 2};
    const ConvertReport report = RunConvert(options);
    EXPECT_EQ(report.left_out, 1U);
    EXPECT_EQ(report.renamed, 1U);
  }
  EXPECT_THAT(folder.Target(0), ElementsAre(kMoment, Named(kWeight, "model.w")));
  const auto proof = VerifyAgainst(ProofOf(options));
  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_TRUE(proof->equal());
}

// Two ranks that both strategies fit: cut by rows, or not at all.
TEST(ConvertReferenceTest, TellsAStrategyThatDoesNotBelongToTheSource) {
  SampleFolder folder;
  ConvertOptions& options = folder.options();
  options.checks.reference = folder.folder().Write(
      "full.ckpt", EncodeCheckpoint({kWeight, kStep, MakeTensor("other", DType::kInt8, {})}));
  options.selection.renames.names = {{"w", "model.w"}};  // the reference has the source's names
  EXPECT_THAT(RunConvert(options).warnings,
              ElementsAre(Says(WarningCode::kNotInReference,
                               Naming("1 of 3 ", "full.ckpt", ": \"adam_m.w\""))));

  ConversionFolder wrong({{"w", kTwice}, {"adam_m.w", kTwice}}, {});
  wrong.WriteStage({kMoment, kWeight, kStep}, kLayouts, 2);
  wrong.options().checks.reference = options.checks.reference;
  wrong.options().checks.replicas = CheckChoice::Replicas::kNone;
  const std::string message = Refused(wrong, StatusCode::kMismatch);
  EXPECT_THAT(message, Naming("1 of 3 ", "full.ckpt"));
  EXPECT_THAT(message, HasSubstr("\n  \"w\": expected Float32 [8, 3], found Float32 [4, 3]"));
  EXPECT_EQ(Plan(wrong.options()).status().message(), message);
  wrong.options().selection.exclude = {"w"};
  RunConvert(wrong.options());
}

TEST(ConvertReferenceTest, ListsTheFirstThatDiffer) {
  std::vector<TestTensor> tensors = {MakeTensor("w", DType::kFloat32, {8, 3})};
  for (int i = 0; i < 25; ++i) {
    tensors.push_back(MakeTensor("t" + std::to_string(i), DType::kFloat16, {2}));
  }
  ConversionFolder folder({{"w", kRowsOf2}}, {});
  folder.WriteStage(tensors, {{"w", kRowsOf2}}, 2);
  for (TestTensor& tensor : tensors) tensor.dtype = DType::kBFloat16;
  tensors[0] = kWeight;
  folder.options().checks.reference = folder.folder().Write("full.ckpt", EncodeCheckpoint(tensors));
  const std::string message = Refused(folder, StatusCode::kMismatch);
  EXPECT_THAT(message, HasSubstr("25 of 26 parameters"));
  EXPECT_THAT(message, HasSubstr("\n  \"t0\": expected BFloat16 [2], found Float16 [2]"));
  EXPECT_THAT(message, EndsWith("\n  and 22 more"));
}

TEST(ConvertReferenceTest, TellsKindsOfParametersApart) {
  ConversionFolder folder({}, {{"w", MakeLayout({1}, {{-1}})}});
  folder.WriteRank(0, Oddities(""));
  folder.options().checks.reference = folder.folder().Write("full.ckpt", Oddities(""));
  EXPECT_THAT(RunConvert(folder.options()).warnings, IsEmpty());
  folder.options().checks.reference = folder.folder().Write(
      "other.ckpt", EncodeCheckpoint({MakeTensor("map", DType::kInt8, {1}),
                                      MakeTensor("note", DType::kFloat32, {})}));
  folder.options().force = true;
  const auto report = Convert(folder.options());
  EXPECT_THAT(report.status().message(),
              AllOf(HasSubstr("\n  \"map\": expected Int8 [1], found a MapTensor"),
                    HasSubstr("\n  \"note\": expected Float32 [], found a text")));
}

TEST(ConvertReferenceTest, HasToBeAFullCheckpoint) {
  SampleFolder folder;
  folder.options().checks.reference = folder.folder().path() / "gone.ckpt";
  Refused(folder, StatusCode::kNotFound);
  folder.options().checks.reference = folder.options().source.path;  // has shards
  Refused(folder, StatusCode::kMismatch);
}

TEST(ConvertReferenceTest, MayBeAFolderOfWholeTensors) {
  for (const TargetFormat format : {TargetFormat::kHuggingFace, TargetFormat::kUnified}) {
    SampleFolder folder;
    ConvertOptions whole = folder.options();
    whole.target.folder = folder.folder().path() / "whole";
    whole.target.strategy = {};
    whole.target.format = format;
    ASSERT_TRUE(Convert(whole).ok());
    folder.options().checks.reference = whole.target.folder;
    EXPECT_THAT(RunConvert(folder.options()).warnings, IsEmpty());

    ConversionFolder other({}, {{"w", MakeLayout({1}, {{-1}})}});
    other.WriteRank(0, {MakeTensor("w", DType::kFloat32, {2})});
    other.options().checks.reference = whole.target.folder;
    EXPECT_THAT(Refused(other, StatusCode::kMismatch), Naming("\"w\"", "[8, 3]", "[2]", "whole"));
  }
}

}  // namespace
}  // namespace reshard::convert_choice_test

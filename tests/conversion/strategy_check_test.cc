// A source strategy that is not the source's: what Convert, Plan, Diff, DigestCheckpoint,
// VerifyAgainst and ShardedCheckpoint find without reading everything.

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
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
#include "tests/support/with_bytes.h"

namespace reshard::strategy_check_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A model of 8 ranks. Tensor parallel in `tp`, the rest data parallel, which may shard the
// optimizer: weights cut by rows and by columns, a norm of ones, states.
std::vector<NamedLayout> LayoutsOf(int64_t tp, bool optimizer_sharding) {
  const int64_t dp = 8 / tp;
  ParameterLayout rows = MakeLayout({dp, tp}, {{0, -1}});
  ParameterLayout columns = MakeLayout({dp, tp}, {{-1, 0}});
  const ParameterLayout norm = MakeLayout({dp, tp}, {{-1}});
  if (optimizer_sharding) {
    for (ParameterLayout* layout : {&rows, &columns}) {
      layout->opt_weight_shard_step = tp;
      layout->opt_weight_shard_size = -1;
    }
  }
  return {{"norm", norm},
          {"w1", rows},
          {"w2", columns},
          {"adam_m.w1", rows},
          {"adam_m.w2", columns},
          {"accu_grads.w1", rows},
          {"accu_grads.w2", columns}};
}

std::vector<TestTensor> Tensors() {
  TestTensor norm = MakeTensor("norm", DType::kFloat32, {256});
  norm.content.assign(norm.content.size(), '\1');
  std::vector<TestTensor> tensors = {norm};
  for (const std::string prefix : {"", "adam_m.", "accu_grads."}) {
    tensors.push_back(MakeTensor(prefix + "w1", DType::kFloat32, {256, 64}));
    tensors.push_back(MakeTensor(prefix + "w2", DType::kFloat32, {256, 64}));
  }
  return tensors;
}

struct Case {
  int64_t tp = 4;
  bool optimizer_sharding = false;
};

// A source that was saved with `saved`, but is said to be of `said`.
class SaidFolder : public ConversionFolder {
 public:
  SaidFolder(Case saved, Case said, const std::vector<NamedLayout>& target = {})
      : ConversionFolder(LayoutsOf(said.tp, said.optimizer_sharding), target),
        layouts_(LayoutsOf(saved.tp, saved.optimizer_sharding)) {
    for (int64_t rank = 0; rank < 8; ++rank) {
      std::vector<TestTensor> shards;
      for (const TestTensor& tensor : Tensors()) {
        shards.push_back(NaiveShard(tensor, LayoutOf(tensor.name), rank));
      }
      files_.push_back(shards);
      WriteRank(rank, shards);
    }
  }

  const ParameterLayout& LayoutOf(const std::string& name) const {
    for (const NamedLayout& named : layouts_) {
      if (named.name == name) return named.layout;
    }
    throw std::out_of_range(name);
  }

  // Changes a byte of a parameter in the file of a rank.
  void Flip(size_t rank, const std::string& name, size_t offset) {
    for (TestTensor& tensor : files_[rank]) {
      if (tensor.name != name) continue;
      char& byte = tensor.content.at(offset);
      byte = static_cast<char>(byte ^ 1);
    }
    WriteRank(static_cast<int64_t>(rank), files_[rank]);
  }

  // Expects that conversion and plan are refused with the same words, and nothing is made.
  std::string Refusal() const {
    const Status status = Convert(options()).status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.message();
    EXPECT_EQ(Plan(options()).status().message(), status.message());
    EXPECT_FALSE(fs::exists(options().target.folder));
    return status.message();
  }

  std::vector<Warning> Warnings() {
    options().force = true;
    const auto report = Convert(options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report->warnings
                       : std::vector<Warning>{{WarningCode::kMissingRanks, "failed"}};
  }

 private:
  std::vector<NamedLayout> layouts_;
  std::vector<std::vector<TestTensor>> files_;  // by rank
};

TEST(StrategyCheckTest, TheRightOneIsTakenAndLittleIsRead) {
  for (const bool sharding : {false, true}) {
    SaidFolder folder({4, sharding}, {4, sharding}, LayoutsOf(2, false));
    const auto report = Convert(folder.options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->warnings, IsEmpty());
    ASSERT_TRUE(report->sample.has_value());
    EXPECT_EQ(report->sample->files, 8U);
    EXPECT_LE(report->sample->reads, 8 * 3 * 3 * 3U);  // ranks, layouts, parameters, places
    EXPECT_LE(report->sample->bytes, report->sample->reads * 5120);
    EXPECT_GE(report->sample->comparisons, sharding ? 7U : 4 * 4 + 7U);
    // The set is there and whole: as Convert, and unlike for another source.
    EXPECT_TRUE(Convert(folder.options())->already_published);
    const auto plan = Plan(folder.options());
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    const fs::path source = folder.folder().path() / "source" / RankPath(1);
    fs::last_write_time(source, fs::last_write_time(source) - std::chrono::seconds(1));
    EXPECT_EQ(Plan(folder.options()).status().code(), StatusCode::kAlreadyExists);
  }
}

TEST(StrategyCheckTest, SwappedOnesAreNamed) {
  SaidFolder folder({4, false}, {2, false}, LayoutsOf(4, false));
  const std::string message = folder.Refusal();
  EXPECT_THAT(message, HasSubstr("src.ckpt is not the strategy that this checkpoint was "
                                 "saved with. The target strategy "));
  EXPECT_THAT(message, HasSubstr(" fits the source: swap the two. "));
  EXPECT_THAT(message, HasSubstr("\n  \"w1\": rank 2 differs from rank 0 at byte 0 of the shard"));
  EXPECT_THAT(message,
              AllOf(HasSubstr("`checks.replicas=all`"), HasSubstr("`ShardedCheckpoint::Shards`"),
                    Not(HasSubstr("accu_grads")), Not(HasSubstr("norm"))));
  folder.options().checks.replicas = CheckChoice::Replicas::kNone;
  EXPECT_THAT(folder.Warnings(), IsEmpty());
}

TEST(StrategyCheckTest, ATargetThatDoesNotFitEitherIsNotSaidToBeSwapped) {
  const SaidFolder folder({8, false}, {2, false}, LayoutsOf(4, false));
  EXPECT_THAT(folder.Refusal(), Not(HasSubstr("swap")));
}

TEST(StrategyCheckTest, OptimizerShardingThatTheStrategyLacksIsFound) {
  EXPECT_THAT(SaidFolder({4, true}, {4, false}).Refusal(),
              Naming("\"w1\": rank 4 ", " rank 0 ", "byte 0"));
  EXPECT_THAT(SaidFolder({4, true}, {2, false}).Refusal(), Naming("\"w1\": rank 2 "));
}

// The other way round the replicas of the strategy are some of those that there are.
TEST(StrategyCheckTest, RanksThatAreEqualAgainstTheStrategyAreAWarning) {
  SaidFolder folder({2, false}, {4, false}, LayoutsOf(2, false));
  EXPECT_THAT(folder.Warnings(), ElementsAre(Says(WarningCode::kReplicasEqual,
                                                  AllOf(Naming("ranks 0 and 2, 0 and 6, 1 and 3 "),
                                                        HasSubstr("are the two swapped?")))));
}

TEST(StrategyCheckTest, ARankFolderThatWasCopiedOverAnotherIsAWarning) {
  SaidFolder folder({4, true}, {4, true});
  const fs::path source = folder.options().source.path;
  fs::copy_file(source / RankPath(2), source / RankPath(3), fs::copy_options::overwrite_existing);
  EXPECT_THAT(folder.Warnings(),
              ElementsAre(Says(WarningCode::kReplicasEqual,
                               AllOf(Naming("ranks 2 and 3 "), Not(HasSubstr("swapped"))))));
  folder.options().checks.replicas = CheckChoice::Replicas::kNone;
  EXPECT_THAT(folder.Warnings(), IsEmpty());
}

TEST(StrategyCheckTest, OneFileForRanksOfOtherPartsIsRefused) {
  for (const bool by_link : {false, true}) {
    SaidFolder folder({4, true}, {4, true});
    const fs::path source = folder.options().source.path;
    fs::remove(source / RankPath(3));
    if (by_link) {
      fs::create_hard_link(source / RankPath(2), source / RankPath(3));
    } else {
      fs::create_symlink(fs::absolute(source / RankPath(2)), source / RankPath(3));
    }
    EXPECT_THAT(folder.Refusal(), Naming("ranks 2 and 3 ", "\"w1\""));
    const std::string& path = folder.options().source.path;
    const StrategyRef& strategy = folder.options().source.strategy;
    EXPECT_EQ(DigestCheckpoint({.source = {.path = path, .strategy = strategy}}).status().code(),
              StatusCode::kMismatch);
    folder.options().checks.replicas = CheckChoice::Replicas::kNone;
    EXPECT_TRUE(Convert(folder.options()).ok());
  }
  // Ranks that hold the same may well be one file.
  SaidFolder folder({4, false}, {4, false});
  const fs::path source = folder.options().source.path;
  fs::remove(source / RankPath(7));
  fs::create_hard_link(source / RankPath(3), source / RankPath(7));
  EXPECT_THAT(folder.Warnings(), IsEmpty());
}

TEST(StrategyCheckTest, OneFileNamedTwiceIsRefused) {
  SaidFolder folder({4, true}, {4, true});
  for (int64_t rank = 0; rank < 8; ++rank) {
    folder.options().source.files[rank] =
        (fs::path(folder.options().source.path) / RankPath(rank == 1 ? 0 : rank)).string();
  }
  folder.options().source.path.clear();
  EXPECT_THAT(folder.Refusal(), Naming("ranks 0 and 1 "));
}

TEST(StrategyCheckTest, ADamagedRankIsNamedAsTheOtherCause) {
  SaidFolder folder({4, false}, {4, false});
  folder.Flip(5, "w1", 0);
  EXPECT_THAT(folder.Refusal(),
              Naming("file of rank 5 ", "\n  \"w1\": rank 5 ", " rank 1 ", "byte 0 "));
  // The middle and the end of 16 KiB.
  for (const size_t offset : {size_t{8192}, size_t{16383}}) {
    SaidFolder other({4, false}, {4, false});
    other.Flip(5, "w1", offset);
    EXPECT_THAT(other.Refusal(), Naming("byte " + std::to_string(offset) + " "));
  }
}

TEST(StrategyCheckTest, WhatIsEachRanksOwnIsNoError) {
  SaidFolder folder({4, false}, {4, false});
  folder.Flip(5, "accu_grads.w1", 0);
  EXPECT_THAT(folder.Warnings(), IsEmpty());
  folder.Flip(5, "norm", 3);
  EXPECT_THAT(folder.Warnings(),
              ElementsAre(Says(WarningCode::kReplicasDiffer, Naming("1 ", "\"norm\""))));
  folder.Flip(5, "w1", 0);
  folder.options().target.folder += "2";
  EXPECT_THAT(folder.Refusal(), HasSubstr("\"w1\""));
  folder.options().selection.exclude = {"w1"};
  EXPECT_THAT(folder.Warnings(),
              ElementsAre(Says(WarningCode::kReplicasDiffer, HasSubstr("\"norm\""))));
}

// Where the strategy cuts nothing at all, and most differ, they are parts.
TEST(StrategyCheckTest, DataParallelismAloneForPartsIsRefused) {
  std::vector<NamedLayout> whole;
  for (const NamedLayout& named : LayoutsOf(4, false)) {
    const size_t dims = named.name == "norm" ? 1 : 2;
    whole.push_back({named.name, MakeLayout({8}, {std::vector<int64_t>(dims, -1)})});
  }
  SaidFolder folder({8, false}, {8, false});
  folder.options().source.strategy = folder.folder().Write("dp.ckpt", ProtobufStrategy(0, whole));
  EXPECT_THAT(folder.Refusal(), Naming("\"w1\": rank 1 ", " rank 0"));
}

// Without redundancy, moving averages may be all that several ranks have.
TEST(StrategyCheckTest, VectorsThatDifferInAllRanksAreTheirOwn) {
  const ParameterLayout whole = MakeLayout({4}, {{-1}});
  ConversionFolder folder({{"moving_mean", whole}, {"w", MakeLayout({4}, {{0, -1}})}}, {});
  folder.options().selection.exclude = {"w"};
  for (int64_t rank = 0; rank < 4; ++rank) {
    folder.WriteRank(
        rank, {MakeTensor("moving_mean", DType::kFloat32, {64}, static_cast<uint64_t>(rank))});
  }
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kReplicasDiffer, HasSubstr("moving_mean"))));
}

TEST(StrategyCheckTest, FilesThatOnlyTheSampleOpensChangeNothingElse) {
  SaidFolder folder({4, false}, {4, false});
  const auto checked = Convert(folder.options());
  ASSERT_TRUE(checked.ok()) << checked.status().message();
  EXPECT_THAT(checked->source_ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(checked->sample->files_opened, 4U);
  const FolderContents before = ReadFolder(folder.options().target.folder);
  folder.options().checks.replicas = CheckChoice::Replicas::kNone;
  folder.options().force = true;
  const auto unchecked = Convert(folder.options());
  ASSERT_TRUE(unchecked.ok()) << unchecked.status().message();
  EXPECT_FALSE(unchecked->sample.has_value());
  EXPECT_EQ(unchecked->io.sources_mapped, checked->io.sources_mapped);
  EXPECT_EQ(ReadFolder(folder.options().target.folder), before);
  // A file that cannot be sampled is nobody's loss but the sample's.
  folder.WriteRank(6, std::string("no checkpoint"));
  folder.options().checks.replicas = CheckChoice::Replicas::kSample;
  EXPECT_THAT(folder.Warnings(),
              ElementsAre(Says(WarningCode::kNotCompared, Naming("rank 6: ", RankPath(6)))));
  // One that changes after it was sampled neither.
  folder.RemoveRank(6);
  folder.options().run.progress = WithBytes([&] { folder.RemoveRank(7); });
  EXPECT_THAT(folder.Warnings(), ElementsAre(Says(WarningCode::kMissingRanks, Naming(": 6"))));
}

TEST(StrategyCheckTest, FewRanksAreEnough) {
  SaidFolder folder({4, false}, {2, false});
  for (const int64_t rank : {1, 3, 4, 5, 6, 7}) folder.RemoveRank(rank);
  folder.options().selection.ranks = {0};
  EXPECT_THAT(Convert(folder.options()).status().message(),
              Naming("no checkpoint for ranks 1, 3, 5 and 7, "));  // what is missing is said first
  folder.options().source.strategy =
      folder.folder().Write("s.ckpt", ProtobufStrategy(0, {{"w1", MakeLayout({8}, {{-1, -1}})}}));
  folder.options().selection.include = {"w1"};
  EXPECT_THAT(Convert(folder.options()).status().message(), Naming("\"w1\": rank 2 ", " rank 0"));
}

// A scalar with this value in its bytes.
template <typename T>
TestTensor Scalar(const std::string& name, DType dtype, T value) {
  TestTensor tensor = MakeTensor(name, dtype, {});
  tensor.content.assign(reinterpret_cast<const char*>(&value), sizeof(value));
  return tensor;
}

// Four ranks of two stages with a matrix each, and scalars that `scalars` makes for a rank.
class CounterFolder : public ConversionFolder {
 public:
  template <typename Scalars>
  explicit CounterFolder(const Scalars& scalars) {
    options().source.strategy =
        folder().Write("s.ckpt", ProtobufStrategy(1, {{"0-a", MakeLayout({2}, {{0, -1}})},
                                                      {"1-b", MakeLayout({2}, {{0, -1}})}}));
    for (int64_t rank = 0; rank < 4; ++rank) {
      std::vector<TestTensor> tensors = scalars(rank);
      tensors.push_back(
          MakeTensor(rank < 2 ? "a" : "b", DType::kFloat32, {4, 8}, static_cast<uint64_t>(rank)));
      WriteRank(rank, tensors);
    }
  }

  std::vector<Warning> Warnings() const {
    const auto report = Convert(options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report->warnings : std::vector<Warning>();
  }
};

TEST(StrategyCheckTest, CountersThatDifferAreAWarningWithValuesAndRanks) {
  const CounterFolder folder([](int64_t rank) -> std::vector<TestTensor> {
    return {Scalar<int32_t>("global_step", DType::kInt32, rank == 3 ? 110 : 100),
            Scalar<float>("learning_rate", DType::kFloat32, rank == 0 ? 0.5F : 0.25F),
            Scalar<int64_t>("epoch_num", DType::kInt64, 2),
            Scalar<int64_t>("seed", DType::kInt64, rank),
            Scalar<float>("norm.moving_mean", DType::kFloat32, static_cast<float>(rank))};
  });
  EXPECT_THAT(folder.Warnings(),
              testing::Contains(Says(
                  WarningCode::kCountersDiffer,
                  AllOf(HasSubstr("\"global_step\" is 100 in ranks 0-2, 110 in rank 3; "
                                  "\"learning_rate\" is 0.5 in rank 0, 0.25 in ranks 1-3;"),
                        Not(HasSubstr("epoch")), Not(HasSubstr("seed")), Not(HasSubstr("mean"))))));
}

TEST(StrategyCheckTest, CountersOfStagesOfOneRankAreCompared) {
  ConversionFolder folder;
  const ParameterLayout whole = MakeLayout({1}, {{-1, -1}});
  folder.options().source.strategy =
      folder.folder().Write("s.ckpt", ProtobufStrategy(1, {{"0-a", whole}, {"1-b", whole}}));
  for (const int64_t rank : {0, 1}) {
    folder.WriteRank(rank, {MakeTensor(rank == 0 ? "a" : "b", DType::kFloat32, {4, 8}),
                            Scalar<int32_t>("global_step", DType::kInt32, rank == 0 ? 7 : 8)});
  }
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              testing::Contains(Says(WarningCode::kCountersDiffer,
                                     HasSubstr("\"global_step\" is 7 in rank 0, 8 in rank 1"))));
}

TEST(StrategyCheckTest, CountersThatAgreeAreNone) {
  const CounterFolder folder([](int64_t rank) -> std::vector<TestTensor> {
    return {Scalar<int32_t>("global_step", DType::kInt32, 100),
            Scalar<float>("accu_grads.step", DType::kFloat32, static_cast<float>(rank)),
            Scalar<float>("current_step", DType::kFloat32, 7)};
  });
  EXPECT_THAT(folder.Warnings(), IsEmpty());
}

// Of a tensor that a layout cuts into single elements, ranks hold different ones.
TEST(StrategyCheckTest, PartsOfOneElementCountNothing) {
  const std::vector<NamedLayout> layouts = {{"power", MakeLayout({2}, {{0}})},
                                            {"b", MakeLayout({2}, {{0}})},
                                            {"step", MakeLayout({2}, {{-1}})}};
  ConversionFolder folder(layouts, {});
  const auto warnings = [&](uint64_t salt_of_rank) {
    for (uint64_t rank = 0; rank < 2; ++rank) {
      folder.WriteRank(static_cast<int64_t>(rank),
                       {MakeTensor("power", DType::kFloat32, {1}, rank),
                        MakeTensor("b", DType::kInt32, {1}, rank),
                        MakeTensor("step", DType::kInt32, {1}, rank * salt_of_rank)});
    }
    folder.options().force = true;
    const auto report = Convert(folder.options());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report->warnings : std::vector<Warning>();
  };
  EXPECT_THAT(warnings(0), IsEmpty());
  // A layout that cuts nothing leaves a counter what it is.
  EXPECT_THAT(warnings(1),
              testing::Contains(Says(WarningCode::kCountersDiffer,
                                     AllOf(HasSubstr("counters: \"step\" is "),
                                           Not(HasSubstr("power")), Not(HasSubstr("\"b\""))))));
}

// Replicas of matrices that vary confirm a strategy; without any, the notes say so.
TEST(StrategyCheckTest, WhetherTheStrategyIsConfirmedIsSaid) {
  const auto confirmed = Plan(SaidFolder({4, false}, {4, false}).options());
  ASSERT_TRUE(confirmed.ok()) << confirmed.status().message();
  EXPECT_EQ(confirmed->sample->confirming, 4 * 4U);  // weights and states of two layouts
  EXPECT_THAT(confirmed->notes, IsEmpty());

  const auto none = Plan(SaidFolder({4, true}, {4, true}).options());
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->sample->confirming, 0U);
  EXPECT_THAT(none->notes, ElementsAre(Naming("src.ckpt: no matrix has a replica", "unconfirmed",
                                              "\"w1\" [256, 64]", "`checks.reference`")));
}

// Safetensors files of one size may have their tensors in another order.
TEST(StrategyCheckTest, EqualReplicasWithOtherHeadersAreEqual) {
  const TestTensor a = MakeTensor("a", DType::kFloat32, {8, 8});
  const TestTensor b = MakeTensor("b", DType::kFloat32, {8, 8});
  const ParameterLayout whole = MakeLayout({2}, {{-1, -1}});
  ConversionFolder folder({{"a", whole}, {"b", whole}}, {});
  const auto write = [&](int64_t rank, const TestTensor& x, const TestTensor& y) {
    const std::string header =
        R"({")" + x.name + R"(":{"dtype":"F32","shape":[8,8],"data_offsets":[0,256]},")" + y.name +
        R"(":{"dtype":"F32","shape":[8,8],"data_offsets":[256,512]}})";
    const uint64_t length = header.size();
    folder.folder().Write("source/rank_" + std::to_string(rank) + "/net.safetensors",
                          std::string(reinterpret_cast<const char*>(&length), sizeof(length)) +
                              header + x.content + y.content);
  };
  write(0, a, b);
  write(1, b, a);
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->sample->confirming, 2U);
}

// Two stages of 2 ranks; what a file of the first stage holds beside its own.
class StageFolder : public ConversionFolder {
 public:
  explicit StageFolder(size_t strays) {
    const ParameterLayout rows = MakeLayout({2}, {{0, -1}});
    std::vector<NamedLayout> merged;
    std::vector<std::vector<TestTensor>> stages(2);
    for (int i = 0; i < 10; ++i) {
      const std::string name = "layer" + std::to_string(i);
      const TestTensor tensor = MakeTensor(name, DType::kFloat32, {8, 8});
      const size_t stage = i < 5 ? 0 : 1;
      merged.push_back({std::to_string(stage) + "-" + name, rows});
      stages[stage].push_back(tensor);
      if (stage == 1 && static_cast<size_t>(i - 5) < strays) stages[0].push_back(tensor);
    }
    for (int64_t rank = 0; rank < 4; ++rank) {
      std::vector<TestTensor> shards;
      for (const TestTensor& tensor : stages[static_cast<size_t>(rank / 2)]) {
        shards.push_back(NaiveShard(tensor, rows, rank % 2));
      }
      WriteRank(rank, shards);
    }
    options().source.strategy = folder().Write("s.ckpt", ProtobufStrategy(1, merged));
  }
};

TEST(StrategyCheckTest, APipelinesStrategyForFilesThatHoldTheOtherStageIsRefused) {
  const StageFolder folder(5);
  const ConvertOptions& options = folder.options();
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), Naming(RankPath(0) + ": by ", "rank 0 is in stage 0", "5 of the 5 ",
                                       "stage 1 ", "\"layer5\", \"layer6\", \"layer7\"", "s.ckpt"));
  EXPECT_FALSE(fs::exists(options.target.folder));
  const SourceSpec side = {options.source.path, options.source.strategy};
  const StageFolder right(0);
  ASSERT_TRUE(Convert(right.options()).ok());
  ConversionSpec against;
  against.target.folder = right.options().target.folder;
  against.source.path = options.source.path;
  against.source.strategy = options.source.strategy;
  for (const Status& other :
       {Plan(options).status(),
        DigestCheckpoint(
            {.source = {.path = options.source.path, .strategy = options.source.strategy}})
            .status(),
        Diff({{.source = side}, side}).status(),
        ShardedCheckpoint::Open(options.source.path, options.source.strategy).status(),
        VerifyAgainst(against).status()}) {
    EXPECT_EQ(other.message(), status.message());
  }
}

// As a conversion leaves parameters that its source strategy lacked in each stage.
TEST(StrategyCheckTest, AFewParametersOfOtherStagesAreNoError) {
  for (const size_t strays : {1U, 2U}) {
    const auto report = Convert(StageFolder(strays).options());
    EXPECT_TRUE(report.ok()) << report.status().message();
  }
  StageFolder folder(3);
  EXPECT_EQ(Convert(folder.options()).status().code(), StatusCode::kMismatch);
  folder.options().selection.exclude = {"layer5", "layer6"};
  EXPECT_TRUE(Convert(folder.options()).ok());
}

// These compare all replicas themselves: one rank is their finding.
TEST(StrategyCheckTest, WhoComparesAllRefusesAWrongStrategyOnly) {
  SaidFolder folder({4, false}, {4, false});
  ASSERT_TRUE(Convert(folder.options()).ok());
  ConversionSpec against;
  against.target.folder = folder.options().target.folder;
  against.source.path = folder.options().source.path;
  against.source.strategy = folder.options().source.strategy;
  const std::string& path = folder.options().source.path;
  const StrategyRef& strategy = folder.options().source.strategy;
  for (const std::string name : {"w1", "w2", "adam_m.w1", "adam_m.w2"}) folder.Flip(5, name, 0);
  const auto proved = VerifyAgainst(against);
  ASSERT_TRUE(proved.ok()) << proved.status().message();
  EXPECT_EQ(proved->replicas.differing, 4U);
  EXPECT_TRUE(DigestCheckpoint({.source = {.path = path, .strategy = strategy}}).ok());

  const SaidFolder wrong({4, false}, {2, false});
  against.source.path = wrong.options().source.path;
  against.source.strategy = wrong.options().source.strategy;
  EXPECT_THAT(VerifyAgainst(against).status().message(), HasSubstr("most likely"));
  EXPECT_THAT(DigestCheckpoint(
                  {.source = {.path = against.source.path, .strategy = against.source.strategy}})
                  .status()
                  .message(),
              HasSubstr("most likely"));
}

}  // namespace
}  // namespace reshard::strategy_check_test

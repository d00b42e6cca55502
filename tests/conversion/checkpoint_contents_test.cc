// Files that are read as they are indexed tell the same as files that are read after.
#include "src/verify/checkpoint_contents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/convert/opened_source.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMuch = uint64_t{1} << 30;

class CheckpointContentsTest : public testing::Test {
 protected:
  // `stages` of four ranks. Of tensors without a layout each file has all.
  void WriteStages(const std::vector<std::vector<NamedLayout>>& stages) {
    std::vector<NamedLayout> merged;
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      folder_.WriteStage(tensors_, stages[stage], 4, static_cast<int64_t>(stage) * 4);
      for (const auto& [name, layout] : stages[stage]) {
        merged.push_back({std::to_string(stage) + "-" + name, layout});
      }
    }
    strategy_ = folder_.folder().Write("strategy.ckpt", ProtobufStrategy(1, merged));
  }

  struct Outcome {
    std::string contents;     // or the error
    uint64_t progress = 0;    // all
    uint64_t as_indexed = 0;  // bytes of windows that were filled meanwhile
    uint64_t filled = 0;      // and in all
  };

  // `kept`: 0 reads no file as it is indexed.
  Outcome Read(uint64_t kept, const ParameterChoice& choice = {}, size_t workers = 2) const {
    Outcome outcome;
    auto opened = OpenSource({path_, strategy_}, {}, {.access = access_});
    if (!opened.ok()) return {opened.status().message()};
    const OpenedSource& source = **opened;
    ContentsReader reader(source.tensors(), source.rule().source(), choice);
    reader.ReadAsIndexed(kept, workers, {.workers = workers, .stop = {}});
    outcome.as_indexed = source.files().FilledBytes();
    PlanFindings findings;
    auto tensors =
        ListTensors(source.tensors(), source.rule(), {.workers = 1, .stop = {}}, findings);
    if (!tensors.ok()) {
      outcome.contents = tensors.status().message();
      return outcome;
    }
    std::erase_if(*tensors, [&](const SourceTensor& tensor) { return !choice.Takes(tensor.name); });
    const SharedWork work = {
        .workers = 1, .stop = {}, .progress = [&](uint64_t bytes) { outcome.progress += bytes; }};
    const Result<CheckpointContents> contents = reader.Read(*tensors, work);
    outcome.filled = source.files().FilledBytes();
    if (!contents.ok()) {
      outcome.contents = contents.status().message();
      return outcome;
    }
    for (size_t i = 0; i < contents->values.size(); ++i) {
      outcome.contents += (*tensors)[i].name;
      for (const HeldValue& value : contents->values[i]) {
        outcome.contents +=
            fmt::format(" {} {} {} {} {}", static_cast<int>(value.kind), DTypeName(value.dtype),
                        ToString(value.shape), value.bytes, ToHex(value.digest));
        for (const int64_t rank : value.ranks) outcome.contents += fmt::format(" r{}", rank);
      }
      outcome.contents += '\n';
    }
    const ReplicaReport& replicas = contents->replicas;
    outcome.contents += fmt::format("{} {} {} {}", replicas.compared, replicas.shards,
                                    replicas.bytes, replicas.differing);
    for (const ReplicaReport::Difference& difference : replicas.differences) {
      outcome.contents += ' ' + difference.parameter;
      for (const ReplicaReport::Pair& pair : difference.pairs) {
        outcome.contents += fmt::format(" {}/{}+{}", pair.rank, pair.reference, pair.offset);
      }
    }
    for (const std::string& name : contents->own_gradients) outcome.contents += " own " + name;
    outcome.contents += fmt::format("\n{} bytes", contents->bytes);
    return outcome;
  }

  // How many files are read as they are indexed. Behind one that cannot be, it is left to chance.
  enum class AtOnce { kNone, kAll, kAnyNumber };

  // Expects that both ways tell the same. Returns what they do.
  std::string ReadBothWays(AtOnce files) const {
    const Outcome after = Read(0);
    EXPECT_EQ(after.as_indexed, 0U);
    for (const size_t workers : {1U, 3U}) {
      const Outcome at_once = Read(kMuch, {}, workers);
      EXPECT_EQ(at_once.contents, after.contents);
      EXPECT_EQ(at_once.progress, after.progress);
      if (files == AtOnce::kAnyNumber) continue;
      EXPECT_EQ(at_once.as_indexed > 0, files == AtOnce::kAll);
      EXPECT_EQ(at_once.as_indexed == at_once.filled, files == AtOnce::kAll);
    }
    return after.contents;
  }

  std::vector<TestTensor> tensors_ = {
      MakeTensor("cut", DType::kFloat32, {32, 16}), MakeTensor("columns", DType::kInt16, {16, 64}),
      MakeTensor("whole", DType::kFloat16, {500}), MakeTensor("own", DType::kInt8, {700}),
      MakeTensor("accu_grads.cut", DType::kFloat32, {32, 16})};
  const std::vector<NamedLayout> layouts_ = {{"cut", MakeLayout({4}, {{0, -1}})},
                                             {"columns", MakeLayout({2, 2}, {{-1, 0}})},
                                             {"whole", MakeLayout({4}, {{-1}})},
                                             {"accu_grads.cut", MakeLayout({2, 2}, {{0, -1}})}};
  ConversionFolder folder_;
  std::string path_ = folder_.options().source.path;
  std::string strategy_;
  SourceAccess access_ = SourceAccess::kAuto;
};

TEST_F(CheckpointContentsTest, CutWholeAndUnknownToTheStrategy) {
  WriteStages({layouts_});
  EXPECT_THAT(ReadBothWays(AtOnce::kAll), HasSubstr("columns"));
}

TEST_F(CheckpointContentsTest, AFileWithoutAStrategy) {
  path_ = folder_.folder().Write("full.ckpt", EncodeCheckpoint(tensors_));
  ReadBothWays(AtOnce::kAll);
}

TEST_F(CheckpointContentsTest, RanksThatDiffer) {
  WriteStages({layouts_});
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::vector<TestTensor> other = tensors_;
    other[i].content.front() ^= 4;
    other[i].content.back() ^= 4;
    std::vector<TestTensor> shards;
    for (const TestTensor& tensor : other) {
      const auto layout =
          std::find_if(layouts_.begin(), layouts_.end(),
                       [&](const NamedLayout& named) { return named.name == tensor.name; });
      shards.push_back(layout == layouts_.end() ? tensor : NaiveShard(tensor, layout->layout, 2));
    }
    folder_.WriteRank(2, shards);
    ReadBothWays(AtOnce::kAll);
  }
  EXPECT_THAT(Read(kMuch).contents, HasSubstr("own accu_grads.cut"));
}

// What another stage's layouts cut is not to be told from this stage's file alone.
TEST_F(CheckpointContentsTest, StagesOfOneParameter) {
  const std::vector<NamedLayout> one = {layouts_[0]};
  WriteStages({layouts_, one});
  ReadBothWays(AtOnce::kNone);
  const std::vector<NamedLayout> cut = {layouts_[0], layouts_[1]};
  tensors_ = {tensors_[0], tensors_[1], tensors_[3]};
  WriteStages({cut, cut});
  ReadBothWays(AtOnce::kAll);
}

// A tensor that is cut in one file, and a text of the same name in another.
TEST_F(CheckpointContentsTest, OneNameForTwoKinds) {
  WriteStages({layouts_});
  for (const int64_t rank : {0, 3}) {
    folder_.WriteRank(rank, TensorValue("cut", "str", {0}, std::string(600, 'x')) +
                                EncodeCheckpoint({MakeTensor("own", DType::kInt8, {700})}));
    ReadBothWays(AtOnce::kAnyNumber);
  }
}

TEST_F(CheckpointContentsTest, WhatIsLargeOrTinyOrChosenOrNotMappedIsReadAfter) {
  WriteStages({layouts_});
  access_ = SourceAccess::kPread;
  ReadBothWays(AtOnce::kNone);
  access_ = SourceAccess::kAuto;
  const ParameterChoice some({"cut"}, {}, {});
  EXPECT_EQ(Read(kMuch, some).as_indexed, 0U);
  EXPECT_EQ(Read(kMuch, some).contents, Read(0, some).contents);
  tensors_ = {MakeTensor("cut", DType::kFloat32, {512, 512})};
  WriteStages({layouts_});
  ReadBothWays(AtOnce::kNone);
  tensors_.clear();
  for (int i = 0; i < 100; ++i) {
    tensors_.push_back(MakeTensor(std::to_string(i), DType::kInt8, {100}));
  }
  WriteStages({layouts_});
  ReadBothWays(AtOnce::kNone);
}

TEST_F(CheckpointContentsTest, AFileThatCannotBeRead) {
  WriteStages({layouts_});
  folder_.WriteRank(1, EncodeCheckpoint(tensors_).substr(0, 3000));
  EXPECT_THAT(ReadBothWays(AtOnce::kAnyNumber), HasSubstr("rank_1"));
}

}  // namespace
}  // namespace reshard

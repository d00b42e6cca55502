// Which bytes of which files a merged file is made of, and which have to be the same.
#include "src/mindspore/merge_plan.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/mindspore/checked_strategy.h"
#include "src/write/gather.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string Bytes(const std::string& name, const std::vector<int64_t>& dims,
                  const std::string& content) {
  return TensorValue(name, "Int8", dims, content);
}

class MergePlanTest : public testing::Test {
 protected:
  void Open(const std::vector<std::string>& contents) {
    tables_.clear();
    ids_.clear();
    for (const std::string& bytes : contents) {
      const std::string path = folder_.Write(std::to_string(written_++) + ".ckpt", bytes);
      ids_.push_back(files_.Add(path));
      auto table = cache_.Get(ids_.back());
      ASSERT_TRUE(table.ok()) << table.status().message();
      tables_.push_back(*std::move(table));
    }
  }
  MergeFiles Files() { return {tables_, files_, cache_, "out.ckpt", choice_}; }

  Result<MergePlan> Slices() { return PlanSlices(Files(), nullptr); }
  Result<MergePlan> Slices(const std::vector<NamedLayout>& layouts) {
    const auto strategy = CheckedStrategy::FromFile(ParsedStrategy("strategy.ckpt", 0, layouts));
    EXPECT_TRUE(strategy.ok()) << strategy.status().message();
    return PlanSlices(Files(), &*strategy);
  }
  Result<MergePlan> Segments() { return PlanSegments(Files()); }

  // The bytes of the file that is planned.
  std::string Written(const Result<MergePlan>& plan) {
    if (!plan.ok()) return plan.status().message();
    std::string bytes(plan->target.size, '?');
    const Status filled = FillTarget(files_, plan->target, 0,
                                     std::as_writable_bytes(std::span(bytes)), nullptr, nullptr);
    EXPECT_TRUE(filled.ok()) << filled.message();
    return bytes;
  }
  // The numbers of the files that have to hold the same of a parameter.
  std::vector<size_t> EqualFiles(const EqualContents& equal) const {
    std::vector<size_t> numbers;
    for (const StoredContent& content : equal.contents) {
      for (size_t i = 0; i < ids_.size(); ++i) {
        if (ids_[i] == content.file) numbers.push_back(i);
      }
    }
    return numbers;
  }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  TableCache cache_{files_, size_t{1} << 20};
  size_t written_ = 0;
  std::vector<FileId> ids_;
  std::vector<TableHandle> tables_;
  ParameterChoice choice_;
};

TEST_F(MergePlanTest, SlicesAreRowsInTheOrderOfTheFiles) {
  Open({Bytes("a", {1, 2}, "ab"), Bytes("a", {2, 2}, "cdef"), Bytes("a", {0, 2}, "")});
  const auto plan = Slices();
  EXPECT_EQ(Written(plan), Bytes("a", {3, 2}, "abcdef"));
  EXPECT_THAT(plan->equal, IsEmpty());
  EXPECT_EQ(plan->target.path, "out.ckpt");
}

TEST_F(MergePlanTest, ScalarsTextsAndMapsAreTakenOnceAndHaveToBeEqual) {
  const std::string rest =
      Bytes("s", {}, "s") + TensorValue("t", "str", {0}, std::string("h\0\0\0", 4)) +
      MapValue("m", {TensorMessage("int32", {1}, "keys"), TensorMessage("int32", {1}, "vals"),
                     TensorMessage("int32", {1}, "stat")});
  Open({Bytes("a", {1}, "a") + rest, rest + Bytes("a", {1}, "b")});
  const auto plan = Slices();
  EXPECT_EQ(Written(plan), Bytes("a", {2}, "ab") + rest);
  ASSERT_THAT(plan->equal, SizeIs(3));
  for (const EqualContents& equal : plan->equal) EXPECT_THAT(EqualFiles(equal), ElementsAre(0, 1));
}

TEST_F(MergePlanTest, AStrategyTellsBoxesAndReplicas) {
  // Columns cut by the low bit; files 0 and 2, and 1 and 3, are replicas.
  Open({Bytes("a", {2, 1}, "ac"), Bytes("a", {2, 1}, "bd"), Bytes("a", {2, 1}, "ac"),
        Bytes("a", {2, 1}, "bd")});
  const auto plan = Slices({{"a", MakeLayout({2, 2}, {{-1, 0}})}});
  EXPECT_EQ(Written(plan), Bytes("a", {2, 2}, "abcd"));
  ASSERT_THAT(plan->equal, SizeIs(2));
  EXPECT_THAT(EqualFiles(plan->equal[0]), ElementsAre(0, 2));
  EXPECT_THAT(EqualFiles(plan->equal[1]), ElementsAre(1, 3));
}

TEST_F(MergePlanTest, CopiesOfTheOptimizerFollowAndOthersHaveToBeEqual) {
  Open({Bytes("adam_m.a", {1}, "m") + Bytes("step", {1}, "1"),
        Bytes("adam_m.a", {1}, "n") + Bytes("step", {1}, "1")});
  const auto plan = Slices({{"a", MakeLayout({2}, {{0}})}});
  EXPECT_EQ(Written(plan), Bytes("adam_m.a", {2}, "mn") + Bytes("step", {1}, "1"));
  ASSERT_THAT(plan->equal, SizeIs(1));
  EXPECT_EQ(plan->equal[0].name, "step");
}

TEST_F(MergePlanTest, UnevenRowsAndFields) {
  Open({Bytes("a", {1, 1}, "a"), Bytes("a", {3, 1}, "bcd")});
  ParameterLayout uneven = MakeLayout({2}, {{0, -1}});
  uneven.param_split_shape = {{1, 3}};
  EXPECT_EQ(Written(Slices({{"a", uneven}})), Bytes("a", {4, 1}, "abcd"));
  uneven.param_split_shape = {{3, 1}};
  EXPECT_EQ(Slices({{"a", uneven}}).status().code(), StatusCode::kMismatch);
  uneven.param_split_shape = {{1, 1, 2}};
  EXPECT_EQ(Slices({{"a", uneven}}).status().code(), StatusCode::kMismatch);
  uneven.param_split_shape = {{-1, 5}};
  EXPECT_EQ(Slices({{"a", uneven}}).status().code(), StatusCode::kMismatch);

  // Two fields of a row each: those of both files alternate.
  Open({Bytes("a", {2, 1}, "ac"), Bytes("a", {2, 1}, "bd")});
  ParameterLayout fields = MakeLayout({2}, {{0, -1}});
  fields.field = 2;
  EXPECT_EQ(Written(Slices({{"a", fields}})), Bytes("a", {4, 1}, "abcd"));
  fields.field = 3;
  EXPECT_EQ(Slices({{"a", fields}}).status().code(), StatusCode::kMismatch);
}

TEST_F(MergePlanTest, SlicesThatDoNotFitAreRefused) {
  const std::pair<std::string, std::string> rows[] = {
      {Bytes("a", {1, 2}, "ab"), Bytes("a", {1, 1}, "c")},                  // other columns
      {Bytes("a", {2}, "ab"), Bytes("a", {1, 1}, "c")},                     // other dimensions
      {Bytes("a", {1}, "a"), TensorValue("a", "UInt8", {1}, "b")},          // dtype
      {Bytes("a", {1}, "a"), Bytes("b", {1}, "b")},                         // name
      {Bytes("a", {1}, "a"), Bytes("a", {1}, "b") + Bytes("b", {1}, "b")},  // one more
      {Bytes("a", {}, "a"), TensorValue("a", "UInt8", {}, "b")},            // scalars
      {Bytes("a", {1}, "a"), TensorValue("a", "str", {0}, std::string("h\0\0\0", 4))},
  };
  for (const auto& [first, second] : rows) {
    Open({first, second});
    EXPECT_EQ(Slices().status().code(), StatusCode::kMismatch);
  }
}

TEST_F(MergePlanTest, AStrategyOfOtherDevicesIsRefused) {
  Open({Bytes("a", {1}, "a"), Bytes("a", {1}, "b")});
  EXPECT_EQ(Slices({{"a", MakeLayout({4}, {{0}})}}).status().code(), StatusCode::kMismatch);
  auto strategy = CheckedStrategy::FromStageFiles(
      "stages", {ParsedStrategy("0.ckpt", 0, {{"a", MakeLayout({2}, {{0}})}}),
                 ParsedStrategy("1.ckpt", 1, {{"b", MakeLayout({2}, {{0}})}})});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(PlanSlices(Files(), &*strategy).status().code(), StatusCode::kMismatch);
}

TEST_F(MergePlanTest, SegmentsAreAsFirstSeen) {
  Open({Bytes("a", {1}, "a") + Bytes("b", {1}, "b"),
        Bytes("c", {2, 1}, "cd") + Bytes("b", {1}, "b")});
  const auto plan = Segments();
  EXPECT_EQ(Written(plan), Bytes("a", {1}, "a") + Bytes("b", {1}, "b") + Bytes("c", {2, 1}, "cd"));
  ASSERT_THAT(plan->equal, SizeIs(1));
  EXPECT_EQ(plan->equal[0].name, "b");
  EXPECT_THAT(EqualFiles(plan->equal[0]), ElementsAre(0, 1));
}

TEST_F(MergePlanTest, SegmentsThatDisagreeAreRefused) {
  for (const std::string& other :
       {Bytes("b", {2}, "bb"), TensorValue("b", "UInt8", {1}, "b"), Bytes("b", {1, 1}, "b")}) {
    Open({Bytes("b", {1}, "b"), other});
    EXPECT_EQ(Segments().status().code(), StatusCode::kMismatch);
  }
}

TEST_F(MergePlanTest, OnlyChosenParametersAreLookedAt) {
  Open({Bytes("a", {1}, "a") + Bytes("x", {1}, "x"), Bytes("a", {1}, "b") + Bytes("x", {2}, "xy")});
  choice_ = {{"a"}, {}, {}};
  EXPECT_EQ(Written(Slices()), Bytes("a", {2}, "ab"));
  choice_ = {{"none"}, {}, {}};
  EXPECT_EQ(Slices().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Segments().status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reshard

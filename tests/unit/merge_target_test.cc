// Which bytes of which files a merged file is made of, and which have to be the same.
#include "src/mindspore/merge_target.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/mindspore/strategy_tables.h"
#include "src/write/gather.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::merge_target_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string Bytes(const std::string& name, const std::vector<int64_t>& dims,
                  const std::string& content) {
  return TensorValue(name, "Int8", dims, content);
}

class MergeTargetTest : public testing::Test {
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

  Result<std::unique_ptr<MergeTarget>> Slices() { return MergeSlices(Files(), nullptr); }
  Result<std::unique_ptr<MergeTarget>> Slices(const std::vector<NamedLayout>& layouts) {
    const auto strategy = StrategyTables::FromFile(ParsedStrategy("strategy.ckpt", 0, layouts));
    EXPECT_TRUE(strategy.ok()) << strategy.status().message();
    return MergeSlices(Files(), &*strategy);
  }
  Result<std::unique_ptr<MergeTarget>> Segments() { return MergeSegments(Files()); }

  // The bytes of the file that is planned.
  std::string Written(const Result<std::unique_ptr<MergeTarget>>& target) {
    if (!target.ok()) return target.status().message();
    PlanFindings findings;
    const auto plan = (*target)->Plan(0, findings);
    if (!plan.ok()) return plan.status().message();
    EXPECT_EQ(plan->path, "out.ckpt");
    std::string bytes(plan->size, '?');
    const Status filled =
        FillTarget(files_, *plan, 0, std::as_writable_bytes(std::span(bytes)), nullptr, nullptr);
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

TEST_F(MergeTargetTest, SlicesAreRowsInTheOrderOfTheFiles) {
  Open({Bytes("a", {1, 2}, "ab"), Bytes("a", {2, 2}, "cdef"), Bytes("a", {0, 2}, "")});
  const auto target = Slices();
  EXPECT_EQ(Written(target), Bytes("a", {3, 2}, "abcdef"));
  EXPECT_THAT((*target)->equal(), IsEmpty());
}

TEST_F(MergeTargetTest, ScalarsTextsAndMapsAreTakenOnceAndHaveToBeEqual) {
  const std::string rest =
      Bytes("s", {}, "s") + TensorValue("t", "str", {0}, std::string("h\0\0\0", 4)) +
      MapValue("m", {TensorMessage("int32", {1}, "keys"), TensorMessage("int32", {1}, "vals"),
                     TensorMessage("int32", {1}, "stat")});
  Open({Bytes("a", {1}, "a") + rest, rest + Bytes("a", {1}, "b")});
  const auto target = Slices();
  EXPECT_EQ(Written(target), Bytes("a", {2}, "ab") + rest);
  ASSERT_TRUE(target.ok());
  const std::vector<EqualContents>& equal = (*target)->equal();
  ASSERT_THAT(equal, SizeIs(3));
  for (const EqualContents& one : equal) EXPECT_THAT(EqualFiles(one), ElementsAre(0, 1));
}

TEST_F(MergeTargetTest, AStrategyTellsBoxesAndReplicas) {
  // Columns cut by the low bit; files 0 and 2, and 1 and 3, are replicas.
  Open({Bytes("a", {2, 1}, "ac"), Bytes("a", {2, 1}, "bd"), Bytes("a", {2, 1}, "ac"),
        Bytes("a", {2, 1}, "bd")});
  const auto target = Slices({{"a", MakeLayout({2, 2}, {{-1, 0}})}});
  EXPECT_EQ(Written(target), Bytes("a", {2, 2}, "abcd"));
  ASSERT_TRUE(target.ok());
  const std::vector<EqualContents>& equal = (*target)->equal();
  ASSERT_THAT(equal, SizeIs(2));
  EXPECT_THAT(EqualFiles(equal[0]), ElementsAre(0, 2));
  EXPECT_THAT(EqualFiles(equal[1]), ElementsAre(1, 3));
}

TEST_F(MergeTargetTest, CopiesOfTheOptimizerFollowAndOthersHaveToBeEqual) {
  Open({Bytes("adam_m.a", {1}, "m") + Bytes("step", {1}, "1"),
        Bytes("adam_m.a", {1}, "n") + Bytes("step", {1}, "1")});
  const auto target = Slices({{"a", MakeLayout({2}, {{0}})}});
  EXPECT_EQ(Written(target), Bytes("adam_m.a", {2}, "mn") + Bytes("step", {1}, "1"));
  ASSERT_TRUE(target.ok());
  const std::vector<EqualContents>& equal = (*target)->equal();
  ASSERT_THAT(equal, SizeIs(1));
  EXPECT_EQ(equal[0].name, "step");
}

TEST_F(MergeTargetTest, UnevenRowsAndFields) {
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

TEST_F(MergeTargetTest, SlicesThatDoNotFitAreRefused) {
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

TEST_F(MergeTargetTest, AStrategyOfOtherDevicesIsRefused) {
  Open({Bytes("a", {1}, "a"), Bytes("a", {1}, "b")});
  EXPECT_EQ(Slices({{"a", MakeLayout({4}, {{0}})}}).status().code(), StatusCode::kMismatch);
  auto strategy = StrategyTables::FromStageFiles(
      "stages", {ParsedStrategy("0.ckpt", 0, {{"a", MakeLayout({2}, {{0}})}}),
                 ParsedStrategy("1.ckpt", 1, {{"b", MakeLayout({2}, {{0}})}})});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(MergeSlices(Files(), &*strategy).status().code(), StatusCode::kMismatch);
}

TEST_F(MergeTargetTest, SegmentsAreAsFirstSeen) {
  Open({Bytes("a", {1}, "a") + Bytes("b", {1}, "b"),
        Bytes("c", {2, 1}, "cd") + Bytes("b", {1}, "b")});
  const auto target = Segments();
  EXPECT_EQ(Written(target),
            Bytes("a", {1}, "a") + Bytes("b", {1}, "b") + Bytes("c", {2, 1}, "cd"));
  ASSERT_TRUE(target.ok());
  const std::vector<EqualContents>& equal = (*target)->equal();
  ASSERT_THAT(equal, SizeIs(1));
  EXPECT_EQ(equal[0].name, "b");
  EXPECT_THAT(EqualFiles(equal[0]), ElementsAre(0, 1));
}

TEST_F(MergeTargetTest, SegmentsThatDisagreeAreRefused) {
  for (const std::string& other :
       {Bytes("b", {2}, "bb"), TensorValue("b", "UInt8", {1}, "b"), Bytes("b", {1, 1}, "b")}) {
    Open({Bytes("b", {1}, "b"), other});
    EXPECT_EQ(Segments().status().code(), StatusCode::kMismatch);
  }
}

TEST_F(MergeTargetTest, OnlyChosenParametersAreLookedAt) {
  Open({Bytes("a", {1}, "a") + Bytes("x", {1}, "x"), Bytes("a", {1}, "b") + Bytes("x", {2}, "xy")});
  choice_ = {{"a"}, {}, {}};
  EXPECT_EQ(Written(Slices()), Bytes("a", {2}, "ab"));
}

}  // namespace
}  // namespace reshard::merge_target_test

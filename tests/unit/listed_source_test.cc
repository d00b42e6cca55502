// A source that states all of its tensors one by one: its files hold nothing but parts of them,
// under names of their own, several in a file. Held against one file of the full tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "src/io/source_files.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/source_totals.h"
#include "src/source/listed_placement.h"
#include "src/source/part_list.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "src/verify/checkpoint_contents.h"
#include "src/write/gather.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::listed_source_test {
namespace {

using testing::ElementsAre;

// Files, and what is in them by `placement`.
class TestSource {
 public:
  explicit TestSource(const std::vector<std::string>& files) {
    for (const std::string& bytes : files) {
      const auto rank = static_cast<int64_t>(ranks_.files.size());
      ranks_.files.emplace(
          rank, files_.Add(folder_.Write("part" + std::to_string(rank) + ".ckpt", bytes)));
    }
  }

  const Source& Whole() { return Placed(std::make_unique<ListedPlacement>(ranks_.files)); }
  const Source& Listed(PartList parts) {
    return Placed(std::make_unique<ListedPlacement>(ranks_, std::move(parts)));
  }

  // The bytes of a file of a target, of full tensors where there is no strategy.
  std::string Written(const Strategy* target_strategy, int64_t rank) {
    const ConversionRule rule(nullptr, target_strategy);
    const MindSporeTarget target(*source_, rule, "", Selection::Unmatched::kCopy);
    PlanFindings findings;
    const auto plan = target.Plan(rank, findings);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok()) return "";
    std::string bytes(plan->size, '?');
    const Status filled =
        FillTarget(files_, *plan, 0, std::as_writable_bytes(std::span(bytes)), nullptr, nullptr);
    EXPECT_TRUE(filled.ok()) << filled.message();
    return bytes;
  }

  // Name, shape and digest of each tensor.
  std::vector<std::string> Contents() {
    const ConversionRule rule(nullptr, nullptr);
    const SharedWork work{1, std::stop_token(), {}};
    PlanFindings findings;
    const auto tensors = ListTensors(*source_, rule, work, findings);
    EXPECT_TRUE(tensors.ok()) << tensors.status().message();
    const auto contents = ReadContents(*source_, nullptr, ParameterChoice(), *tensors, false, work);
    EXPECT_TRUE(contents.ok()) << contents.status().message();
    std::vector<std::string> texts;
    for (size_t i = 0; i < tensors->size(); ++i) {
      const HeldValue& value = contents->values[i].front();
      texts.push_back((*tensors)[i].name + " " + ToString(value.shape) + " " +
                      std::to_string(value.digest.high) + " " + std::to_string(value.digest.low));
    }
    return texts;
  }

  Findings::Totals Totals() {
    const ConversionRule rule(nullptr, nullptr);
    const ParameterChoice choice;
    TotalsLimits limits{8, 100};
    const auto totals = CountParameters(*source_, rule, choice, limits, std::stop_token());
    EXPECT_TRUE(totals.ok()) << totals.status().message();
    return totals.ok() ? totals->all : Findings::Totals();
  }

 private:
  const Source& Placed(std::unique_ptr<const Placement> placement) {
    placement_ = std::move(placement);
    return source_.emplace(files_, tables_, *placement_);
  }

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  TableCache tables_{files_, size_t{1} << 20};
  RankedFiles ranks_;
  std::unique_ptr<const Placement> placement_;
  std::optional<Source> source_;
};

// "adam_m.w" and "w" of [2, 4], "b" of [2].
constexpr char kState[] = "0123456789abcdef";
constexpr char kWeight[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
constexpr char kBias[] = "stuvwxyz";

class ListedSourceTest : public testing::Test {
 protected:
  ListedSourceTest()
      : whole_({TensorValue("adam_m.w", "Float16", {2, 4}, kState) +
                TensorValue("b", "Float32", {2}, kBias) +
                TensorValue("w", "Float32", {2, 4}, kWeight)}),
        // The second row of "w" lies before the first one.
        listed_({TensorValue("0", "Float32", {1, 4}, std::string_view(kWeight).substr(16)) +
                     TensorValue("1", "Float32", {1, 4}, std::string_view(kWeight).substr(0, 16)) +
                     TensorValue("w", "Float16", {1, 4}, std::string_view(kState).substr(8)),
                 TensorValue("0", "Float32", {2}, kBias) +
                     TensorValue("w", "Float16", {1, 4}, std::string_view(kState).substr(0, 8))}) {
    whole_.Whole();
    listed_.Listed(Parts());
  }

  // The file tells the dtype of "b".
  static PartList Parts() {
    PartListBuilder parts;
    const Box first = {{0, 0}, {1, 4}};
    const Box second = {{1, 0}, {1, 4}};
    const size_t weight = parts.AddTensor("w", {2, 4}, DType::kFloat32);
    parts.AddPart(weight, second, {1, 4}, {0, "0"});
    parts.AddPart(weight, first, {1, 4}, {0, "1"});
    const size_t state = parts.AddTensor("adam_m.w", {2, 4}, DType::kFloat16);
    parts.AddPart(state, first, {1, 4}, {1, "w"});
    parts.AddPart(state, second, {1, 4}, {0, "w"});
    const size_t vector = parts.AddTensor("b", {2});
    parts.AddPart(vector, {{0}, {2}}, {2}, {1, "0"});
    return std::move(parts).Finish();
  }

  TestSource whole_;
  TestSource listed_;
};

TEST_F(ListedSourceTest, BecomesWholeTensors) {
  EXPECT_EQ(listed_.Written(nullptr, 0), whole_.Written(nullptr, 0));
}

TEST_F(ListedSourceTest, IsCutByAStrategyAndCopiedWholeWhereThatHasNoLayout) {
  const auto strategy =
      StrategyTables::FromFile(ParsedStrategy("target", 0, {{"w", MakeLayout({2}, {{-1, 0}})}}));
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  for (const int64_t rank : {0, 1}) {
    EXPECT_EQ(listed_.Written(&*strategy, rank), whole_.Written(&*strategy, rank)) << rank;
  }
}

TEST_F(ListedSourceTest, HasTheContentsOfItsTensors) {
  const auto contents = listed_.Contents();
  EXPECT_EQ(contents.size(), 3);
  EXPECT_EQ(contents, whole_.Contents());
}

TEST_F(ListedSourceTest, HasAsManyElements) {
  EXPECT_EQ(listed_.Totals().weights, 10);
  EXPECT_EQ(listed_.Totals().optimizer, 8);
  EXPECT_EQ(listed_.Totals().weights, whole_.Totals().weights);
  EXPECT_EQ(listed_.Totals().optimizer, whole_.Totals().optimizer);
}

}  // namespace
}  // namespace reshard::listed_source_test

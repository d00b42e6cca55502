// Lists of ranks that hold the same weights, alone and against layouts.

#include "src/mindspore/holder_groups.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "src/mindspore/conversion_rule.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::holder_groups_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Strategy MakeStrategy(const std::vector<NamedLayout>& layouts) {
  return StrategyTables::FromFile(ParsedStrategy("src.ckpt", 0, layouts)).value();
}

TEST(HolderGroupsTest, TakesEachListOnce) {
  const auto groups =
      HolderGroups::Make({{"1.pb", {1, 5}}, {"0.pb", {0, 4}}, {"4.pb", {0, 4}}, {"7.pb", {7}}});
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  EXPECT_EQ(groups->lists().size(), 3U);
  EXPECT_THAT(groups->HoldersLike(4), ElementsAre(0, 4));
  EXPECT_THAT(groups->HoldersLike(7), ElementsAre(7));
  EXPECT_THAT(groups->HoldersLike(2), IsEmpty());
}

TEST(HolderGroupsTest, RejectsListsThatDiffer) {
  const auto groups = HolderGroups::Make({{"0.pb", {0, 4}}, {"4.pb", {0, 2, 4}}});
  ASSERT_FALSE(groups.ok());
  EXPECT_EQ(groups.status().code(), StatusCode::kMismatch);
  EXPECT_EQ(groups.status().message(),
            "rank 0 is in two lists of ranks that hold the same weights, [0, 2, 4] in 4.pb and "
            "[0, 4] in 0.pb; do the group_info files come from one run?");
}

struct Row {
  const char* name;
  std::vector<int64_t> ranks;
  std::string message;  // empty: it fits
};

void Check(const std::vector<Row>& rows, const Strategy& strategy) {
  const ConversionRule rule(&strategy, nullptr);
  for (const Row& row : rows) {
    const auto groups = HolderGroups::Make({{"0.pb", row.ranks}});
    ASSERT_TRUE(groups.ok()) << row.name;
    const Status status = groups->CheckAgainst(rule);
    EXPECT_EQ(status.ok(), row.message.empty()) << row.name << status.message();
    if (row.message.empty()) continue;
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << row.name;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.name;
  }
}

TEST(HolderGroupsTest, HasToFitTheLayouts) {
  // Two replicas of four shards; v is cut in two over other ranks.
  Check(
      {{"replicas", {1, 5}, ""},
       {"one rank", {3}, ""},
       {"other shards",
        {0, 1},
        "0.pb: the ranks 0 and 1 are in one list of ranks that hold the same weights [0, 1], but "
        "by src.ckpt they hold different shards of parameter \"w\"; is it from another run?"},
       {"ranks beyond", {4, 8}, "0.pb: expected ranks from 0 to 7 (by src.ckpt), found [4, 8]"}},
      MakeStrategy({{"w", MakeLayout({2, 4}, {{0, -1}})}, {"v", MakeLayout({2, 4}, {{-1, -1}})}}));
}

TEST(HolderGroupsTest, OptimizerShardsDiffer) {
  ParameterLayout sharded = MakeLayout({4}, {{-1, -1}});
  sharded.opt_weight_shard_step = 1;
  sharded.opt_weight_shard_size = 2;
  Check({{"halves", {0, 1}, "different shards of parameter \"w\""}},
        MakeStrategy({{"w", sharded}}));
}

TEST(HolderGroupsTest, StagesDiffer) {
  const ParameterLayout layout = MakeLayout({2}, {{-1}});
  Check({{"of one stage", {2, 3}, ""}, {"of two stages", {1, 2}, "different pipeline stages"}},
        MakeStrategy({{"0-w", layout}, {"1-w", layout}}));
}

TEST(HolderGroupsTest, WithoutStrategyAnyListFits) {
  const ConversionRule rule(nullptr, nullptr);
  EXPECT_TRUE(HolderGroups::Make({{"0.pb", {0, 900}}})->CheckAgainst(rule).ok());
}

}  // namespace
}  // namespace reshard::holder_groups_test

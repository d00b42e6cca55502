// Which rank keeps a shard without redundancy. The expected names are those of MindSpore 2.10.0
// (remove_param_redundancy) for the same layouts.
#include "src/mindspore/single_holders.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "src/mindspore/strategy_tables.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::single_holders_test {
namespace {

using testing::ElementsAre;

ParameterLayout Sharded(ParameterLayout layout, int64_t step, int64_t size) {
  layout.opt_weight_shard_step = step;
  layout.opt_weight_shard_size = size;
  return layout;
}

Strategy StrategyOf(const std::vector<NamedLayout>& layouts) {
  const auto strategy = StrategyTables::FromFile(ParsedStrategy("s", 0, layouts));
  EXPECT_TRUE(strategy.ok()) << strategy.status().message();
  return *strategy;
}

// Returns the names that a rank keeps, in the order of `layouts`.
std::vector<std::string> KeptBy(const std::vector<NamedLayout>& layouts, int64_t rank,
                                const ParameterChoice& choice = {}) {
  const Strategy strategy = StrategyOf(layouts);
  const auto holders = SingleHolders::Make(strategy.stages()[0], choice);
  EXPECT_TRUE(holders.ok()) << holders.status().message();
  const std::vector<bool> kept = holders->KeptBy(rank);
  std::vector<std::string> names;
  for (const NamedLayout& named : layouts) {
    const auto number = holders->NumberOf(named.name);
    if (!number || kept[*number]) names.push_back(named.name);
  }
  return names;
}

TEST(SingleHoldersTest, RanksTakeTurnsAsInMindSpore) {
  const ParameterLayout rows = MakeLayout({2, 2}, {{1, -1}});
  const ParameterLayout columns = MakeLayout({2, 2}, {{0, -1}});
  const ParameterLayout whole = MakeLayout({2, 2}, {{-1}});
  const ParameterLayout sharded = Sharded(MakeLayout({4}, {{-1, -1}}), 1, 2);
  const std::vector<NamedLayout> layouts = {
      {"B", whole},     {"a.v", rows},
      {"a.w", rows},    {"b.w", columns},
      {"c", whole},     {"d", MakeLayout({4}, {{-1}})},
      {"e", whole},     {"h.w", sharded},
      {"i.w", sharded}, {"g.w", Sharded(rows, 1, -1)},  // no two ranks hold the same
  };
  EXPECT_THAT(KeptBy(layouts, 0), ElementsAre("B", "a.v", "b.w", "i.w", "g.w"));
  EXPECT_THAT(KeptBy(layouts, 1), ElementsAre("a.w", "b.w", "c", "i.w", "g.w"));
  EXPECT_THAT(KeptBy(layouts, 2), ElementsAre("a.v", "d", "h.w", "g.w"));
  EXPECT_THAT(KeptBy(layouts, 3), ElementsAre("a.w", "e", "h.w", "g.w"));
}

TEST(SingleHoldersTest, SortsByNewNames) {
  const ParameterLayout whole = MakeLayout({2}, {{-1}});
  const std::vector<NamedLayout> layouts = {{"a", whole}, {"b", whole}, {"c", whole}};
  EXPECT_THAT(KeptBy(layouts, 0), ElementsAre("a", "c"));
  EXPECT_THAT(KeptBy(layouts, 0, ParameterChoice({}, {}, {.names = {{"a", "z"}}})),
              ElementsAre("a", "b"));
}

TEST(SingleHoldersTest, CountsParametersThatAreNotWritten) {
  const ParameterLayout whole = MakeLayout({2}, {{-1}});
  const std::vector<NamedLayout> layouts = {{"a", whole}, {"b", whole}, {"c", whole}};
  EXPECT_THAT(KeptBy(layouts, 1, ParameterChoice({}, {"a"}, {})), ElementsAre("b"));
}

TEST(SingleHoldersTest, EachRankKeepsParametersWithoutALayout) {
  const Strategy strategy = StrategyOf({{"a", MakeLayout({2}, {{-1}})}});
  const auto holders = SingleHolders::Make(strategy.stages()[0], {});
  ASSERT_TRUE(holders.ok());
  EXPECT_FALSE(holders->NumberOf("b").has_value());
}

}  // namespace
}  // namespace reshard::single_holders_test

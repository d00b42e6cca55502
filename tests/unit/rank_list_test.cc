// Least lists of source ranks, worked out by hand.
#include "src/mindspore/rank_list.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/strategy_bytes.h"

namespace reshard::rank_list_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Layouts = std::vector<NamedLayout>;
using Ranks = std::vector<int64_t>;

Strategy MakeStrategy(const std::string& path, const Layouts& layouts) {
  return StrategyTables::FromFile(ParsedStrategy(path, 0, layouts)).value();
}

ParameterLayout OptimizerSharded(ParameterLayout layout, int64_t step, int64_t size) {
  layout.opt_weight_shard_step = step;
  layout.opt_weight_shard_size = size;
  return layout;
}

ParameterLayout Shaped(ParameterLayout layout, Shape shape) {
  layout.tensor_shape = std::move(shape);
  return layout;
}

// No layouts: no strategy on that side.
Result<Ranks> List(const Layouts& source, const Layouts& target, int64_t rank) {
  std::optional<Strategy> source_strategy;
  std::optional<Strategy> target_strategy;
  if (!source.empty()) source_strategy = MakeStrategy("src.ckpt", source);
  if (!target.empty()) target_strategy = MakeStrategy("dst.ckpt", target);
  return RankList(ConversionRule(source_strategy ? &*source_strategy : nullptr,
                                 target_strategy ? &*target_strategy : nullptr),
                  rank);
}

struct ListCase {
  const char* name;
  Layouts source;
  Layouts target;
  std::vector<Ranks> lists;  // of target ranks 0, 1 and so on
};

TEST(RankListTest, IsTheLeastThatCovers) {
  const ParameterLayout rows4 = MakeLayout({4}, {{0, -1}});
  const ParameterLayout rows2 = MakeLayout({2}, {{0, -1}});
  const std::vector<ListCase> rows = {
      {"the same layout", {{"w", rows4}}, {{"w", rows4}}, {{0}, {1}, {2}, {3}}},
      // Local rank l % n is always there, for what is copied.
      {"4 to 2", {{"w", rows4}}, {{"w", rows2}}, {{0, 1}, {1, 2, 3}}},
      {"2 to 4", {{"w", rows2}}, {{"w", rows4}}, {{0}, {0, 1}, {0, 1}, {1}}},
      {"6 to 4, where no count divides the other",
       {{"w", MakeLayout({6}, {{0}})}},
       {{"w", MakeLayout({4}, {{0}})}},
       {{0, 1}, {1, 2}, {2, 3, 4}, {3, 4, 5}}},
      {"rows to columns",
       {{"w", rows2}},
       {{"w", MakeLayout({3}, {{-1, 0}})}},
       {{0, 1}, {0, 1}, {0, 1}}},
      {"no source strategy", {}, {{"w", rows2}}, {{0}, {0}}},
      {"no target strategy", {{"w", rows4}}, {}, {{0, 1, 2, 3}}},
      {"replicas: the one that shares the most coordinates with l % n",
       {{"w", MakeLayout({2, 2}, {{0, -1}})}},  // ranks 0 and 2 hold the first half
       {{"w", MakeLayout({4}, {{-1, -1}})}},
       {{0, 1}, {0, 1}, {2, 3}, {2, 3}}},
      {"replicas of the whole", {{"w", MakeLayout({4}, {{-1}})}}, {}, {{0}}},
      {"optimizer sharding over the free axis",
       {{"w", OptimizerSharded(MakeLayout({2, 2}, {{1, -1}}), 1, 2)}},  // rank r holds quarter r
       {{"w", rows2}},
       {{0, 1}, {1, 2, 3}}},
      {"optimizer sharding over the inner part of an axis",
       {{"w", OptimizerSharded(MakeLayout({4}, {{-1}}), 1, 2)}},  // rank r holds half r % 2
       {{"w", MakeLayout({4}, {{-1}})}},
       {{0, 1}, {0, 1}, {2, 3}, {2, 3}}},
      {"one dimension cut by two axes",
       {{"w", MakeLayout({2, 3}, {{1, 0}, {-1}})}},  // rank r holds sixth r
       {{"w", rows2}},
       {{0, 1, 2}, {1, 3, 4, 5}}},
      {"the inner axis first",
       {{"w", MakeLayout({2, 2}, {{0, 1}, {-1}})}},  // ranks 0, 2, 1, 3
       {{"w", rows2}},
       {{0, 2}, {1, 3}}},
      {"several parameters: all their ranks",
       {{"a", MakeLayout({2, 2}, {{0}})}, {"b", MakeLayout({2, 2}, {{1}})}},
       {{"a", MakeLayout({1}, {{-1}})}, {"b", MakeLayout({1}, {{-1}})}},
       {{0, 1, 2}}},
      {"what one strategy lacks is copied",
       {{"a", rows2}, {"b", MakeLayout({2}, {{0}})}},
       {{"c", rows2}, {"a", rows2}},
       {{0}, {1}}},
      {"pipelines: the stages that hold what the target stage has",
       {{"0-a", rows2}, {"1-b", rows2}},
       {{"0-b", rows2}, {"1-a", rows2}},
       {{2}, {3}, {0}, {1}}},
      {"pipelines: what two stages have comes from the lower one",
       {{"0-a", rows2}, {"0-s", rows2}, {"1-s", rows2}},
       {{"0-a", MakeLayout({1}, {{-1, -1}})}, {"1-s", MakeLayout({1}, {{-1, -1}})}},
       {{0, 1}, {0, 1, 2}}},
      {"one axis map against several of one dimension",
       {{"w", MakeLayout({2, 2}, {{1, 0}})}},
       {{"w", MakeLayout({2}, {{0}})}},
       {{0, 1}, {1, 2, 3}}},
      {"two maps of one dimension each, by the shape that JSON states",
       {{"w", Shaped(MakeLayout({2, 2}, {{1, 0}}), {8})}},
       {{"w", MakeLayout({2, 1}, {{1, 0}})}},
       {{0, 1}, {1, 2, 3}}},
      {"two maps that look like two dimensions are taken for such",
       {{"w", MakeLayout({2, 2}, {{1, 0}})}},
       {{"w", MakeLayout({2, 1}, {{0, 1}})}},  // columns by the first axis
       {{0, 2}, {1, 3}}},
  };
  for (const ListCase& row : rows) {
    for (size_t rank = 0; rank < row.lists.size(); ++rank) {
      const auto list = List(row.source, row.target, static_cast<int64_t>(rank));
      ASSERT_TRUE(list.ok()) << row.name << ": " << list.status().message();
      EXPECT_EQ(*list, row.lists[rank]) << row.name << ", target rank " << rank;
    }
    const auto beyond = List(row.source, row.target, static_cast<int64_t>(row.lists.size()));
    EXPECT_EQ(beyond.status().code(), StatusCode::kInvalidArgument) << row.name;
  }
}

// A stage of 8 devices that the file says is stage 3, converted alone.
TEST(RankListTest, OneStageAloneCountsItsRanksFromItsOwn) {
  const Strategy source =
      StrategyTables::FromFile(ParsedStrategy("src.ckpt", 3, {{"a", MakeLayout({8}, {{0}})}}))
          .value();
  const Strategy target =
      MakeStrategy("dst.ckpt", {{"a", MakeLayout({4}, {{0}})}, {"b", MakeLayout({4}, {{0}})}});
  EXPECT_EQ(*RankList(ConversionRule(&source, &target), 0), Ranks({24, 25}));
  EXPECT_EQ(*RankList(ConversionRule(&source, &target), 3), Ranks({27, 30, 31}));
}

TEST(RankListTest, NamesTheTargetRanks) {
  const Layouts layouts = {{"w", MakeLayout({4}, {{0}})}};
  for (const int64_t rank : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    const auto list = List(layouts, layouts, rank);
    EXPECT_EQ(list.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(list.status().message(),
                AllOf(HasSubstr("rank " + std::to_string(rank) + " is not a target rank"),
                      HasSubstr("ranks 0 to 3")));
  }
}

TEST(RankListTest, LayoutsThatDoNotFitAreNamed) {
  const auto list =
      List({{"w", MakeLayout({2, 2}, {{0}, {1}})}}, {{"w", MakeLayout({2}, {{0, -1, -1}})}}, 0);
  EXPECT_EQ(list.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(list.status().message(), HasSubstr("dst.ckpt: parameter \"w\": the tensor map "
                                                 "[0, -1, -1] does not fit a tensor of 2"));
}

}  // namespace
}  // namespace reshard::rank_list_test

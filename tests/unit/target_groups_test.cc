// Which target files advance together.
#include "src/convert/write_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reshard {
namespace {

using testing::ElementsAre;

PlanReport Reading(const std::vector<std::vector<int64_t>>& ranks) {
  PlanReport plan;
  for (const auto& of_target : ranks) plan.targets.push_back({0, "", 0, 0, 0, of_target});
  return plan;
}

// One part for each of so many targets.
std::vector<TargetShare> Whole(size_t targets) {
  std::vector<TargetShare> parts;
  for (size_t i = 0; i < targets; ++i) parts.push_back({.target = i, .part = {}});
  return parts;
}

TEST(TargetGroups, AreFilesOfTheSameSources) {
  const PlanReport plan = Reading({{0, 1}, {2, 3}, {0, 1}, {0}, {2, 3}, {0, 1}});
  EXPECT_THAT(GroupParts(plan, Whole(6), 64),
              ElementsAre(ElementsAre(0, 2, 5), ElementsAre(1, 4), ElementsAre(3)));
}

TEST(TargetGroups, AreNotLargerThanAllowed) {
  const PlanReport plan = Reading({{0}, {0}, {1}, {0}, {0}, {0}});
  EXPECT_THAT(GroupParts(plan, Whole(6), 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3, 4), ElementsAre(5)));
  EXPECT_THAT(GroupParts({}, {}, 2), ElementsAre());
}

TEST(TargetGroups, AreOfThePartsThatAreWritten) {
  const PlanReport plan = Reading({{0}, {1}, {0}, {1}});
  const std::vector<TargetShare> parts = {
      {.target = 1, .part = {}}, {.target = 2, .part = {}}, {.target = 3, .part = {}}};
  EXPECT_THAT(GroupParts(plan, parts, 64), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

}  // namespace
}  // namespace reshard

// Which target files advance together.
#include "src/convert/write_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reshard::target_groups_test {
namespace {

using testing::ElementsAre;

WorkList Reading(const std::vector<std::vector<int64_t>>& ranks) {
  WorkList list;
  for (const auto& of_target : ranks) list.targets.push_back({0, "", 0, 0, 0, of_target});
  return list;
}

// One part for each of so many targets.
std::vector<TargetShare> Whole(size_t targets) {
  std::vector<TargetShare> parts;
  for (size_t i = 0; i < targets; ++i) parts.push_back({.target = i, .part = {}});
  return parts;
}

TEST(TargetGroups, AreFilesOfTheSameSources) {
  const WorkList list = Reading({{0, 1}, {2, 3}, {0, 1}, {0}, {2, 3}, {0, 1}});
  EXPECT_THAT(GroupParts(list, Whole(6), 64),
              ElementsAre(ElementsAre(0, 2, 5), ElementsAre(1, 4), ElementsAre(3)));
}

TEST(TargetGroups, AreNotLargerThanAllowed) {
  const WorkList list = Reading({{0}, {0}, {1}, {0}, {0}, {0}});
  EXPECT_THAT(GroupParts(list, Whole(6), 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3, 4), ElementsAre(5)));
  EXPECT_THAT(GroupParts({}, {}, 2), ElementsAre());
}

TEST(TargetGroups, AreOfThePartsThatAreWritten) {
  const WorkList list = Reading({{0}, {1}, {0}, {1}});
  const std::vector<TargetShare> parts = {
      {.target = 1, .part = {}}, {.target = 2, .part = {}}, {.target = 3, .part = {}}};
  EXPECT_THAT(GroupParts(list, parts, 64), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

}  // namespace
}  // namespace reshard::target_groups_test

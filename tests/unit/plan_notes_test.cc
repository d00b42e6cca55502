// Notes of several target ranks, made apart and put together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/plan/plan_notes.h"

namespace reshard {
namespace {

using testing::ElementsAre;

PlanNotes::Parameter Tensor(const std::string& source_name, Shape shape, FileId file) {
  return {.source_name = source_name, .full_shape = std::move(shape), .file = file};
}

PlanNotes::Parameter Copied(Shape shape, FileId file) {
  PlanNotes::Parameter parameter = Tensor("w", std::move(shape), file);
  parameter.copied = true;
  return parameter;
}

TEST(PlanNotesTest, FindsWhatWasFoundEarlier) {
  PlanNotes earlier;
  earlier.parameters["w"] = Tensor("w", {2}, 1);
  PlanNotes notes;
  notes.earlier = &earlier;
  EXPECT_EQ(notes.Find("w"), &earlier.parameters["w"]);
  EXPECT_EQ(notes.Find("b"), nullptr);
  notes.parameters["w"] = Tensor("w", {3}, 2);
  EXPECT_EQ(notes.Find("w"), &notes.parameters["w"]);
}

TEST(PlanNotesTest, TheFirstRankTellsOfATensorThatIsCutAnew) {
  PlanNotes notes;
  PlanNotes next;
  next.parameters["w"] = Tensor("w", {2}, 1);
  next.AddAbsent({"b", "a", "b"});
  ASSERT_TRUE(notes.Append(next));
  next.parameters["w"].file = 2;
  ASSERT_TRUE(notes.Append(next));
  EXPECT_EQ(notes.parameters["w"].file, 1U);
  EXPECT_THAT(notes.absent, ElementsAre("a", "b"));
  next.AddAbsent({"c"});
  ASSERT_TRUE(notes.Append(next));
  EXPECT_THAT(notes.absent, ElementsAre("a", "b", "c"));
}

TEST(PlanNotesTest, TheLastRankTellsOfWhatIsCopied) {
  PlanNotes notes;
  notes.parameters["w"] = Copied({2}, 1);
  PlanNotes next;
  next.parameters["w"] = Copied({3}, 2);
  ASSERT_TRUE(notes.Append(next));
  EXPECT_EQ(notes.parameters["w"], Copied({3}, 2));
}

TEST(PlanNotesTest, ContradictionsAreNotTaken) {
  PlanNotes notes;
  notes.parameters["w"] = Tensor("w", {2}, 1);
  PlanNotes of_shape;
  of_shape.parameters["w"] = Tensor("w", {3}, 2);
  EXPECT_FALSE(notes.Append(of_shape));
  PlanNotes of_dtype;
  of_dtype.parameters["w"] = Tensor("w", {2}, 2);
  of_dtype.parameters["w"].dtype = DType::kInt8;
  EXPECT_FALSE(notes.Append(of_dtype));
  PlanNotes of_name;
  of_name.parameters["w"] = Tensor("v", {2}, 2);
  EXPECT_FALSE(notes.Append(of_name));
  EXPECT_EQ(notes.parameters["w"], Tensor("w", {2}, 1));
}

}  // namespace
}  // namespace reshard

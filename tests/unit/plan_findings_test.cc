// Notes of several target ranks, made apart and put together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/plan/plan_findings.h"

namespace reshard::plan_findings_test {
namespace {

using testing::ElementsAre;

PlanFindings::Parameter Tensor(const std::string& source_name, Shape shape, FileId file) {
  return {.source_name = source_name, .full_shape = std::move(shape), .file = file};
}

PlanFindings::Parameter Copied(Shape shape, FileId file) {
  PlanFindings::Parameter parameter = Tensor("w", std::move(shape), file);
  parameter.copied = true;
  return parameter;
}

TEST(PlanFindingsTest, FindsWhatWasFoundEarlier) {
  PlanFindings earlier;
  earlier.parameters["w"] = Tensor("w", {2}, 1);
  PlanFindings findings;
  findings.earlier = &earlier;
  EXPECT_EQ(findings.Find("w"), &earlier.parameters["w"]);
  EXPECT_EQ(findings.Find("b"), nullptr);
  findings.parameters["w"] = Tensor("w", {3}, 2);
  EXPECT_EQ(findings.Find("w"), &findings.parameters["w"]);
}

TEST(PlanFindingsTest, TheFirstRankTellsOfATensorThatIsCutAnew) {
  PlanFindings findings;
  PlanFindings next;
  next.parameters["w"] = Tensor("w", {2}, 1);
  next.AddAbsent({"b", "a", "b"});
  ASSERT_TRUE(findings.Append(next));
  next.parameters["w"].file = 2;
  ASSERT_TRUE(findings.Append(next));
  EXPECT_EQ(findings.parameters["w"].file, 1U);
  EXPECT_THAT(findings.absent, ElementsAre("a", "b"));
  next.AddAbsent({"c"});
  ASSERT_TRUE(findings.Append(next));
  EXPECT_THAT(findings.absent, ElementsAre("a", "b", "c"));
}

TEST(PlanFindingsTest, TheLastRankTellsOfWhatIsCopied) {
  PlanFindings findings;
  findings.parameters["w"] = Copied({2}, 1);
  PlanFindings next;
  next.parameters["w"] = Copied({3}, 2);
  ASSERT_TRUE(findings.Append(next));
  EXPECT_EQ(findings.parameters["w"], Copied({3}, 2));
}

TEST(PlanFindingsTest, ContradictionsAreNotTaken) {
  PlanFindings findings;
  findings.parameters["w"] = Tensor("w", {2}, 1);
  PlanFindings of_shape;
  of_shape.parameters["w"] = Tensor("w", {3}, 2);
  EXPECT_FALSE(findings.Append(of_shape));
  PlanFindings of_dtype;
  of_dtype.parameters["w"] = Tensor("w", {2}, 2);
  of_dtype.parameters["w"].dtype = DType::kInt8;
  EXPECT_FALSE(findings.Append(of_dtype));
  PlanFindings of_name;
  of_name.parameters["w"] = Tensor("v", {2}, 2);
  EXPECT_FALSE(findings.Append(of_name));
  EXPECT_EQ(findings.parameters["w"], Tensor("w", {2}, 1));
}

}  // namespace
}  // namespace reshard::plan_findings_test

#include "format/mindspore_checkpoint/parameter_grouping.h"

#include <gtest/gtest.h>

#include <string>

namespace reshard {
namespace {

ParsedValue Int8Value(const std::string& tag, uint64_t offset, const Shape& dims,
                      uint64_t content_bytes) {
  return {.message = {offset, 20 + content_bytes},
          .tag = tag,
          .is_map_tensor = false,
          .tensors = {{dims, "Int8", {offset + 20, content_bytes}}}};
}

// Whatever a file says, its index stays within kMaxTableBytes: how many Values until it is full?
TEST(ParameterGroupingTest, EmptyAdjacentValuesAreBounded) {
  ParameterGrouping grouping;
  ParsedValue value = Int8Value("w", 0, {0}, 0);
  size_t accepted = 0;
  Status status;
  for (; status.ok() && accepted < 10'000'000; ++accepted) {
    value.message.offset = 20 * accepted;
    status = grouping.Add(value);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_GT(accepted, 2'000'000U);
  EXPECT_LT(grouping.memory(), kMaxTableBytes + 1024);
  EXPECT_EQ(grouping.arrays().size(), 1U);
}

TEST(ParameterGroupingTest, ParametersAreBounded) {
  ParameterGrouping grouping;
  size_t accepted = 0;
  Status status;
  for (; status.ok() && accepted < 10'000'000; ++accepted) {
    status = grouping.Add(Int8Value("p" + std::to_string(accepted), 20 * accepted, {0}, 0));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_GT(accepted, 300'000U);
  EXPECT_EQ(grouping.arrays().size(), accepted);
}

TEST(ParameterGroupingTest, ManyPartsOfOneByteMakeOneTensor) {
  ParameterGrouping grouping;
  constexpr int64_t kParts = 100'000;
  for (int64_t i = 0; i < kParts; ++i) {
    ASSERT_TRUE(grouping.Add(Int8Value("w", static_cast<uint64_t>(21 * i), {kParts}, 1)).ok());
  }
  const Result<FileTable> table = std::move(grouping).Finish();
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->arrays().size(), 1U);
  EXPECT_EQ(table->arrays()[0].content.size(), static_cast<size_t>(kParts));
  EXPECT_EQ(table->arrays()[0].bytes, static_cast<uint64_t>(kParts));
}

}  // namespace
}  // namespace reshard

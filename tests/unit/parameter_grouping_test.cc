#include "format/mindspore_checkpoint/parameter_grouping.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status_macros.h"

namespace reshard::parameter_grouping_test {
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
  EXPECT_EQ(std::move(grouping).Finish().value()->arrays().size(), 1U);
}

TEST(ParameterGroupingTest, ParametersAreBounded) {
  ParameterGrouping grouping;
  size_t accepted = 0;
  Status status;
  for (; status.ok() && accepted < 10'000'000; ++accepted) {
    status = grouping.Add(Int8Value("p" + std::to_string(accepted), 20 * accepted, {0}, 0));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_GT(accepted, 700'000U);
  EXPECT_EQ(std::move(grouping).Finish().value()->arrays().size(), accepted);
}

TEST(ParameterGroupingTest, ManyPartsOfOneByteMakeOneTensor) {
  ParameterGrouping grouping;
  constexpr int64_t kParts = 100'000;
  for (int64_t i = 0; i < kParts; ++i) {
    ASSERT_TRUE(grouping.Add(Int8Value("w", static_cast<uint64_t>(21 * i), {kParts}, 1)).ok());
  }
  const auto table = std::move(grouping).Finish();
  ASSERT_TRUE(table.ok());
  ASSERT_EQ((*table)->arrays().size(), 1U);
  EXPECT_EQ((*table)->arrays()[0].content.size(), static_cast<size_t>(kParts));
  EXPECT_EQ((*table)->arrays()[0].bytes, static_cast<uint64_t>(kParts));
}

// One after the other, without gaps.
std::vector<ParsedValue> Values(const std::vector<std::pair<std::string, uint64_t>>& names_bytes) {
  std::vector<ParsedValue> values;
  uint64_t offset = 0;
  for (const auto& [name, bytes] : names_bytes) {
    values.push_back(Int8Value(name, offset, {static_cast<int64_t>(bytes)}, bytes));
    offset = values.back().message.end();
  }
  return values;
}

Result<std::shared_ptr<const FileTable>> TableOf(
    const std::vector<ParsedValue>& values,
    const std::shared_ptr<const FileTable>& like = nullptr) {
  ParameterGrouping grouping(like);
  for (const ParsedValue& value : values) RESHARD_RETURN_IF_ERROR(grouping.Add(value));
  return std::move(grouping).Finish();
}

TEST(ParameterGroupingTest, EqualTablesAreMadeOnce) {
  const std::vector<ParsedValue> values = Values({{"a", 1}, {"b", 2}, {"c", 0}});
  const auto first = TableOf(values);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(TableOf(values, *first).value(), *first);
  // A table of a parameter in several Values, or of a MapTensor, is made again, and is equal.
  auto parts = values;
  parts.push_back(parts.front());
  parts.push_back(parts.front());
  parts[3] = Int8Value("d", parts[2].message.end(), {2}, 1);
  parts[4] = Int8Value("d", parts[3].message.end(), {2}, 1);
  const auto split = TableOf(parts);
  ASSERT_TRUE(split.ok()) << split.status().message();
  const auto again = TableOf(parts, *split);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NE(*again, *split);
  EXPECT_EQ(**again, **split);
  EXPECT_EQ((*again)->memory(), (*split)->memory());
}

// Whatever the other file holds, the table is this file's: each prefix of it may be equal.
TEST(ParameterGroupingTest, OtherFilesDoNotMatter) {
  using Model = std::vector<std::pair<std::string, uint64_t>>;
  const std::vector<Model> models = {{{"a", 1}, {"b", 2}, {"c", 3}},
                                     {{"a", 1}, {"b", 2}},
                                     {{"a", 1}, {"b", 2}, {"d", 3}},
                                     {{"a", 1}, {"b", 3}, {"c", 3}},
                                     {{"x", 1}},
                                     {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 0}}};
  for (const Model& model : models) {
    const auto alone = TableOf(Values(model));
    ASSERT_TRUE(alone.ok()) << alone.status().message();
    for (const Model& other : models) {
      const auto like = TableOf(Values(other));
      const auto table = TableOf(Values(model), *like);
      ASSERT_TRUE(table.ok()) << table.status().message();
      EXPECT_EQ(**table, **alone);
      EXPECT_EQ((*table)->memory(), (*alone)->memory());
      EXPECT_EQ((*table)->Find("b") != nullptr, model.size() > 1);
      EXPECT_EQ(*table == *like, model == other);
    }
  }
}

// A scalar is written with dims [0]; so is what goes on with it, which makes it wrong.
TEST(ParameterGroupingTest, ScalarsThatGoOnAreRefusedWhateverOtherFilesHold) {
  std::vector<ParsedValue> values = {Int8Value("s", 0, {0}, 1)};
  const auto scalar = TableOf(values);
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ((*scalar)->arrays()[0].shape, Shape());
  EXPECT_EQ(TableOf(values, *scalar).value(), *scalar);
  values.push_back(Int8Value("s", 21, {0}, 1));
  const Status alone = TableOf(values).status();
  EXPECT_EQ(alone.code(), StatusCode::kCorrupt);
  EXPECT_EQ(TableOf(values, *scalar).status().message(), alone.message());
}

}  // namespace
}  // namespace reshard::parameter_grouping_test

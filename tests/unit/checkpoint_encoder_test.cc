#include "format/mindspore_checkpoint/checkpoint_encoder.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "format/mindspore_checkpoint/checkpoint.pb.h"
#include "tests/support/checkpoint_bytes.h"

namespace reshard::checkpoint_encoder_test {
namespace {

struct HeaderCase {
  const char* name;
  const char* tag;
  DType dtype;
  Shape dims;
  uint64_t content_bytes;
};

class ValueHeaderTest : public testing::TestWithParam<HeaderCase> {};

TEST_P(ValueHeaderTest, IsWhatLibprotobufWrites) {
  const HeaderCase& row = GetParam();
  Checkpoint checkpoint;
  auto* value = checkpoint.add_value();
  value->set_tag(row.tag);
  for (const int64_t dim : row.dims) value->mutable_tensor()->add_dims(dim);
  value->mutable_tensor()->set_tensor_type(std::string(DTypeName(row.dtype)));
  value->mutable_tensor()->set_tensor_content(std::string(row.content_bytes, 'c'));
  EXPECT_EQ(EncodeValueHeader(row.tag, row.dtype, row.dims, row.content_bytes) +
                std::string(row.content_bytes, 'c'),
            checkpoint.SerializeAsString());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ValueHeaderTest,
    testing::Values(HeaderCase{"matrix", "dense.weight", DType::kFloat32, {2, 3}, 24},
                    HeaderCase{"scalar", "global_step", DType::kInt32, {}, 4},
                    HeaderCase{"string", "note", DType::kString, {0}, 20},
                    HeaderCase{"empty", "hollow", DType::kBFloat16, {3, 0, 2}, 0},
                    HeaderCase{"no_tag", "", DType::kBool, {1}, 1},
                    HeaderCase{"length_of_one_byte", "w", DType::kInt8, {100}, 100},
                    HeaderCase{"length_of_two_bytes", "w", DType::kInt8, {128}, 128},
                    HeaderCase{"length_of_three_bytes", "w", DType::kUInt8, {16384}, 16384},
                    HeaderCase{"length_of_four_bytes", "w", DType::kUInt8, {1 << 21}, 1 << 21}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(ValueHeaderTest, MapHeadersAreWhatLibprotobufWrites) {
  const std::array<StoredArray::MapTensorPart, kMapTensors> parts = {
      StoredArray::MapTensorPart{"int32", {75}, {1000, 300}},
      StoredArray::MapTensorPart{"float32", {75, 2}, {2000, 600}},
      StoredArray::MapTensorPart{"int32", {0}, {3000, 0}},
  };
  Checkpoint checkpoint;
  auto* value = checkpoint.add_value();
  value->set_tag("embedding");
  const std::array<std::string, kMapTensors> headers = EncodeMapTensorHeaders("embedding", parts);
  std::string encoded;
  for (size_t i = 0; i < kMapTensors; ++i) {
    auto* tensor = value->mutable_maptensor()->add_tensor();
    for (const int64_t dim : parts[i].shape) tensor->add_dims(dim);
    tensor->set_tensor_type(parts[i].type);
    tensor->set_tensor_content(std::string(parts[i].content.length, 'c'));
    encoded += headers[i] + tensor->tensor_content();
  }
  EXPECT_EQ(encoded, checkpoint.SerializeAsString());
}

TEST(ValueHeaderTest, ContentMayExceedWhatLibprotobufWrites) {
  const uint64_t bytes = uint64_t{5} << 30;
  EXPECT_EQ(EncodeValueHeader("w", DType::kInt8, {static_cast<int64_t>(bytes)}, bytes),
            TensorValueHeader("w", "Int8", {static_cast<int64_t>(bytes)}, bytes));
}

}  // namespace
}  // namespace reshard::checkpoint_encoder_test

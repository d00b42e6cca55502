#include "format/safetensors/safetensors_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reshard::safetensors_encoder_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Tensor {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t bytes;
};

struct Encoded {
  std::string header;         // without its length
  std::vector<size_t> order;  // numbers of the tensors, as their contents come
};

Result<Encoded> Encode(const std::vector<Tensor>& tensors, const FileMetadata& metadata = {}) {
  Encoded encoded;
  size_t asked = 0;
  const Status status = EncodeSafetensors(
      metadata, tensors.size(),
      [&](size_t array) -> Result<ArrayHeader> {
        asked = array;
        const Tensor& tensor = tensors[array];
        return ArrayHeader{tensor.name, tensor.dtype, &tensor.shape, tensor.bytes, nullptr};
      },
      [&](std::string literal) -> Status {
        EXPECT_EQ(literal.size() % 8, 0U);
        uint64_t length = 0;
        for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint8_t>(literal[i]);
        EXPECT_EQ(length, literal.size() - 8);
        encoded.header = literal.substr(8);
        return {};
      },
      [&](std::span<const Frame> frames) -> Status {
        EXPECT_EQ(frames.size(), 1U);
        EXPECT_EQ(frames.front().content.length, tensors[asked].bytes);
        encoded.order.push_back(asked);
        return {};
      });
  if (!status.ok()) return status;
  return encoded;
}

// What the library's serialize returns of the same tensors.
TEST(SafetensorsEncoderTest, OrdersByTypeThenName) {
  const auto encoded = Encode({{"b", DType::kFloat32, {2}, 8},
                               {"a", DType::kFloat32, {}, 4},
                               {"z", DType::kInt64, {0, 2}, 0},
                               {"Z", DType::kFloat32, {1}, 4},
                               {"m", DType::kBool, {3}, 3}});
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_THAT(encoded->order, ElementsAre(2, 3, 1, 0, 4));
  EXPECT_THAT(encoded->header,
              testing::StartsWith(R"({"__metadata__":{"format":"ms"},)"
                                  R"("z":{"dtype":"I64","shape":[0,2],"data_offsets":[0,0]},)"
                                  R"("Z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                  R"("a":{"dtype":"F32","shape":[],"data_offsets":[4,8]},)"
                                  R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                                  R"("m":{"dtype":"BOOL","shape":[3],"data_offsets":[16,19]}})"));
}

TEST(SafetensorsEncoderTest, NoTensorsMakeAnEmptyObject) {
  const auto encoded = Encode({});
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_EQ(encoded->header, "{}      ");
}

TEST(SafetensorsEncoderTest, EscapesNamesAsSerdeJson) {
  const auto encoded =
      Encode({{"\" \\ / \b\t\n\f\r\x01\x1f\x7f \u00e9\u2028", DType::kInt8, {}, 1}});
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_THAT(encoded->header,
              HasSubstr("\"\\\" \\\\ / \\b\\t\\n\\f\\r\\u0001\\u001f\x7f \u00e9\u2028\":{"));
}

TEST(SafetensorsEncoderTest, MarksInt4AndSaysWhoseFormat) {
  const auto encoded = Encode({{"q", DType::kInt4, {2}, 2}, {"p", DType::kInt4, {2}, 2}}, {"pt"});
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_THAT(encoded->header,
              testing::StartsWith(R"({"__metadata__":{"format":"pt","p":"Int4","q":"Int4"},"p":)"
                                  R"({"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"));
}

TEST(SafetensorsEncoderTest, OtherMetadataStandsBehindItsOwnInTheOrderOfKeys) {
  FileMetadata metadata;
  metadata.others = {{"z", "1"}, {"a", "say \"a\""}, {"q", "not a mark"}};
  const auto encoded = Encode({{"q", DType::kInt4, {2}, 2}}, metadata);
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_THAT(encoded->header,
              testing::StartsWith(
                  R"({"__metadata__":{"format":"ms","a":"say \"a\"","q":"Int4","z":"1"},"q":)"));
  EXPECT_EQ(Encode({}, metadata)->header, "{}      ");
}

TEST(SafetensorsEncoderTest, SaysWhetherRedundancyIsRemoved) {
  FileMetadata metadata;
  metadata.removes_redundancy = false;
  EXPECT_THAT(
      Encode({{"a", DType::kInt8, {}, 1}}, metadata)->header,
      testing::StartsWith(R"({"__metadata__":{"format":"ms","remove_redundancy":"False"},"a":)"));
  EXPECT_EQ(Encode({}, metadata)->header, "{}      ");
  metadata.removes_redundancy = true;
  EXPECT_THAT(
      Encode({{"a", DType::kInt8, {}, 1}}, metadata)->header,
      testing::StartsWith(R"({"__metadata__":{"format":"ms","remove_redundancy":"True"},"a":)"));
  // Also the file of a rank that keeps nothing.
  EXPECT_THAT(
      Encode({}, metadata)->header,
      testing::StartsWith(R"({"__metadata__":{"format":"ms","remove_redundancy":"True"}})"));
}

// MindSpore takes metadata of a tensor's name for its dtype.
TEST(SafetensorsEncoderTest, ATensorCalledFormatTakesTheKey) {
  const auto encoded = Encode({{"format", DType::kInt8, {}, 1}});
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_THAT(encoded->header, testing::StartsWith(R"({"format":{"dtype")"));
}

TEST(SafetensorsEncoderTest, RefusesWhatAFileCannotHold) {
  const std::vector<std::pair<Tensor, const char*>> rows = {
      {{"__metadata__", DType::kInt8, {}, 1}, "rename it"},
      {{"\xff", DType::kInt8, {}, 1}, "not UTF-8"},
      {{"c", DType::kComplex128, {}, 16}, "no type for Complex128"},
      {{"h", DType::kHiFloat8, {}, 1}, "no type for HiFloat8"},
  };
  for (const auto& [tensor, message] : rows) {
    const Status status = Encode({tensor}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << message;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
  // The greatest header is checked before a byte is written.
  const Status status = Encode({{std::string(100'000'000, 'n'), DType::kInt8, {}, 1}}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("100000000"));
}

}  // namespace
}  // namespace reshard::safetensors_encoder_test

#include "format/mindspore_checkpoint/checkpoint_envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/checkpoint_bytes.h"

namespace reshard {
namespace {

using ::testing::HasSubstr;

Result<std::optional<uint64_t>> Trailer(std::string_view tail) {
  return ParseCrcTrailer(std::as_bytes(std::span(tail)).first<kCrcTrailerBytes>());
}

Status Signature(std::string_view head, uint64_t file_size) {
  return CheckSignature(std::as_bytes(std::span(head)), file_size);
}

TEST(CrcTrailerTest, NumberIsBigEndian) {
  const auto crc = Trailer(CrcTrailer(0x37ce13aa));
  ASSERT_TRUE(crc.ok());
  EXPECT_EQ(*crc, 0x37ce13aaU);
  EXPECT_EQ(**Trailer(CrcTrailer(0xffffffff)), 0xffffffffU);
  EXPECT_EQ(**Trailer(CrcTrailer(0)), 0U);
}

TEST(CrcTrailerTest, OtherBytesAreNone) {
  const auto crc = Trailer("crc_nun0123456789");
  ASSERT_TRUE(crc.ok());
  EXPECT_FALSE(crc->has_value());
}

TEST(CrcTrailerTest, RefusesMoreThan32Bits) {
  EXPECT_EQ(Trailer(CrcTrailer(uint64_t{1} << 32)).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(Trailer("crc_num\x01" + std::string(9, '\0')).status().code(), StatusCode::kCorrupt);
}

TEST(SignatureTest, NamesOtherFiles) {
  struct Row {
    std::string head;
    uint64_t size;
    StatusCode code;
    const char* message;
  };
  const Row rows[] = {
      {"", 0, StatusCode::kCorrupt, "empty"},
      {"\xd8\x5e\x3a\x7f", 4, StatusCode::kUnsupported, "encrypted (AES-GCM)"},
      {"\xd9\x5e\x3a\x7f.....", 99, StatusCode::kUnsupported, "encrypted (AES-CBC)"},
      {"\xda\x5e\x3a\x7f.....", 99, StatusCode::kUnsupported, "encrypted (SM4-CBC)"},
      {std::string("\x10\0\0\0\0\0\0\0{", 9), 24, StatusCode::kUnsupported, "safetensors"},
      {"{\"current", 99, StatusCode::kCorrupt, "JSON"},
      {"{}", 2, StatusCode::kCorrupt, "JSON"},
  };
  for (const Row& row : rows) {
    const Status status = Signature(row.head, row.size);
    EXPECT_EQ(status.code(), row.code) << row.message;
    EXPECT_THAT(status.message(), HasSubstr(row.message));
  }
}

TEST(SignatureTest, LetsCheckpointsPass) {
  EXPECT_TRUE(Signature(TensorValue("w", "Float32", {2, 3}, "").substr(0, 9), 99).ok());
  EXPECT_TRUE(Signature("\x0a", 1).ok());
  // Longer than the file: no safetensors header, although it looks like one.
  EXPECT_TRUE(Signature(std::string_view("\x10\0\0\0\0\0\0\0{", 9), 23).ok());
}

}  // namespace
}  // namespace reshard

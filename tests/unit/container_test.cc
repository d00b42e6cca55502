#include "format/container/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/checkpoint_bytes.h"

namespace reshard {
namespace {

using ::testing::HasSubstr;

Status Signature(std::string_view head, uint64_t file_size) {
  return ContainerOf(std::as_bytes(std::span(head)), file_size).status();
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

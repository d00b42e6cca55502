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
      {"version https://git-lfs.github.com/spec/v1\noid", 130, StatusCode::kUnsupported,
       "a Git LFS pointer, not the file itself; run git lfs pull"},
      {"PK\x03\x04....", 99, StatusCode::kUnsupported, "found a zip archive"},
      {"\x1f\x8b\x08......", 99, StatusCode::kUnsupported, "found a gzip file"},
      {"\x93NUMPY\x01.v", 99, StatusCode::kUnsupported, "found a numpy file"},
      {std::string(257, 'a') + "ustar\0", 1024, StatusCode::kUnsupported, "found a tar archive"},
      {"\r\n <!DOCTYPE HTML>", 99, StatusCode::kUnsupported, "found an HTML page"},
      {"<html>", 6, StatusCode::kUnsupported, "found an HTML page"},
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
  EXPECT_TRUE(Signature("<htm", 4).ok());
  EXPECT_TRUE(Signature("PK\x03", 3).ok());
  // Longer than the file: no safetensors header, although it looks like one.
  EXPECT_TRUE(Signature(std::string_view("\x10\0\0\0\0\0\0\0{", 9), 23).ok());
}

}  // namespace
}  // namespace reshard

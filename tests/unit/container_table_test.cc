#include "format/container_table/container_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "format/mindspore_checkpoint/mindspore_container.h"
#include "format/safetensors/safetensors_container.h"
#include "tests/support/checkpoint_bytes.h"

namespace reshard::container_table_test {
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
      {"version https://git-lfs.github.com/spec/v1\noid", 130, StatusCode::kUnsupported,
       "a Git LFS pointer, not the file itself; run git lfs pull"},
      {"\x80\x02\x8a\x0al\xfc\x9c"
       "F\xf9 j",
       99, StatusCode::kUnsupported, "found a Python pickle"},
      {"GGUF\x03.....", 99, StatusCode::kUnsupported, "found a GGUF file"},
      {"\x89HDF\r\n\x1a\n.", 99, StatusCode::kUnsupported, "found an HDF5 file"},
      {std::string(64, 'a') + "  a.ckpt\n", 73, StatusCode::kUnsupported, "a file of checksums"},
      {std::string(32, '7'), 32, StatusCode::kUnsupported, "a file of checksums"},
      {"{\"metadata\": {}, \"weight_map\": {", 99, StatusCode::kUnsupported,
       "found the index of a folder of full tensors; give the folder"},
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
  EXPECT_TRUE(Signature(std::string(31, 'a') + "g", 32).ok());
  // As long a header as a pickle's first bytes say.
  EXPECT_TRUE(Signature(std::string_view("\x80\x02\0\0\0\0\0\0{", 9), 9000).ok());
}

TEST(ContainerNamedTest, GoesByTheEndOfTheName) {
  EXPECT_EQ(ContainerNamed("rank_0/net-1_100.ckpt"), &kMindSporeContainer);
  EXPECT_EQ(ContainerNamed("a.ckpt.safetensors"), &kSafetensorsContainer);
  for (const char* name : {"", "ckpt", "a.ckpt.bin", "a.CKPT", "model.safetensors.index.json"}) {
    EXPECT_EQ(ContainerNamed(name), nullptr) << name;
    EXPECT_EQ(CheckpointExtension(name), "") << name;
  }
  EXPECT_EQ(CheckpointExtension("a.safetensors"), ".safetensors");
}

TEST(SignatureTest, TellsSafetensorsByItsHeader) {
  const auto container = [](std::string head) {
    return *ContainerOf(std::as_bytes(std::span(head)), head.size());
  };
  const std::string length("\x10\0\0\0\0\0\0\0", 8);
  for (const char* begin : {"{", " {", "\n", "[", "\xEF\xBB\xBF{"}) {
    EXPECT_EQ(container(length + begin), &kSafetensorsContainer) << begin;
  }
  EXPECT_EQ(container(length), &kMindSporeContainer);
  EXPECT_EQ(container(length + "x"), &kMindSporeContainer);
  // A header of more than 100,000,000 bytes, which the reader refuses; and of 2^40 bytes.
  EXPECT_EQ(container(std::string("\x01\xe1\xf5\x05\0\0\0\0{", 9)), &kSafetensorsContainer);
  EXPECT_EQ(container(std::string("\x01\0\0\0\0\x01\0\0{", 9)), &kMindSporeContainer);
}

TEST(ContainerTableTest, FilesAreWrittenAsTheyWereReadOrAsSafetensors) {
  EXPECT_EQ(&WrittenAs(kMindSporeContainer), &kMindSporeContainer);
  EXPECT_EQ(&WrittenAs(kSafetensorsContainer), &kSafetensorsContainer);
  Container only_read = kMindSporeContainer;
  only_read.encode = nullptr;
  EXPECT_EQ(&WrittenAs(only_read), &kSafetensorsContainer);
}

}  // namespace
}  // namespace reshard::container_table_test

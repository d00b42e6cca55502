#include "format/safetensors/safetensors_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/common_metadata.h"

namespace reshard::safetensors_reader_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A file of this header, with its length before it and `content` bytes behind it.
std::string WithHeader(std::string_view header, size_t content) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes.append(header).append(content, 'c');
}

// Reads the table of `bytes`; `reads` gets the offset and the length of each read.
Result<TableOfFile> Read(std::string_view bytes, const MemoryCheck& memory = {},
                         std::vector<ByteRange>* reads = nullptr) {
  const FileBytes file = {"a.safetensors", bytes.size(),
                          [bytes, reads](uint64_t offset, std::span<std::byte> out) -> Status {
                            if (reads != nullptr) reads->push_back({offset, out.size()});
                            std::memcpy(out.data(), bytes.data() + offset, out.size());
                            return {};
                          },
                          [](ByteRange) { return Status(); }, false};
  return ReadSafetensorsTable(file, std::as_bytes(std::span(bytes.substr(0, kHeaderPage))), memory);
}

TEST(SafetensorsReaderTest, ArraysAreInTheOrderOfTheirBytes) {
  const auto read = Read(
      WithHeader(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},"none":{"data_offsets":)"
                 R"([6,6],"dtype":"I64","shape":[0,3]},"a":{"dtype":"I16","shape":[3],)"
                 R"("data_offsets":[0,6],"more":[{"x":null},1.5]}})",
                 14));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::vector<StoredArray>& arrays = read->table->arrays();
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_EQ(arrays[0].name, "a");
  EXPECT_EQ(arrays[0].dtype, DType::kInt16);
  EXPECT_EQ(arrays[0].shape, (Shape{3}));
  EXPECT_EQ(arrays[1].name, "none");
  EXPECT_EQ(arrays[1].bytes, 0U);
  EXPECT_EQ(arrays[2].name, "b");
  EXPECT_EQ(arrays[2].bytes, 8U);
  EXPECT_EQ(arrays[2].content.front().offset, arrays[0].content.front().offset + 6);
}

// What NumPy has no array of, so that neither the library nor MindSpore can hand it out, is refused
// though it has no bytes; a .ckpt file with such dims is, too.
TEST(SafetensorsReaderTest, SizesBesideOneOf0CountForAnOverflow) {
  const auto read = [](std::string_view shape) {
    return Read(WithHeader(
        fmt::format(R"({{"w":{{"dtype":"F32","shape":{},"data_offsets":[0,0]}}}})", shape), 0));
  };
  for (const char* shape : {"[1152921504606846976,0]", "[0,1152921504606846976]"}) {
    const auto taken = read(shape);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_EQ(ToString(taken->table->arrays().front().shape).size(), std::strlen(shape) + 1);
    EXPECT_EQ(taken->table->arrays().front().bytes, 0U);
  }
  for (const char* shape : {"[4611686018427387904,0]", "[0,4611686018427387904]",
                            "[4611686018427387904,4,0]", "[2147483648,0,2147483648]"}) {
    const Status status = read(shape).status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << shape;
    EXPECT_THAT(status.message(), HasSubstr("more bytes than 63 bits can count")) << shape;
  }
}

TEST(SafetensorsReaderTest, MarksMakeInt4OfI8) {
  const std::string tensor = R"("q":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})";
  const auto read = Read(WithHeader(R"({"__metadata__":{"q":"Int4","gone":"Int4"},)" + tensor, 2));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->table->arrays().front().dtype, DType::kInt4);
}

// Quantizers write of their tensors there; only one value is a mark.
TEST(SafetensorsReaderTest, OtherMetadataUnderATensorsNameIsKept) {
  const std::string tensor = R"("q":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})";
  const auto read = Read(WithHeader(
      R"({"__metadata__":{"format":"pt","q":"{\"_type\": 1}","gone":"Int4","crc_num":"1",)"
      R"("remove_redundancy":"True","DCP_SHARDING_INFO":"{}"},)" +
          tensor,
      2));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->table->arrays().front().dtype, DType::kInt8);
  EXPECT_THAT(*read->table->metadata(),
              ElementsAre(std::pair("DCP_SHARDING_INFO", ""), std::pair("format", "pt"),
                          std::pair("q", R"({"_type": 1})")));
}

TEST(CommonMetadataTest, IsWhatAllFilesAgreeOn) {
  const auto strings = [](FileStrings metadata) {
    return std::make_shared<const FileStrings>(std::move(metadata));
  };
  CommonMetadata common;
  FileMetadata made;
  common.SetOn(made);
  EXPECT_EQ(made, FileMetadata());
  common.Add(strings({{"format", "pt"}, {"a", "1"}, {"b", "1"}, {"DCP_VERSION", ""}}));
  common.SetOn(made);
  EXPECT_EQ(made.format, "pt");
  EXPECT_THAT(made.others, ElementsAre(std::pair("a", "1"), std::pair("b", "1")));
  EXPECT_THAT(common.LeftOut(), ElementsAre("DCP_VERSION"));
  common.Add(strings({{"format", "pt"}, {"a", "1"}, {"b", "2"}, {"c", "1"}}));
  FileMetadata both;
  common.SetOn(both);
  EXPECT_EQ(both.format, "pt");
  EXPECT_THAT(both.others, ElementsAre(std::pair("a", "1")));
  EXPECT_THAT(common.LeftOut(), ElementsAre("DCP_VERSION", "b", "c"));
  EXPECT_THAT(common.Keys(), ElementsAre("DCP_VERSION", "a", "b", "c"));
  common.Add(strings({}));
  FileMetadata none;
  common.SetOn(none);
  EXPECT_EQ(none, FileMetadata());
}

TEST(SafetensorsReaderTest, MetadataMayComeLast) {
  const auto read = Read(WithHeader(R"({"q":{"dtype":"I8","shape":[],"data_offsets":[0,1]},)"
                                    R"("__metadata__":{"q":"Int4"}})",
                                    1));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->table->arrays().front().dtype, DType::kInt4);
}

TEST(SafetensorsReaderTest, RefusalsSayTensorAndValues) {
  struct Row {
    const char* header;
    const char* message;
  };
  const Row rows[] = {
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})",
       "a.safetensors: tensor \"w\": data_offsets [0, 9], but the file has 8 bytes"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", "shape [1] of F32 needs 4"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})", "found 8.0"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551616]}})",
       "found 18446744073709551616"},
      {R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "found -2"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"dtype":"F32"}})",
       "tensor \"w\": dtype occurs twice"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("w":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
       "tensor \"w\": its name occurs twice"},
      {R"({"w":{"dtype":"F32","shape":[2]}})", "tensor \"w\": it has no data_offsets"},
      {R"({"__metadata__":{"a":1}})", "a string as metadata \"a\", found 1"},
      {R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ occurs twice"},
      {R"({"w":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}})", "does not fill whole bytes"},
      {R"({})", "its tensors end at 0 of 8 bytes"},
      {R"({"w")", "the header is not JSON from offset 12"},
  };
  for (const Row& row : rows) {
    const Status status = Read(WithHeader(row.header, 8)).status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << row.header;
    EXPECT_THAT(status.message(), StartsWith("a.safetensors: "));
    EXPECT_THAT(status.message(), HasSubstr(row.message));
  }
}

TEST(SafetensorsReaderTest, LengthsBeyondTheFileAreRefusedUnread) {
  std::string bytes = WithHeader("{}", 0);
  bytes[0] = 3;
  std::vector<ByteRange> reads;
  EXPECT_EQ(Read(bytes, {}, &reads).status().code(), StatusCode::kCorrupt);
  EXPECT_TRUE(reads.empty());
}

// Headers of any length: blocks of at most 1 MiB, each byte once, nothing behind the header.
TEST(SafetensorsReaderTest, ReadsTheHeaderOnceInBlocks) {
  constexpr size_t kTensors = 40000;
  std::string header = "{";
  for (size_t i = 0; i < kTensors; ++i) {
    header += fmt::format(R"({}"layer.{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  }
  header += "}";
  const std::string bytes = WithHeader(header, kTensors);
  std::vector<ByteRange> reads;
  const auto read = Read(bytes, {}, &reads);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->table->arrays().size(), kTensors);
  ASSERT_GE(reads.size(), 2U);
  uint64_t end = kHeaderPage;
  for (const ByteRange& range : reads) {
    EXPECT_EQ(range.offset, end);
    EXPECT_LE(range.length, uint64_t{1} << 20);
    end = range.end();
  }
  EXPECT_EQ(end, 8 + header.size());
}

// `count` members, `first` and `last` around their numbers.
std::string Members(size_t count, std::string_view first, std::string_view last) {
  std::string members;
  for (size_t i = 0; i < count; ++i) {
    members += i == 0 ? "" : ",";
    members += fmt::format("{}{}{}", first, i, last);
  }
  return members;
}

// Only the header's length and the memory that there is bound the tensors.
TEST(SafetensorsReaderTest, MemoryIsAskedForAsTensorsCome) {
  constexpr size_t kTensors = 5000;
  const std::string bytes = WithHeader("{" +
                                           Members(kTensors, "\"t",
                                                   R"(":{"dtype":"U8","shape":[0],)"
                                                   R"("data_offsets":[0,0]})") +
                                           "}",
                                       0);
  std::vector<uint64_t> asked;
  const MemoryCheck note = [&asked](uint64_t more) {
    asked.push_back(more);
    return Status();
  };
  ASSERT_TRUE(Read(bytes, note).ok());
  EXPECT_GE(asked.size(), kTensors / kMemoryCheckInterval + 1);
  EXPECT_GE(asked.back(), kTensors * sizeof(StoredArray)) << "what the table takes when it is made";
  const MemoryCheck none_at_the_end = [](uint64_t more) {
    return more < kTensors ? Status() : ResourceExhaustedError("no more memory");
  };
  EXPECT_EQ(Read(bytes, none_at_the_end).status().code(), StatusCode::kResourceExhausted);
}

// A key takes far more memory than bytes of the header.
TEST(SafetensorsReaderTest, MetadataIsBounded) {
  const std::string keys = Members(1'500'000, "\"k", "\":\"\"");
  const Status status = Read(WithHeader(R"({"__metadata__":{)" + keys + "}}", 0)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("its metadata needs more than 128 MiB"));
}

// A single name may be as long as the header; what the parser keeps of it counts.
TEST(SafetensorsReaderTest, MemoryIsAskedForWithinALongName) {
  const std::string bytes = WithHeader("{\"" + std::string(8 << 20, 'n') + "\":{}}", 0);
  size_t asked = 0;
  const MemoryCheck at_the_third = [&asked](uint64_t /*more*/) {
    return ++asked < 3 ? Status() : ResourceExhaustedError("no more memory");
  };
  std::vector<ByteRange> reads;
  EXPECT_EQ(Read(bytes, at_the_third, &reads).status().code(), StatusCode::kResourceExhausted);
  EXPECT_LE(reads.size(), 3U);
}

}  // namespace
}  // namespace reshard::safetensors_reader_test

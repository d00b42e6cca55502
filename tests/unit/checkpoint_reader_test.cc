#include "format/mindspore_checkpoint/checkpoint_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/checkpoint_bytes.h"

namespace reshard {
namespace {

using ::testing::ElementsAre;

FileBytes BytesInMemory(std::string_view bytes) {
  return {"a.ckpt", bytes.size(),
          [bytes](uint64_t offset, std::span<std::byte> out) -> Status {
            std::memcpy(out.data(), bytes.data() + offset, out.size());
            return {};
          },
          [](ByteRange) { return Status(); }};
}

Result<TableOfFile> Read(std::string_view bytes) {
  const auto head = std::as_bytes(std::span(bytes.substr(0, kHeaderPage)));
  return ReadMindSporeTable(BytesInMemory(bytes), {head.begin(), head.end()}, {});
}

const std::string kTensor = TensorValue("w", "Int8", {4}, "wwww");

TEST(CrcTrailerTest, NumberIsBigEndian) {
  for (const uint64_t crc : {0x37ce13aaU, 0xffffffffU, 0U}) {
    const auto read = Read(kTensor + CrcTrailer(crc));
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_TRUE(read->crc.has_value());
    EXPECT_EQ(read->crc->value, crc);
    EXPECT_EQ(read->crc->covered, (ByteRange{0, kTensor.size()}));
    EXPECT_TRUE(read->crc->may_lack.empty());
    EXPECT_EQ(read->table.arrays().size(), 1U);
  }
}

TEST(CrcTrailerTest, MayLackMapTensors) {
  const std::string part = TensorMessage("int8", {1}, "x");
  const std::string map_tensor = MapValue("m", {part, part, part});
  const auto read = Read(kTensor + map_tensor + CrcTrailer(7));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(read->crc.has_value());
  EXPECT_THAT(read->crc->may_lack, ElementsAre(ByteRange{kTensor.size(), map_tensor.size()}));
}

TEST(CrcTrailerTest, IsFoundWithoutTheHeaders) {
  const std::string covered(100, 'x');
  EXPECT_EQ(**CoveredByTrailer(BytesInMemory(covered + CrcTrailer(7))), (ByteRange{0, 100}));
  EXPECT_EQ(*CoveredByTrailer(BytesInMemory(covered)), std::nullopt);
  EXPECT_EQ(*CoveredByTrailer(BytesInMemory("crc_nun0123456789")), std::nullopt);
  EXPECT_EQ(*CoveredByTrailer(BytesInMemory("short")), std::nullopt);
}

TEST(CrcTrailerTest, RefusesMoreThan32Bits) {
  for (const std::string& tail :
       {CrcTrailer(uint64_t{1} << 32), "crc_num\x01" + std::string(9, '\0')}) {
    const std::string bytes = kTensor + tail;
    EXPECT_EQ(CoveredByTrailer(BytesInMemory(bytes)).status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(Read(bytes).status().code(), StatusCode::kCorrupt);
  }
}

}  // namespace
}  // namespace reshard

#include "format/mindspore_checkpoint/checkpoint_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/checkpoint_bytes.h"

namespace reshard::checkpoint_reader_test {
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

Result<TableOfFile> Read(std::string_view bytes,
                         const std::shared_ptr<const FileTable>& like = nullptr) {
  const auto head = std::as_bytes(std::span(bytes.substr(0, kHeaderPage)));
  return ReadMindSporeTable(BytesInMemory(bytes), {head.begin(), head.end()}, {}, like);
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
    EXPECT_EQ(read->table->arrays().size(), 1U);
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
  EXPECT_EQ(**CoveredByTrailer(BytesInMemory(covered + CrcTrailer(7))), 100U);
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

// A file in memory that notes what is read of it, its head and trailer aside: not what was asked
// for before, which has been counted.
struct RequestCount {
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t longest = 0;
  uint64_t ahead = 0;  // of the requests: those that are not waited for
  uint64_t used = 0;   // of them: those that something was read of
};

// Values of `lengths` bytes of content, named by their numbers from 10,000 on: all headers that
// say lengths of as many digits are as long.
std::string Values(const std::vector<uint64_t>& lengths) {
  std::string bytes;
  for (size_t i = 0; i < lengths.size(); ++i) {
    bytes += TensorValue(std::to_string(10'000 + i), "UInt8", {static_cast<int64_t>(lengths[i])},
                         std::string(lengths[i], 'x'));
  }
  return bytes;
}

class HeaderRequestsTest : public testing::TestWithParam<bool> {
 protected:
  uint64_t near() const { return GetParam() ? kRemoteHeaderDistance : kHeaderDistance; }

  // Where nothing lies where it was guessed. A part may begin in the middle of a header.
  static uint64_t MostInVain() { return GetParam() ? 2 * kMostHeadersAhead : 0; }

  RequestCount Count(const std::string& bytes, size_t values) const {
    RequestCount count;
    FileBytes file = BytesInMemory(bytes);
    file.is_remote = GetParam();
    std::vector<std::pair<ByteRange, bool>> asked;  // and whether it was used
    file.prefetch = [&](ByteRange range) -> Status {
      EXPECT_LE(range.end(), bytes.size());
      if (!GetParam()) return {};  // a disk is asked for them again
      asked.emplace_back(range, false);
      ++count.requests;
      ++count.ahead;
      count.bytes += range.length;
      return {};
    };
    file.read = [&, read = file.read](uint64_t offset, std::span<std::byte> out) {
      const auto has_it = [&](const auto& ahead) {
        return ahead.first.offset <= offset && offset + out.size() <= ahead.first.end();
      };
      const auto known = std::find_if(asked.begin(), asked.end(), has_it);
      if (known != asked.end()) {
        if (!known->second) ++count.used;
        known->second = true;
      } else if (out.size() != 17) {
        ++count.requests;
        count.bytes += out.size();
        count.longest = std::max<uint64_t>(count.longest, out.size());
      }
      return read(offset, out);
    };
    const auto head = std::as_bytes(std::span(bytes).first(std::min(bytes.size(), kHeaderPage)));
    const auto table = ReadMindSporeTable(file, {head.begin(), head.end()}, {}, nullptr);
    EXPECT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(table.ok() ? table->table->arrays().size() : 0, values);
    return count;
  }
};

INSTANTIATE_TEST_SUITE_P(Files, HeaderRequestsTest, testing::Bool(), [](const auto& is_remote) {
  return is_remote.param ? "Remote" : "Local";
});

// Blocks double from `near` on up to the longest; each may end in the middle of a header.
TEST_P(HeaderRequestsTest, CloseHeadersAreReadInBlocks) {
  const std::string bytes = Values(std::vector<uint64_t>(2500, 4096));
  const RequestCount count = Count(bytes, 2500);
  const auto doublings = static_cast<uint64_t>(std::bit_width(kMostHeaderBlock / near()));
  EXPECT_LE(count.requests, doublings + 1 + bytes.size() / kMostHeaderBlock);
  EXPECT_LE(count.longest, kMostHeaderBlock + 2 * kHeaderPage);
  // A header at the end of a block is read twice.
  EXPECT_LE(count.bytes, bytes.size() + count.requests * kHeaderPage);
}

TEST_P(HeaderRequestsTest, DistantHeadersAreReadOneByOne) {
  const std::string bytes = Values(std::vector<uint64_t>(60, near()));
  const RequestCount count = Count(bytes, 60);
  EXPECT_LE(count.requests, 60U);
  EXPECT_LE(count.bytes, 60 * (GetParam() ? uint64_t{64} << 10 : 2 * kHeaderPage));
}

// A few small parameters among large ones: a block is never longer than they are, or `near`.
TEST_P(HeaderRequestsTest, BlocksEndWhereContentsAreLarge) {
  std::vector<uint64_t> lengths;
  uint64_t close = 0;
  for (int i = 0; i < 60; ++i) {
    lengths.push_back(i % 3 == 0 ? near() + static_cast<uint64_t>(i) * 977 : 5000);
    if (i % 3 != 0) close += 5000;
  }
  const RequestCount count = Count(Values(lengths), lengths.size());
  EXPECT_LE(count.requests, lengths.size() + MostInVain());
  EXPECT_LE(count.bytes, lengths.size() * 2 * kHeaderPage + 20 * 2 * near() + close +
                             count.ahead * (uint64_t{64} << 10));
}

// No header costs a second request because it crosses a page, or the end of a block.
TEST_P(HeaderRequestsTest, OneRequestForAHeaderThatCrossesPages) {
  std::vector<uint64_t> lengths;
  for (uint64_t i = 0; i < 100; ++i) lengths.push_back(near() + 1 + i * 53 % kHeaderPage);
  EXPECT_LE(Count(Values(lengths), lengths.size()).requests, lengths.size() + MostInVain());
}

class HeaderGuessTest : public HeaderRequestsTest {};

INSTANTIATE_TEST_SUITE_P(Remote, HeaderGuessTest, testing::Values(true));

TEST_P(HeaderGuessTest, EqualLengthsWaitOnce) {
  const RequestCount count = Count(Values(std::vector<uint64_t>(60, near() + 100)), 60);
  EXPECT_LE(count.requests - count.ahead, 1U);
  EXPECT_EQ(count.used, count.ahead);
}

// As the layers of a model: once the first ones have been seen, few answers are waited for.
TEST_P(HeaderGuessTest, LayersAreKnownByTheFirstOnes) {
  const std::vector<uint64_t> layer = {4, 1, 1, 4, 9, 9, 9, 0, 0};
  std::vector<uint64_t> lengths;
  for (int i = 0; i < 12; ++i) {
    for (const uint64_t length : layer) lengths.push_back(length * near() + 100);
  }
  const RequestCount count = Count(Values(lengths), lengths.size());
  EXPECT_LE(count.requests - count.ahead, 2 * layer.size());
  EXPECT_LE(count.ahead - count.used, layer.size() + MostInVain());
}

// Within a layer lengths repeat, too: those of matrices, and of Adam's two states.
TEST_P(HeaderGuessTest, LayersAreKnownThoughTheirOwnLengthsRepeat) {
  const std::vector<uint64_t> weights = {1, 1, 1, 1, 3, 3, 3, 0, 0};
  std::vector<uint64_t> layer = weights;
  for (int state = 0; state < 2; ++state) {
    for (const uint64_t length : weights) layer.push_back(2 * length);
  }
  std::vector<uint64_t> lengths;
  for (int i = 0; i < 6; ++i) {
    for (const uint64_t length : layer) lengths.push_back(length * near() + 100);
  }
  const RequestCount count = Count(Values(lengths), lengths.size());
  EXPECT_LE(count.requests - count.ahead, 2 * layer.size());
  EXPECT_LE(count.ahead - count.used, layer.size() + MostInVain());
}

TEST_P(HeaderGuessTest, FewAreAskedForInVain) {
  std::vector<uint64_t> lengths;
  uint64_t random = 1;
  for (int i = 0; i < 60; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    lengths.push_back(near() + (random >> 40) % near());
  }
  const RequestCount count = Count(Values(lengths), lengths.size());
  EXPECT_LE(count.ahead, MostInVain());
  EXPECT_LE(count.requests, lengths.size() + MostInVain());
}

// Returns what is read ahead of a local file, one range behind the other.
std::vector<ByteRange> ReadAhead(const std::string& bytes,
                                 const std::shared_ptr<const FileTable>& like,
                                 uint64_t bytes_ahead = uint64_t{64} << 20) {
  FileBytes file = BytesInMemory(bytes);
  file.bytes_ahead = bytes_ahead;
  std::vector<ByteRange> asked;
  file.prefetch = [&](ByteRange range) -> Status {
    EXPECT_LE(range.end(), bytes.size());
    EXPECT_LE(asked.empty() ? 0 : asked.back().end(), range.offset);
    asked.push_back(range);
    return {};
  };
  const auto head = std::as_bytes(std::span(bytes).first(std::min(bytes.size(), kHeaderPage)));
  EXPECT_TRUE(ReadMindSporeTable(file, {head.begin(), head.end()}, {}, like).ok());
  return asked;
}

std::shared_ptr<const FileTable> TableOf(const std::string& bytes) { return Read(bytes)->table; }

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A file that is alike tells from the first header on how far headers are close.
TEST(HeaderReadAheadTest, OfAFileLikeAnotherMuchIsReadAheadAtOnce) {
  const std::string bytes = Values(std::vector<uint64_t>(4000, 4096));
  const std::vector<ByteRange> alone = ReadAhead(bytes, nullptr);
  ASSERT_FALSE(alone.empty());
  EXPECT_GE(alone.front().offset, 256U << 10);
  EXPECT_LE(alone.front().length, kMiB);
  const std::vector<ByteRange> like = ReadAhead(bytes, TableOf(bytes));
  ASSERT_FALSE(like.empty());
  EXPECT_LE(like.front().offset, 2 * kHeaderPage);
  EXPECT_GE(like.front().length, 8 * kMiB);
  EXPECT_EQ(like.back().end(), bytes.size());
  // Where little may be asked for, several files share it.
  EXPECT_LE(ReadAhead(bytes, TableOf(bytes), 8 * kMiB).front().end(), 4 * kMiB);
}

TEST(HeaderReadAheadTest, NothingIsBehindTheLastCloseHeader) {
  std::vector<uint64_t> lengths(300, 4096);
  lengths.push_back(20 * kMiB);
  lengths.insert(lengths.end(), 300, 4096);
  const std::string bytes = Values(lengths);
  const uint64_t close = Values(std::vector<uint64_t>(300, 4096)).size();
  const std::vector<ByteRange> like = ReadAhead(bytes, TableOf(bytes));
  ASSERT_EQ(like.size(), 2U);
  // Up to the end of a large page.
  EXPECT_EQ(like[0].end(), (close + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
  EXPECT_GE(like[1].offset, bytes.size() - close);
  EXPECT_EQ(like[1].end(), bytes.size());
}

TEST(HeaderReadAheadTest, DistantHeadersOfAFileLikeAnotherAreAskedForOnce) {
  const std::string bytes = Values(std::vector<uint64_t>(60, 100'000));
  EXPECT_TRUE(ReadAhead(bytes, nullptr).empty());
  const auto table = TableOf(bytes);
  const std::vector<ByteRange> like = ReadAhead(bytes, table);
  // The first one lies in the page that tells what file it is; then the second one is read.
  ASSERT_EQ(like.size(), 58U);
  for (size_t i = 0; i < like.size(); ++i) {
    const StoredArray& array = table->arrays()[i + 2];
    EXPECT_EQ(like[i], (ByteRange{array.framed[0].offset,
                                  array.content[0].offset - array.framed[0].offset}));
  }
}

TEST(HeaderReadAheadTest, AnotherFileTellsNothingOnceTheyDiffer) {
  const std::string bytes = Values(std::vector<uint64_t>(4000, 4096));
  const std::vector<ByteRange> alone = ReadAhead(bytes, nullptr);
  EXPECT_EQ(ReadAhead(bytes, TableOf(Values(std::vector<uint64_t>(4000, 4097)))), alone);
  std::vector<uint64_t> lengths(4000, 4096);
  lengths[1] = 4095;
  EXPECT_EQ(ReadAhead(bytes, TableOf(Values(lengths))).back(), alone.back());
}

// What a block holds besides headers may be damaged.
TEST(HeaderBlocksTest, BytesThatNobodyNeedsMayBeUnreadable) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += TensorValue("p" + std::to_string(i), "UInt8", {9000}, std::string(9000, 'x'));
  }
  // Of a content, behind its first page.
  const uint64_t bad = bytes.find(TensorValueHeader("p700", "UInt8", {9000}, 9000)) + 6000;
  FileBytes file = BytesInMemory(bytes);
  file.read = [bad, read = file.read](uint64_t offset, std::span<std::byte> out) {
    if (offset <= bad && bad < offset + out.size()) return IoError("a.ckpt: bad");
    return read(offset, out);
  };
  const auto head = std::as_bytes(std::span(bytes).first(kHeaderPage));
  const auto table = ReadMindSporeTable(file, {head.begin(), head.end()}, {}, nullptr);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->table->arrays().size(), 1000U);
}

}  // namespace
}  // namespace reshard::checkpoint_reader_test

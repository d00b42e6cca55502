// Conversions of files with a CRC trailer: right, damaged, and as MindSpore writes it beside maps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "src/digest/crc32.h"
#include "tests/malformed/good_folder.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/folder_contents.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/with_bytes.h"

namespace reshard::convert_crc_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

uint32_t CrcOf(const std::string& bytes) {
  Crc32 crc;
  crc.Update(std::as_bytes(std::span(bytes)));
  return crc.value();
}

std::string WithCrc(const std::string& bytes) { return bytes + CrcTrailer(CrcOf(bytes)); }

std::string WithFlippedByte(std::string bytes, size_t from_end) {
  bytes[bytes.size() - from_end] ^= 0x10;
  return bytes;
}

class CrcFolder : public GoodFolder {
 public:
  // The file of a source rank as it was before it got a trailer.
  std::string Rank(int64_t rank) const { return ReadFile(PathOf(rank)).substr(0, size_); }
  std::string PathOf(int64_t rank) const { return path() / "source" / RankPath(rank); }
  uint64_t size() const { return size_; }  // of such a file

  CrcFolder() : size_(fs::file_size(PathOf(0))) {
    for (const int64_t rank : {0, 1}) WriteRank(rank, WithCrc(Rank(rank)));
  }

 private:
  uint64_t size_;
};

TEST(ConvertCrcTest, ChecksAndReportsWhatItReads) {
  GoodFolder without;
  const auto expected = Convert(without.options());
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_EQ(expected->crc_files, 0U);
  EXPECT_EQ(expected->crc_bytes, 0U);

  CrcFolder folder;
  Progress last;
  folder.options().run.progress = [&](const Progress& progress) { last = progress; };
  const auto converted = Convert(folder.options());
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  EXPECT_EQ(converted->crc_files, 2U);
  EXPECT_EQ(converted->crc_bytes, 2 * folder.size());
  EXPECT_EQ(last.total_bytes, converted->bytes_written + 2 * folder.size());
  EXPECT_EQ(last.done_bytes, last.total_bytes);
  EXPECT_EQ(ReadOutputs(folder.path() / "target"), ReadOutputs(without.path() / "target"));
}

TEST(ConvertCrcTest, ADamagedFileIsRefusedBeforeAnythingIsWritten) {
  // In the content, in the first bytes of the trailer's number, in its last one.
  for (const size_t from_end : {18U, 4U, 1U}) {
    CrcFolder folder;
    folder.WriteRank(1, WithFlippedByte(WithCrc(folder.Rank(1)), from_end));
    const auto converted = Convert(folder.options());
    EXPECT_EQ(converted.status().code(), StatusCode::kCorrupt);
    EXPECT_THAT(converted.status().message(),
                AllOf(HasSubstr(folder.PathOf(1)), HasSubstr("the trailer states CRC-32"),
                      HasSubstr("`checksum=false`")));
    EXPECT_FALSE(fs::exists(folder.path() / "target" / "rank_0"));
    EXPECT_FALSE(fs::exists(folder.path() / "target" / "manifest.json"));
  }
}

TEST(ConvertCrcTest, WhatIsAtTheTargetStays) {
  CrcFolder folder;
  ASSERT_TRUE(Convert(folder.options()).ok());
  const FolderContents finished = ReadFolder(folder.path() / "target");
  folder.WriteRank(0, WithFlippedByte(WithCrc(folder.Rank(0)), 18));
  folder.options().force = true;
  EXPECT_EQ(Convert(folder.options()).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(ReadFolder(folder.path() / "target"), finished);
}

TEST(ConvertCrcTest, NoChecksumTakesTheFileAsItIs) {
  CrcFolder folder;
  folder.WriteRank(1, WithFlippedByte(WithCrc(folder.Rank(1)), 18));
  folder.options().checks.checksum = false;
  const auto converted = Convert(folder.options());
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  EXPECT_EQ(converted->crc_files, 0U);
}

TEST(ConvertCrcTest, FilesThatAreNotReadAreNotChecked) {
  CrcFolder folder;
  folder.WriteRank(1, WithFlippedByte(WithCrc(folder.Rank(1)), 18));
  folder.options().selection.ranks = {0};  // rows of source rank 0
  const auto converted = Convert(folder.options());
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  EXPECT_EQ(converted->crc_files, 1U);
}

// The other exception of MindSpore's, 0 behind encrypted blocks, is a file that is refused anyway.
TEST(ConvertCrcTest, ACrcWithoutItsMapsIsTaken) {
  const std::string map = MapValue(
      "m", {TensorMessage("int32", {2}, "12345678"), TensorMessage("float32", {2, 1}, "abcdefgh"),
            TensorMessage("int32", {2}, "........")});
  for (const bool whole : {false, true}) {
    CrcFolder folder;
    for (const int64_t rank : {0, 1}) {
      const std::string bytes = folder.Rank(rank);
      const std::string with_map = bytes + map;
      folder.WriteRank(rank, with_map + CrcTrailer(CrcOf(whole ? with_map : bytes)));
    }
    const auto converted = Convert(folder.options());
    EXPECT_TRUE(converted.ok()) << converted.status().message();
  }
}

TEST(ConvertCrcTest, StopsWhileItChecks) {
  CrcFolder folder;
  std::stop_source stop;
  folder.options().run.stop = stop.get_token();
  folder.options().run.jobs = 1;
  folder.options().run.progress = WithBytes([&] { stop.request_stop(); });
  const auto converted = Convert(folder.options());
  EXPECT_EQ(converted.status().code(), StatusCode::kCancelled);
  EXPECT_FALSE(fs::exists(folder.path() / "target" / "rank_0"));
}

}  // namespace
}  // namespace reshard::convert_crc_test

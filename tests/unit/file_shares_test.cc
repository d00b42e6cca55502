// Which bytes of which file each shard writes.
#include "src/job/file_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/record/part_record.h"

namespace reshard::file_shares_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kBlock = kDigestBlockBytes;

FilePart Part(size_t file, uint64_t begin, uint64_t end) { return {file, {begin, end - begin}}; }

TEST(ShardShare, OneShardWritesEverything) {
  const std::vector<ManifestFile> files = {{"a", 3 * kBlock}, {"b", 0}, {"c", 5}};
  EXPECT_THAT(ShareOf(files, {0, 1}),
              ElementsAre(Part(0, 0, 3 * kBlock), Part(1, 0, 0), Part(2, 0, 5)));
  EXPECT_THAT(ShareOf({}, {0, 1}), IsEmpty());
}

TEST(ShardShare, SmallFilesStayWhole) {
  const std::vector<ManifestFile> files = {{"rank_0/a", 10}, {"rank_1/a", 10}, {"rank_2/a", 10}};
  EXPECT_THAT(ShareOf(files, {0, 3}), ElementsAre(Part(0, 0, 10)));
  EXPECT_THAT(ShareOf(files, {1, 3}), ElementsAre(Part(1, 0, 10)));
  EXPECT_THAT(ShareOf(files, {2, 3}), ElementsAre(Part(2, 0, 10)));
  // More shards than there is work.
  uint64_t parts = 0;
  for (uint64_t i = 0; i < 7; ++i) parts += ShareOf(files, {i, 7}).size();
  EXPECT_EQ(parts, 3U);
}

TEST(ShardShare, ALargeFileIsSplitAtBlocks) {
  const std::vector<ManifestFile> files = {{"a", 10 * kBlock + 1}};
  EXPECT_THAT(ShareOf(files, {0, 3}), ElementsAre(Part(0, 0, 3 * kBlock)));
  EXPECT_THAT(ShareOf(files, {1, 3}), ElementsAre(Part(0, 3 * kBlock, 7 * kBlock)));
  EXPECT_THAT(ShareOf(files, {2, 3}), ElementsAre(Part(0, 7 * kBlock, 10 * kBlock + 1)));
  EXPECT_THAT(PartsOf(files, 3),
              ElementsAre(ElementsAre(ByteRange{0, 3 * kBlock}, ByteRange{3 * kBlock, 4 * kBlock},
                                      ByteRange{7 * kBlock, 3 * kBlock + 1})));
}

TEST(ShardShare, OnlyFilesLargerThanAShareAreSplit) {
  const std::vector<ManifestFile> files = {{"a", kBlock}, {"b", 6 * kBlock}, {"c", kBlock}};
  EXPECT_THAT(ShareOf(files, {0, 2}), ElementsAre(Part(0, 0, kBlock), Part(1, 0, 3 * kBlock)));
  EXPECT_THAT(ShareOf(files, {1, 2}),
              ElementsAre(Part(1, 3 * kBlock, 6 * kBlock), Part(2, 0, kBlock)));
  const std::vector<ManifestFile> even = {{"a", 6 * kBlock}, {"b", 6 * kBlock}};
  EXPECT_THAT(ShareOf(even, {0, 2}), ElementsAre(Part(0, 0, 6 * kBlock)));
}

TEST(ShardShare, NumbersInPathsCount) {
  const std::vector<ManifestFile> files = {
      {"rank_0/a_0", 1}, {"rank_10/a_10", 1}, {"rank_2/a_2", 1}, {"rank_9/a_9", 1}};
  EXPECT_THAT(ShareOf(files, {0, 2}), ElementsAre(Part(0, 0, 1), Part(2, 0, 1)));
  EXPECT_THAT(ShareOf(files, {1, 2}), ElementsAre(Part(3, 0, 1), Part(1, 0, 1)));
}

}  // namespace
}  // namespace reshard::file_shares_test

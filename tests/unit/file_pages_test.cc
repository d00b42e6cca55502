// Pages of a map: read exactly those that are asked for, and given back.
#include "src/os/file_pages.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "src/os/local_file.h"
#include "tests/support/mapped_source.h"
#include "tests/support/memory_pages.h"
#include "tests/support/temporary_folder.h"

namespace reshard::file_pages_test {
namespace {

// A file of so many bytes, all of them a hole, which is not in the page cache before it is read,
// and its map, of which no more is read than is asked for.
class RandomMap {
 public:
  explicit RandomMap(size_t size)
      : path_(folder_.WriteSparse("a", size, 0, "")), source_(MappedSource(path_)) {}

  const LocalFile& source() const { return source_; }
  const std::byte* data() const { return source_.map(); }
  size_t size() const { return source_.size(); }
  size_t cached_pages() const { return CachedPages(path_); }

 private:
  const TemporaryFolder folder_;
  const std::string path_;
  const LocalFile source_;
};

TEST(FilePagesTest, PopulatesExactlyThePagesAskedFor) {
  const size_t page = PageSize();
  const RandomMap map(1024 * page);
  ASSERT_EQ(map.cached_pages(), 0U);
  EXPECT_EQ(Populate(map.data() + 100 * page + 1, 3 * page), std::nullopt);
  EXPECT_EQ(map.cached_pages(), 4U);
  EXPECT_EQ(Populate(map.data() + 1024 * page - 1, 1), std::nullopt);
  EXPECT_EQ(map.cached_pages(), 5U);
  EXPECT_EQ(Populate(map.data(), 0), std::nullopt);
  EXPECT_EQ(map.cached_pages(), 5U);
}

TEST(FilePagesTest, RandomReadsNothingAroundATouchedPage) {
  const size_t page = PageSize();
  const RandomMap map(1024 * page);
  EXPECT_EQ(map.data()[500 * page], std::byte{0});
  EXPECT_EQ(map.cached_pages(), 1U);
}

TEST(FilePagesTest, ALargePageComesAsAWhole) {
  const size_t page = PageSize();
  const RandomMap map(4 * kLargePageBytes);
  const bool is_large = AdviseLargePages(map.data(), map.size());
  EXPECT_EQ(Populate(map.data() + kLargePageBytes + 7 * page, 1), std::nullopt);
  const size_t first = is_large ? kLargePageBytes / page : 1;
  EXPECT_EQ(map.cached_pages(), first);
  // Not around what was asked for ahead.
  const ByteRange asked{3 * kLargePageBytes + page, 2 * page};
  map.source().Prefetch(asked);
  EXPECT_TRUE(map.source().Populate(asked).ok());
  EXPECT_EQ(map.cached_pages(), first + 2);
}

TEST(FilePagesTest, PopulateTellsWhatIsGone) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  const std::string path = folder.Write("a", std::string(4 * page, 'x'));
  const LocalFile source = MappedSource(path);
  const std::byte* const map = source.map();
  std::filesystem::resize_file(path, 2 * page);
  EXPECT_EQ(Populate(map + 1, 2 * page - 1), std::nullopt);
  const std::optional<size_t> fault = Populate(map + 1, 3 * page);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ((1 + *fault) / page, 2U);
  EXPECT_EQ(Populate(map + 4 * page - 1, 1), 0U);
}

TEST(FilePagesTest, DropsWholePagesOnly) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  const std::string path = folder.Write("a", std::string(64 * page, 'x'));
  const LocalFile source = MappedSource(path);
  const std::byte* const map = source.map();
  ASSERT_EQ(Populate(map, source.size()), std::nullopt);
  ASSERT_EQ(MappedPages(path), 64U);
  DropPages(map + 1, page);  // parts of two pages
  DropPages(map + 1, page - 2);
  EXPECT_EQ(MappedPages(path), 64U);
  DropPages(map + 1, 10 * page);
  EXPECT_EQ(MappedPages(path), 64U - 9U);
  DropPages(map + 32 * page, 32 * page);
  EXPECT_EQ(MappedPages(path), 64U - 9U - 32U);
  EXPECT_EQ(map[5 * page], std::byte{'x'});
}

}  // namespace
}  // namespace reshard::file_pages_test

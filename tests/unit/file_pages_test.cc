// Pages of a map: read exactly those that are asked for, and given back.
#include "src/os/file_pages.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "src/io/byte_source.h"
#include "tests/support/mapped_source.h"
#include "tests/support/memory_pages.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

TEST(FilePagesTest, PopulatesExactlyThePagesAskedFor) {
  // Holes are not in the page cache before they are read.
  const TemporaryFolder folder;
  const size_t page = PageSize();
  const std::string path = folder.WriteSparse("a", 1024 * page, 0, "");
  const LocalFile source = MappedSource(path);
  const std::byte* const map = source.map();
  AdviseRandom(map, source.size());
  ASSERT_EQ(CachedPages(path), 0U);
  EXPECT_EQ(Populate(map + 100 * page + 1, 3 * page), std::nullopt);
  EXPECT_EQ(CachedPages(path), 4U);
  EXPECT_EQ(Populate(map + 1024 * page - 1, 1), std::nullopt);
  EXPECT_EQ(CachedPages(path), 5U);
  EXPECT_EQ(Populate(map, 0), std::nullopt);
  EXPECT_EQ(CachedPages(path), 5U);
}

TEST(FilePagesTest, RandomReadsNothingAroundATouchedPage) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  const std::string path = folder.WriteSparse("a", 1024 * page, 0, "");
  const LocalFile source = MappedSource(path);
  const std::byte* const map = source.map();
  AdviseRandom(map, source.size());
  EXPECT_EQ(map[500 * page], std::byte{0});
  EXPECT_EQ(CachedPages(path), 1U);
}

TEST(FilePagesTest, ALargePageComesAsAWhole) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  const std::string path = folder.WriteSparse("a", 4 * kLargePageBytes, 0, "");
  const LocalFile source = MappedSource(path);
  const std::byte* const map = source.map();
  AdviseRandom(map, source.size());
  const bool is_large = AdviseLargePages(map, source.size());
  EXPECT_EQ(Populate(map + kLargePageBytes + 7 * page, 1), std::nullopt);
  const size_t first = is_large ? kLargePageBytes / page : 1;
  EXPECT_EQ(CachedPages(path), first);
  // Not around what was asked for ahead.
  Prefetch(map + 3 * kLargePageBytes + page, 2 * page);
  EXPECT_EQ(Populate(map + 3 * kLargePageBytes + page, 2 * page), std::nullopt);
  EXPECT_EQ(CachedPages(path), first + 2);
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
}  // namespace reshard

// Indexing brings header pages into memory, and next to nothing else.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/source/indexed_file.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/memory_pages.h"
#include "tests/support/temporary_folder.h"

namespace reshard::index_header_pages_test {
namespace {

struct Placed {
  uint64_t offset;
  std::string header;
};

TEST(IndexHeaderPagesTest, OnlyHeaderPagesBecomeResident) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<Placed> values;
  std::set<uint64_t> header_pages;
  uint64_t offset = 0;
  for (int i = 0; i < 300; ++i) {
    const auto header = [i](uint64_t content) {
      return TensorValueHeader(std::to_string(1000 + i), "UInt8", {static_cast<int64_t>(content)},
                               content);
    };
    // Every third header ends with its page: the page behind it has to stay out. The others lie
    // anywhere, some across two pages.
    const uint64_t header_bytes = header(500'000).size();
    const uint64_t next = i % 3 == 2 ? page - header_bytes : static_cast<uint64_t>(i) * 977 % page;
    const uint64_t least = offset + header_bytes + 400'000;
    const uint64_t content = 400'000 + (next + page - least % page) % page;
    values.push_back({offset, header(content)});
    ASSERT_EQ(values.back().header.size(), header_bytes);
    for (uint64_t p = offset / page; p <= (offset + header_bytes - 1) / page; ++p) {
      header_pages.insert(p);
    }
    offset += header_bytes + content;
  }

  // In the build folder, because the folder for temporary files may lie in memory.
  const TemporaryFolder folder(std::filesystem::path(RESHARD_BIN_DIR).parent_path());
  std::string path;
  for (const Placed& value : values) {
    path = folder.WriteSparse("sparse.ckpt", offset, value.offset, value.header);
  }
  // By itself, then like another one, whose headers are asked for ahead. The kernel, too, may take
  // pages away, at any time; but not each time.
  std::shared_ptr<const FileTable> like;
  for (int attempt = 0, all = 0; all < 2; ++attempt) {
    ASSERT_LT(attempt, 10);
    DropPages(path);
    ASSERT_EQ(CachedPages(path), 0U) << "the build folder lies in memory; this test needs a disk";
    size_t cached = 0;
    std::shared_ptr<const FileTable> table;
    {
      SourceFiles files(1);
      const auto index = ReadFileTable(files, files.Add(path), {}, like);
      ASSERT_TRUE(index.ok()) << index.status().message();
      EXPECT_EQ(index->arrays().size(), values.size());
      cached = CachedPages(path);
      table = index->shared_table();
    }
    EXPECT_LE(cached, header_pages.size() + 2);
    EXPECT_EQ(CachedPages(path), 0U);
    if (cached < header_pages.size()) continue;
    ++all;
    like = table;
  }
}

// Headers close together: a disk reads what is between them as fast as each page alone.
TEST(IndexHeaderPagesTest, CloseHeadersAreReadAheadOf) {
  constexpr int kValues = 1000;
  constexpr uint64_t kContent = 20'000;
  const TemporaryFolder folder(std::filesystem::path(RESHARD_BIN_DIR).parent_path());
  std::string bytes;
  for (int i = 0; i < kValues; ++i) {
    bytes += TensorValue("p" + std::to_string(i), "UInt8", {kContent}, std::string(kContent, 'x'));
  }
  const std::string path = folder.Write("close.ckpt", bytes);
  DropPages(path);
  ASSERT_EQ(CachedPages(path), 0U) << "the build folder lies in memory; this test needs a disk";

  // Three quarters of it, which may be read ahead, have room for three large pages.
  constexpr uint64_t kBudget = uint64_t{8} << 20;
  SourceFiles files({.max_open = 1, .window_budget = kBudget});
  const FileId file = files.Add(path);
  ASSERT_TRUE(ReadFileTable(files, file).ok());
  // What was read ahead counts, and leaves the page cache for what comes behind it.
  EXPECT_GE(files.HeldPeak(), uint64_t{3} << 20);
  EXPECT_LE(files.HeldPeak(), kBudget + (uint64_t{1} << 20));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GE(CachedPages(path), (uint64_t{2} << 20) / page);
  EXPECT_LE(CachedPages(path), (kBudget + (uint64_t{2} << 20)) / page);
}

}  // namespace
}  // namespace reshard::index_header_pages_test

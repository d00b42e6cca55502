// SourceFiles and the page cache: pages that it brought leave again, all others stay; windows are
// shared and stay within their budget.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/io/source_files.h"
#include "src/os/file_pages.h"
#include "src/os/local_file.h"
#include "tests/support/bytes_read.h"
#include "tests/support/mapped_source.h"
#include "tests/support/memory_pages.h"
#include "tests/support/random_bytes.h"
#include "tests/support/source_content.h"
#include "tests/support/temporary_folder.h"

namespace reshard::source_pages_test {
namespace {

constexpr uint64_t kFileBytes = 6 * kWindowBytes + 12345;
constexpr uint64_t kBudget = 2 * kWindowBytes;

// Brings the page at `offset` into the page cache, and none beside it.
void CachePage(const std::string& path, uint64_t offset) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
  char byte = 0;
  EXPECT_EQ(pread(fd, &byte, 1, static_cast<off_t>(offset)), 1);
  close(fd);
}

class SourcePages : public testing::TestWithParam<IoChoice::Source> {
 protected:
  void SetUp() override {
    path_ = folder_.Write("a.ckpt", content_);
    DropPages(path_);
    ASSERT_EQ(CachedPages(path_), 0U) << "the build folder lies in memory; this test needs a disk";
  }

  // Opens all of the file, piece by piece, and compares it.
  void ReadAll(SourceFiles& files, FileId id, uint64_t piece) {
    for (uint64_t at = 0; at < kFileBytes; at += piece) {
      const uint64_t length = std::min(piece, kFileBytes - at);
      ASSERT_TRUE(Content(files.Open(id, at, length)) == content_.substr(at, length)) << at;
    }
  }

  // Returns the fewest bytes that this process has read from the disk in three runs of `run`, each
  // with a file of its own, path_, with nothing of it in the page cache: what the run before has
  // asked for may still be on its way. The kernel may take pages away at any time, also those of
  // this program's own code, which are read again when it runs; but not each time.
  uint64_t LeastFromDisk(const std::function<void()>& run) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3; ++i) {
      path_ = folder_.Write("run" + std::to_string(runs_++) + ".ckpt", content_);
      DropPages(path_);
      const uint64_t before = BytesFromDisk();
      run();
      least = std::min(least, BytesFromDisk() - before);
    }
    return least;
  }

  SourceFiles::Options Options() const {
    return {.max_open = 1, .window_budget = kBudget, .access = GetParam()};
  }

  // In the build folder, because the folder for temporary files may lie in memory.
  const TemporaryFolder folder_{std::filesystem::path(RESHARD_BIN_DIR).parent_path()};
  const std::string content_ = RandomBytes(kFileBytes, 1);
  std::string path_;
  int runs_ = 0;  // of LeastFromDisk
};

INSTANTIATE_TEST_SUITE_P(Access, SourcePages,
                         testing::Values(IoChoice::Source::kMap, IoChoice::Source::kPread),
                         [](const auto& row) {
                           return row.param == IoChoice::Source::kMap ? "map" : "pread";
                         });

TEST_P(SourcePages, OurOwnLeaveAndAllOthersStay) {
  const size_t page = PageSize();
  const std::string bystander = folder_.Write("b.ckpt", std::string(kWindowBytes, 'b'));
  const auto cache_some = [&] {
    for (uint64_t at = 0; at < kWindowBytes; at += page) {
      CachePage(bystander, at);
      CachePage(path_, kWindowBytes + at);
      if (at % 7 == 0) CachePage(path_, 3 * kWindowBytes + at);
    }
    CachePage(path_, kFileBytes - 1);
  };
  for (const uint64_t piece : {kWindowBytes, kGranuleBytes / 3, kWindowBytes - 1}) {
    SCOPED_TRACE(piece);
    // The kernel, too, may take pages away, at any time; but not each time.
    bool stayed = false;
    for (int attempt = 0; attempt < 5 && !stayed; ++attempt) {
      cache_some();
      const std::vector<bool> before = PagesInCache(path_);
      {
        SourceFiles files(Options());
        const FileId id = files.Add(path_);
        ReadAll(files, id, piece);
        const auto others = static_cast<size_t>(std::count(before.begin(), before.end(), true));
        EXPECT_LE(CachedPages(path_), kBudget / page + others);
        EXPECT_LE(files.HeldPeak(), kBudget);
        EXPECT_GE(files.HeldPeak(), kBudget / 2);
      }
      const std::vector<bool> after = PagesInCache(path_);
      for (size_t i = 0; i < after.size(); ++i) EXPECT_LE(after[i], before[i]) << "page " << i;
      stayed = after == before && CachedPages(bystander) == kWindowBytes / page;
    }
    EXPECT_TRUE(stayed);
  }
}

// Others that read the same bytes later do not go to the disk again.
TEST_P(SourcePages, PagesThatAreKeptStay) {
  const uint64_t from_disk = LeastFromDisk([&] {
    SourceFiles files(Options());
    files.KeepPages();
    const FileId id = files.Add(path_);
    for (int i = 0; i < 3; ++i) ReadAll(files, id, kWindowBytes);
    EXPECT_LE(files.Held(), kBudget);
  });
  EXPECT_GE(from_disk, kFileBytes / PageSize() * PageSize());
  EXPECT_LE(from_disk, kFileBytes + kFileBytes / 10);
}

TEST_P(SourcePages, HeadersAndReadAheadLeaveToo) {
  const size_t page = PageSize();
  {
    SourceFiles files(Options());
    const FileId id = files.Add(path_);
    for (uint64_t at = 10; at < kFileBytes - 10; at += kGranuleBytes + page) {
      ASSERT_EQ(Copied(files, id, at, 10), content_.substr(at, 10));
    }
    EXPECT_LE(files.HeldPeak(), kBudget);
    EXPECT_TRUE(files.Prefetch(id, 0, kFileBytes).ok());
    EXPECT_LE(files.HeldPeak(), kBudget);
    ReadAll(files, id, kWindowBytes);
  }
  EXPECT_EQ(CachedPages(path_), 0U);
}

TEST_P(SourcePages, ReadAheadThatIsUnderWayLeavesToo) {
  if (!KernelTellsOfPagesBeingRead()) GTEST_SKIP() << "needs cachestat, of Linux 6.5";
  {
    SourceFiles files(Options());
    EXPECT_TRUE(files.Prefetch(files.Add(path_), kWindowBytes, kWindowBytes).ok());
  }
  EXPECT_EQ(CachedPages(path_), 0U);
}

// A page of a file that is mapped while this lives, which the kernel keeps in the page cache
// therefore.
class KeptPage {
 public:
  KeptPage(const std::string& path, size_t page) : source_(MappedSource(path)) {
    EXPECT_TRUE(source_.Populate({page * PageSize(), PageSize()}).ok());
  }

 private:
  const LocalFile source_;
};

TEST_P(SourcePages, APageThatStaysIsTriedAgain) {
  constexpr size_t kPage = 5;
  for (const bool used_again : {false, true}) {
    SCOPED_TRACE(used_again);
    {
      SourceFiles files(Options());
      const FileId id = files.Add(path_);
      const auto open_windows = [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i) {
          ASSERT_TRUE(files.Open(id, i * kWindowBytes, kWindowBytes).ok());
        }
      };
      open_windows(0, 1);
      {
        const KeptPage kept(path_, kPage);
        open_windows(1, 4);
        ASSERT_TRUE(PagesInCache(path_)[kPage]);
      }
      // The kernel may be using it again; but not each time.
      for (int attempt = 0; used_again && attempt < 5; ++attempt) {
        open_windows(0, 3);
        if (!PagesInCache(path_)[kPage]) break;
        ASSERT_LT(attempt, 4);
      }
    }
    EXPECT_EQ(CachedPages(path_), 0U);
  }
}

// Whoever reads contents behind headers begins with the first of them.
TEST_P(SourcePages, OfWhatWasReadForHeadersTheFirstIsKept) {
  constexpr uint64_t kBlock = 4 * kGranuleBytes;
  constexpr uint64_t kBlocks = kFileBytes / kBlock * kBlock;
  const auto read = [&](uint64_t header_budget) {
    return LeastFromDisk([&] {
      SourceFiles::Options options = Options();
      options.header_budget = header_budget;
      SourceFiles files(options);
      const FileId id = files.Add(path_);
      std::vector<std::byte> block(kBlock);
      for (uint64_t at = 0; at < kBlocks; at += kBlock) {
        ASSERT_TRUE(files.Read(id, at, block).ok());
        EXPECT_LE(files.Held(), kBudget + header_budget);
      }
      EXPECT_EQ(files.HeldForHeaders(), kBudget + header_budget);
      ReadAll(files, id, kGranuleBytes);
      EXPECT_EQ(files.HeldForHeaders(), 0U);
    });
  };
  const uint64_t twice = kBlocks + (kFileBytes + PageSize() - 1) / PageSize() * PageSize();
  EXPECT_EQ(read(0), twice - kBudget);
  EXPECT_EQ(read(2 * kWindowBytes), twice - kBudget - 2 * kWindowBytes);
}

// Populating a map, the kernel also maps what it has of the file close by.
TEST_P(SourcePages, APageThatStaysIsUnmapped) {
  const size_t last_of_granule = kGranuleBytes / PageSize() - 1;
  const std::string path = folder_.Write("small.ckpt", content_.substr(0, 16 * kGranuleBytes));
  DropPages(path);
  {
    SourceFiles files({.max_open = 1, .window_budget = 0, .access = GetParam()});
    const FileId id = files.Add(path);
    {
      std::optional<Result<Window>> window = files.Open(id, 0, kGranuleBytes);
      ASSERT_TRUE((*window).ok());
      const KeptPage kept(path, last_of_granule);
      window.reset();
      ASSERT_TRUE(PagesInCache(path)[last_of_granule]);
    }
    ASSERT_TRUE(files.Open(id, kGranuleBytes, kGranuleBytes).ok());
  }
  EXPECT_EQ(CachedPages(path), 0U);
}

TEST_P(SourcePages, NoMoreThanAShareOfTheBudgetIsReadAhead) {
  const uint64_t share = kBudget / 4 * 3;
  // Threads read ahead what is not mapped: they may be at it yet.
  const auto wait_for = [](uint64_t bytes) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (BytesFromDisk() < bytes && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const auto prefetch_all = [&](SourceFiles& files) {
    const uint64_t before = BytesFromDisk();
    const FileId id = files.Add(path_);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(files.Prefetch(id, 0, kFileBytes).ok());
    wait_for(before + share);
    EXPECT_EQ(files.HeldPeak(), share);
    return id;
  };
  const auto use_some = [this](SourceFiles& files, FileId id) {
    EXPECT_EQ(Content(files.Open(id, 0, kWindowBytes)), content_.substr(0, kWindowBytes));
  };
  EXPECT_EQ(LeastFromDisk([&] {
              SourceFiles files(Options());
              prefetch_all(files);
            }),
            share);
  EXPECT_EQ(LeastFromDisk([&] {
              SourceFiles files(Options());
              use_some(files, prefetch_all(files));
            }),
            share);
  // What was read ahead and is used makes place for more.
  EXPECT_EQ(LeastFromDisk([&] {
              SourceFiles files(Options());
              const FileId id = prefetch_all(files);
              use_some(files, id);
              const uint64_t before = BytesFromDisk();
              EXPECT_TRUE(files.Prefetch(id, share, kGranuleBytes).ok());
              wait_for(before + kGranuleBytes);
            }),
            share + kGranuleBytes);
}

TEST_P(SourcePages, WhatWasReadAheadForAHeaderIsReadAheadWithTheRest) {
  if (GetParam() == IoChoice::Source::kMap) return;  // there both are pages
  SourceFiles files(Options());
  const FileId id = files.Add(path_);
  EXPECT_TRUE(files.PrefetchPages(id, {kWindowBytes + 3 * kGranuleBytes, 10}).ok());
  EXPECT_TRUE(files.Prefetch(id, kWindowBytes, kWindowBytes).ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (files.FilledBytes() < kWindowBytes && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(files.FilledBytes(), kWindowBytes);
}

TEST_P(SourcePages, WhatIsReadAheadStaysUntilItIsUsed) {
  const uint64_t read = LeastFromDisk([this] {
    SourceFiles files(Options());
    const FileId id = files.Add(path_);
    EXPECT_TRUE(files.Prefetch(id, 5 * kWindowBytes, kWindowBytes).ok());
    for (const uint64_t number : {0U, 1U, 2U, 3U, 5U, 4U}) {
      const uint64_t offset = number * kWindowBytes;
      EXPECT_EQ(Content(files.Open(id, offset, kWindowBytes)),
                content_.substr(offset, kWindowBytes));
    }
    EXPECT_LE(files.HeldPeak(), kBudget + kWindowBytes);
  });
  EXPECT_EQ(read, 6 * kWindowBytes);
}

// Whether the file system of `path` reads and holds large pages, as far as it has them to read.
bool ReadsLargePages(const std::string& path) {
  const LocalFile source = MappedSource(path, LocalFile::MapPages::kLarge);
  EXPECT_TRUE(source.Populate({0, kLargePageBytes}).ok());
  return BytesInLargePages(path) == kLargePageBytes;
}

TEST_P(SourcePages, WholeLargePagesAreReadAsSuch) {
  // The kernel may lack memory in one piece, at any time; but not each time.
  bool as_wanted = false;
  for (int attempt = 0; attempt < 5 && !as_wanted; ++attempt) {
    const bool is_large = GetParam() == IoChoice::Source::kMap && ReadsLargePages(path_);
    DropPages(path_);
    {
      SourceFiles files(Options());
      const FileId id = files.Add(path_);
      // Headers in them were read before.
      std::array<std::byte, 10> header;
      ASSERT_TRUE(files.Read(id, 1000, header).ok());
      ASSERT_TRUE(files.Read(id, kWindowBytes + kLargePageBytes + kGranuleBytes, header).ok());
      // Read when it is wanted, and ahead.
      const auto first = files.Open(id, 0, kWindowBytes);
      EXPECT_TRUE(files.Prefetch(id, kWindowBytes + kLargePageBytes, kLargePageBytes).ok());
      const auto second = files.Open(id, kWindowBytes + kLargePageBytes, kLargePageBytes);
      const uint64_t large = kWindowBytes + kLargePageBytes;
      as_wanted = BytesInLargePages(path_) == (is_large ? large : 0);
      // Of what is wanted in part, nothing else is read.
      const uint64_t wanted = kLargePageBytes - kGranuleBytes;
      const auto part = files.Open(id, 3 * kWindowBytes, wanted);
      EXPECT_LE(BytesInLargePages(path_), large);
      EXPECT_LE(CachedPages(path_) * PageSize(), large + wanted);
    }
    EXPECT_EQ(CachedPages(path_), 0U);
  }
  EXPECT_TRUE(as_wanted);
}

// A large page leaves the page cache as a whole only: it stays until all of it was used.
TEST_P(SourcePages, LargePagesThatAreUsedInPartStay) {
  constexpr uint64_t kPiece = 8 * kGranuleBytes;
  const uint64_t read = LeastFromDisk([this] {
    SourceFiles files({.max_open = 1, .window_budget = 3 * kWindowBytes, .access = GetParam()});
    const FileId id = files.Add(path_);
    for (uint64_t at = 0; at < 6 * kWindowBytes; at += kPiece) {
      if (at % kWindowBytes == 0) {
        EXPECT_TRUE(files.Prefetch(id, at, kWindowBytes + kLargePageBytes).ok());
      }
      EXPECT_EQ(Content(files.Open(id, at, kPiece)), content_.substr(at, kPiece));
      EXPECT_LE(CachedPages(path_) * PageSize(), 4 * kWindowBytes);
    }
  });
  EXPECT_LE(read, 6 * kWindowBytes + kLargePageBytes);
}

// As when a target's rows are put together from several files: what was used of their windows makes
// room, not what is awaited of them; and pieces that share a granule read it once.
TEST_P(SourcePages, WindowsReadSideBySideAreReadOnce) {
  constexpr uint64_t kWindows = 4;  // twice the budget
  constexpr uint64_t kPiece = uint64_t{512} << 10;
  constexpr uint64_t kShift = 1000;
  const uint64_t read = LeastFromDisk([this] {
    SourceFiles files(Options());
    const FileId id = files.Add(path_);
    for (uint64_t at = 0; at < kWindowBytes; at += kPiece) {
      for (const bool ahead : {false, true}) {
        for (uint64_t window = 0; window < kWindows; ++window) {
          const uint64_t offset = window * kWindowBytes + at + kShift;
          if (ahead && at + kPiece < kWindowBytes) {
            EXPECT_TRUE(files.Prefetch(id, offset + kPiece, kPiece).ok());
          } else if (!ahead) {
            EXPECT_EQ(Content(files.Open(id, offset, kPiece)), content_.substr(offset, kPiece));
          }
        }
      }
    }
    EXPECT_LE(files.HeldPeak(), kBudget + kWindowBytes);
  });
  // The last piece of each ends in the first granule of the next one, which is gone by then, as is
  // the last granule of what is let go before more is asked for behind it; now and then one more,
  // where threads read ahead.
  EXPECT_LE(read, kWindows * kWindowBytes + (2 * kWindows + 1) * kGranuleBytes);
}

TEST_P(SourcePages, ManyReadersReadEachByteOnce) {
  constexpr size_t kReaders = 8;
  constexpr uint64_t kRun = 5000;
  std::atomic<int> wrong = 0;
  const uint64_t read = LeastFromDisk([&] {
    SourceFiles files({.max_open = 1, .window_budget = 8 * kWindowBytes, .access = GetParam()});
    const FileId id = files.Add(path_);
    std::vector<std::jthread> readers;
    for (size_t reader = 0; reader < kReaders; ++reader) {
      readers.emplace_back([&, id, reader] {
        for (uint64_t at = reader * kRun; at < kFileBytes; at += kReaders * kRun) {
          const uint64_t length = std::min(kRun, kFileBytes - at);
          if (Content(files.Open(id, at, length)) != content_.substr(at, length)) ++wrong;
        }
      });
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(read, (kFileBytes + PageSize() - 1) / PageSize() * PageSize());
}

// More is in use than the budget has room for, and each window comes and goes all the time.
TEST_P(SourcePages, AFewBytesOfBudgetForManyReaders) {
  constexpr size_t kReaders = 4;
  {
    SourceFiles files({.max_open = 1, .window_budget = kGranuleBytes, .access = GetParam()});
    const FileId id = files.Add(path_);
    std::atomic<int> wrong = 0;
    {
      std::vector<std::jthread> readers;
      for (size_t reader = 0; reader < kReaders; ++reader) {
        readers.emplace_back([&, reader] {
          std::minstd_rand random(static_cast<unsigned>(reader));
          for (int i = 0; i < 300; ++i) {
            const uint64_t at = random() % (kFileBytes - 1);
            const uint64_t length = 1 + random() % std::min<uint64_t>(100'000, kFileBytes - at);
            if (i % 5 == 0 && !files.Prefetch(id, at, length).ok()) ++wrong;
            if (i % 7 == 0 && Copied(files, id, at, 1) != content_.substr(at, 1)) ++wrong;
            if (Content(files.Open(id, at, length)) != content_.substr(at, length)) ++wrong;
          }
        });
      }
    }
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(CachedPages(path_), 0U);
}

}  // namespace
}  // namespace reshard::source_pages_test

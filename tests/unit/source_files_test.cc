// SourceFiles: the right bytes, out of few open files and few pages.
#include "src/io/source_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "src/os/file_pages.h"
#include "tests/support/memory_pages.h"
#include "tests/support/source_content.h"
#include "tests/support/temporary_folder.h"

namespace reshard::source_files_test {
namespace {

namespace fs = std::filesystem;
using testing::ExitedWithCode;
using testing::HasSubstr;

// Counts the descriptors and maps of files below a folder.
size_t OpenDescriptors(const fs::path& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own
    const std::string target = fs::read_symlink(entry.path(), gone);
    if (target.starts_with(folder.string() + "/")) ++count;
  }
  return count;
}

size_t Maps(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) ++count;
  }
  return count;
}

TEST(SourceFiles, NamesWithoutLooking) {
  SourceFiles files(4);
  std::vector<FileId> ids;
  ids.reserve(16384);
  for (int rank = 0; rank < 16384; ++rank) {
    ids.push_back(files.Add("/none/rank_" + std::to_string(rank) + "/a.ckpt"));
  }
  EXPECT_EQ(files.Add("/none/rank_7/a.ckpt"), ids[7]);
  EXPECT_NE(ids[7], ids[8]);
  EXPECT_EQ(files.path(ids[16383]), "/none/rank_16383/a.ckpt");
  EXPECT_TRUE(files.VerifyUnchanged().ok());
  const Status status = files.Size(ids[0]).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/none/rank_0/a.ckpt: does not exist"));
  EXPECT_TRUE(files.VerifyUnchanged().ok());
}

TEST(SourceFiles, OneOpeningThatFailsIsNotTheLast) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const FileId id = files.Add(folder.path() / "late");
  EXPECT_EQ(files.Size(id).status().code(), StatusCode::kNotFound);
  folder.Write("late", "abc");
  EXPECT_EQ(*files.Size(id), 3U);
  EXPECT_EQ(Content(files.Open(id, 0, 3)), "abc");
}

TEST(SourceFiles, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  SourceFiles files(4);
  for (const std::string& path : {pipe, folder.path().string(), std::string("/dev/zero")}) {
    SCOPED_TRACE(path);
    const FileId id = files.Add(path);
    EXPECT_EQ(files.Size(id).status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(files.Open(id, 0, 1).status().code(), StatusCode::kCorrupt);
  }
}

TEST(SourceFiles, RangesWithinAndBeyondTheFile) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  std::string bytes(2 * page + 10, 'x');
  bytes.replace(page - 2, 4, "abcd");
  SourceFiles files(4);
  const FileId id = files.Add(folder.Write("a.ckpt", bytes));
  const FileId empty = files.Add(folder.Write("empty.ckpt", ""));
  struct {
    const char* name;
    FileId file;
    uint64_t offset;
    size_t length;
    bool ok;
    std::string expected;  // content, or a part of the message
  } const rows[] = {
      {"all", id, 0, bytes.size(), true, bytes},
      {"over an edge of pages", id, page - 2, 4, true, "abcd"},
      {"last byte", id, 2 * page + 9, 1, true, "x"},
      {"nothing", id, 5, 0, true, ""},
      {"nothing at the end", id, bytes.size(), 0, true, ""},
      {"nothing of nothing", empty, 0, 0, true, ""},
      {"one too many", id, 0, bytes.size() + 1, false,
       "/a.ckpt: expected " + std::to_string(bytes.size() + 1) + " bytes at offset 0, found " +
           std::to_string(bytes.size())},
      {"beyond the end", id, 1 << 20, 1, false, "expected 1 bytes at offset 1048576, found 0"},
      {"sum wraps", id, UINT64_MAX, 2, false, "at offset 18446744073709551615, found 0"},
      {"of nothing", empty, 0, 1, false, "/empty.ckpt: expected 1 bytes at offset 0, found 0"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Result<Window> window = files.Open(row.file, row.offset, row.length);
    if (row.ok) {
      EXPECT_EQ(Content(window), row.expected);
      EXPECT_EQ(Copied(files, row.file, row.offset, row.length), row.expected);
    } else {
      EXPECT_EQ(window.status().code(), StatusCode::kCorrupt);
      EXPECT_THAT(Content(window), HasSubstr(row.expected));
      EXPECT_EQ(Copied(files, row.file, row.offset, row.length), Content(window));
    }
  }
}

TEST(SourceFiles, OffsetsBeyondFourGigabytes) {
  const TemporaryFolder folder;
  constexpr uint64_t kFour = uint64_t{4} << 30;
  constexpr uint64_t kSize = uint64_t{300} << 30;
  folder.WriteSparse("a", kSize, kFour - 2, "abcd");
  SourceFiles files(1);
  const FileId id = files.Add(folder.WriteSparse("a", kSize, kSize - 3, "xyz"));
  EXPECT_EQ(*files.Size(id), kSize);
  EXPECT_EQ(Content(files.Open(id, kFour - 2, 4)), "abcd");
  EXPECT_EQ(Copied(files, id, kFour - 1, 2), "bc");
  EXPECT_EQ(Content(files.Open(id, kSize - 3, 3)), "xyz");
  EXPECT_EQ(Copied(files, id, 0, 1), std::string(1, '\0'));
}

TEST(SourceFiles, KeepsFewFilesOpen) {
  const TemporaryFolder folder;
  constexpr size_t kFiles = 50;
  SourceFiles files(3);
  std::vector<FileId> ids;
  for (size_t i = 0; i < kFiles; ++i) {
    ids.push_back(files.Add(folder.Write(std::to_string(i), std::string(1 + i, 'x'))));
  }
  EXPECT_EQ(OpenDescriptors(folder.path()), 0U);
  for (size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(*files.Size(ids[i]), 1 + i);
    EXPECT_EQ(Copied(files, ids[(7 * i) % kFiles], 0, 1), "x");
    EXPECT_LE(OpenDescriptors(folder.path()), 3U);
  }
  // Windows hold theirs; those beyond the limit are closed as soon as they are let go.
  {
    std::vector<Window> windows;
    windows.reserve(kFiles);
    for (const FileId id : ids) windows.push_back(*files.Open(id, 0, 1));
    EXPECT_EQ(OpenDescriptors(folder.path()), kFiles);
    windows.erase(windows.begin() + 10, windows.end());
    EXPECT_EQ(OpenDescriptors(folder.path()), 10U);
    for (const Window& window : windows) EXPECT_EQ(Content(window), "x");
  }
  EXPECT_EQ(OpenDescriptors(folder.path()), 3U);
  EXPECT_TRUE(files.VerifyUnchanged().ok());
}

TEST(SourceFiles, ClosesTheFileNotUsedForLongest) {
  const TemporaryFolder folder;
  SourceFiles files(2);
  const std::string paths[] = {folder.Write("a", "a"), folder.Write("b", "b"),
                               folder.Write("c", "c")};
  const FileId a = files.Add(paths[0]);
  const FileId b = files.Add(paths[1]);
  const FileId c = files.Add(paths[2]);
  for (const FileId id : {a, b, a, c}) EXPECT_TRUE(files.Open(id, 0, 1).ok());
  EXPECT_EQ(Maps(paths[0]), 1U);
  EXPECT_EQ(Maps(paths[1]), 0U);
  EXPECT_EQ(Maps(paths[2]), 1U);
}

TEST(SourceFiles, HeadersMakeOnlyTheirPagesResident) {
  const TemporaryFolder folder;
  const size_t page = PageSize();
  constexpr size_t kHeaders = 100;
  const std::string path = folder.WriteSparse("a", 100 * kHeaders * page, 0, "");
  SourceFiles files(1);
  const FileId id = files.Add(path);
  for (size_t i = 0; i < kHeaders; ++i) {
    EXPECT_EQ(Copied(files, id, 100 * i * page + 50, 20), std::string(20, '\0'));
  }
  EXPECT_LE(CachedPages(path), kHeaders + 2);
  const size_t before = CachedPages(path);
  const Result<Window> window = files.Open(id, 64 * page, 32 * page);
  EXPECT_TRUE(window.ok());
  EXPECT_EQ(CachedPages(path), before + 32);
}

TEST(SourceFiles, WhatIsCachedIsMappedAsItIsRead) {
  const TemporaryFolder folder;
  const std::string content(kWindowBytes, 'a');
  const std::string path = folder.Write("a", content);
  SourceFiles files(1);
  const FileId id = files.Add(path);
  const Result<Window> window = files.Open(id, 0, kWindowBytes);
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(MappedPages(path), 0U);
  EXPECT_TRUE(Content(files.Open(id, 0, kWindowBytes)) == content);
  EXPECT_EQ(MappedPages(path), kWindowBytes / PageSize());
}

TEST(SourceFiles, WindowsGiveTheirPagesBack) {
  const TemporaryFolder folder;
  const std::string path = folder.WriteSparse("a", 8 * kWindowBytes, 0, "");
  const size_t pages = kWindowBytes / PageSize();
  // The kernel, too, may take pages away, at any time; but not each time.
  bool all = false;
  for (int attempt = 0; attempt < 5 && !all; ++attempt) {
    SourceFiles files({.max_open = 1, .window_budget = 2 * kWindowBytes});
    const FileId id = files.Add(path);
    all = true;
    for (uint64_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(files.Open(id, i * kWindowBytes, kWindowBytes).ok());
      const size_t mapped = MappedPages(path);
      const size_t held = std::min<uint64_t>(i + 1, 2) * pages;
      EXPECT_LE(mapped, held);
      all = all && mapped == held;
    }
    EXPECT_EQ(files.HeldPeak(), 2 * kWindowBytes);
    EXPECT_EQ(files.access_counts().mapped, 1U);
  }
  EXPECT_TRUE(all);
  EXPECT_EQ(MappedPages(path), 0U);
}

TEST(SourceFiles, AllWindowsThatNobodyUsesAreGivenBackAtOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.WriteSparse("a", 4 * kWindowBytes, 0, "");
  SourceFiles files({.max_open = 1, .window_budget = 4 * kWindowBytes});
  const FileId id = files.Add(path);
  const Result<Window> used = files.Open(id, 0, kWindowBytes);
  ASSERT_TRUE(used.ok());
  for (uint64_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(files.Open(id, i * kWindowBytes, kWindowBytes).ok());
  }
  ASSERT_EQ(files.Held(), 4 * kWindowBytes);
  files.GiveWindowsBack();
  EXPECT_EQ(files.Held(), kWindowBytes);
  EXPECT_LE(MappedPages(path), kWindowBytes / PageSize());
}

TEST(SourceFiles, ManySmallFilesStayOpenAndFewLargeMaps) {
  const TemporaryFolder folder;
  const auto open_after = [&](const std::string& name, uint64_t size) {
    SourceFiles files(100);
    for (int i = 0; i < 120; ++i) {
      EXPECT_TRUE(
          files.Size(files.Add(folder.WriteSparse(name + std::to_string(i), size, 0, ""))).ok());
    }
    return OpenDescriptors(folder.path());
  };
  EXPECT_EQ(open_after("small", kWindowBytes), 100U);
  // 64 of 1 GiB map more than is kept beyond that number.
  EXPECT_EQ(open_after("large", uint64_t{1} << 30), 64U);
}

TEST(SourceFiles, PrefetchTakesAnyRangeAndMapsNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", std::string(size_t{1} << 20, 'a'));
  SourceFiles files(1);
  const FileId id = files.Add(path);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{100}, uint64_t{1} << 20, UINT64_MAX}) {
    EXPECT_TRUE(files.Prefetch(id, offset, kWindowBytes).ok()) << offset;
  }
  EXPECT_EQ(MappedPages(path), 0U);
  EXPECT_EQ(files.Identity(id)->size(), uint64_t{1} << 20);
  EXPECT_EQ(files.Prefetch(files.Add(folder.path() / "none"), 0, 1).code(), StatusCode::kNotFound);
}

TEST(SourceFiles, MovedWindowsKeepTheirBytes) {
  const TemporaryFolder folder;
  SourceFiles files(1);
  const std::string path = folder.Write("a", "abcdef");
  const FileId id = files.Add(path);
  Window first = *files.Open(id, 0, 3);
  Window second = *files.Open(id, 3, 3);
  Window third(std::move(first));
  EXPECT_EQ(Content(third), "abc");
  third = std::move(second);
  EXPECT_EQ(Content(third), "def");
}

// Address space is short: files cannot be mapped, or hardly. The limit is set in a child.
TEST(SourceFiles, ReadsWhatCannotBeMapped) {
  const TemporaryFolder folder;
  const auto run = [&folder] {
    constexpr uint64_t kSize = uint64_t{64} << 30;
    const std::string path = folder.WriteSparse("a.ckpt", kSize, kSize / 2, "abcdef");
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * PageSize() + (uint64_t{256} << 20);
    const rlimit address_space{limit, limit};
    if (setrlimit(RLIMIT_AS, &address_space) != 0) _exit(2);
    SourceFiles files(1);
    const FileId id = files.Add(path);
    const Result<Window> window = files.Open(id, kSize / 2 - 1, 7);
    if (Maps(path) != 0) _exit(3);
    if (Content(window) != std::string("\0abcdef", 7)) _exit(4);
    if (Copied(files, id, kSize / 2, 6) != "abcdef") _exit(5);
    if (Content(files.Open(id, kSize - kWindowBytes, kWindowBytes)) !=
        std::string(kWindowBytes, '\0')) {
      _exit(6);
    }
    if (files.Open(id, kSize, 1).status().code() != StatusCode::kCorrupt) _exit(7);
    fs::resize_file(path, kSize / 2);
    const uint64_t gone = kSize / 2 + kWindowBytes;
    if (files.Open(id, gone, 1).status().code() != StatusCode::kChanged) _exit(8);
    if (files.access_counts().read != 1) _exit(9);
    _exit(0);
  };
  EXPECT_EXIT(run(), ExitedWithCode(0), "");
}

TEST(SourceFiles, ThousandsOfFilesWithFewDescriptors) {
  const TemporaryFolder folder;
  const auto run = [&folder] {
    const rlimit descriptors{32, 32};
    if (setrlimit(RLIMIT_NOFILE, &descriptors) != 0) _exit(2);
    SourceFiles files(8);
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 1000; ++i) {
        const std::string name = std::to_string(i);
        const std::string path = folder.path() / name;
        const FileId id = files.Add(round == 0 ? folder.Write(name, name) : path);
        if (Copied(files, id, 0, name.size()) != name) _exit(3);
        if (Content(files.Open(id, 0, name.size())) != name) _exit(4);
      }
    }
    if (!files.VerifyUnchanged().ok()) _exit(5);
    _exit(0);
  };
  EXPECT_EXIT(run(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace reshard::source_files_test

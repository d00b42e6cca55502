// SourceFiles, hammered by several threads at once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/io/open_files.h"
#include "src/io/source_files.h"
#include "src/io/window_cache.h"
#include "src/os/file_pages.h"
#include "src/os/local_file.h"
#include "tests/support/memory_pages.h"
#include "tests/support/temporary_folder.h"

namespace reshard::source_threads_test {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kSmallFileBytes = 64 << 10;

// The byte at `offset` of file number `file`.
char ByteAt(size_t file, uint64_t offset) {
  return static_cast<char>(file * 31 + offset * 7 + offset / 251);
}

std::string FileContent(size_t file) {
  std::string content(kSmallFileBytes, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = ByteAt(file, i);
  return content;
}

bool Holds(const std::string& found, size_t file, uint64_t offset) {
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != ByteAt(file, offset + i)) return false;
  }
  return true;
}

// Calls body(thread number) on kThreads threads and waits for them.
template <typename Body>
void OnThreads(Body body) {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([i, &body] { body(i); });
}

TEST(SourceThreads, ReadTheRightBytesWhileFilesComeAndGo) {
  constexpr size_t kFiles = 24;
  constexpr int kRounds = 400;
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (size_t i = 0; i < kFiles; ++i) {
    paths.push_back(folder.Write(std::to_string(i), FileContent(i)));
  }
  // Each thread names the files itself, and fewer may be open than there are threads.
  SourceFiles files(2);
  std::atomic<int> wrong = 0;
  OnThreads([&](size_t thread) {
    std::minstd_rand random(static_cast<unsigned>(thread));
    std::vector<Window> held;
    for (int round = 0; round < kRounds; ++round) {
      const size_t file = random() % kFiles;
      const uint64_t offset = random() % kSmallFileBytes;
      const size_t length = random() % (kSmallFileBytes - offset + 1);
      const FileId id = files.Add(paths[file]);
      std::string found(length, '?');
      Status status;
      if (round % 4 == 0) {
        status = files.Read(id, offset, std::as_writable_bytes(std::span(found)));
      } else {
        Result<Window> window = files.Open(id, offset, length);
        status = window.status();
        if (window.ok()) {
          status = window->Read(
              [&found](const std::byte* data) { std::memcpy(found.data(), data, found.size()); });
          if (round % 8 == 1) held.push_back(std::move(*window));
        }
      }
      if (!status.ok() || !Holds(found, file, offset) || *files.Size(id) != kSmallFileBytes)
        ++wrong;
      if (held.size() > 5) held.erase(held.begin());
    }
    if (!files.VerifyUnchanged().ok()) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(SourceThreads, AFileShrinksUnderAllOfThem) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", FileContent(1));
  SourceFiles files(1);
  const FileId id = files.Add(path);
  const uint64_t left = PageSize();
  ASSERT_EQ(*files.Size(id), kSmallFileBytes);
  std::atomic<int> wrong = 0;
  std::atomic<size_t> reading = 0;
  std::atomic<bool> shrunk = false;
  OnThreads([&](size_t) {
    const Result<Window> window = files.Open(id, 0, kSmallFileBytes);
    if (++reading == kThreads) {
      std::filesystem::resize_file(path, left);
      shrunk = true;
    }
    std::string found(kSmallFileBytes, '?');
    const auto copy = [&window, &found](size_t length) {
      return window->Read(
          [&found, length](const std::byte* data) { std::memcpy(found.data(), data, length); });
    };
    Status status;
    for (bool known = false; status.ok() && !known;) {
      known = shrunk;
      status = copy(kSmallFileBytes);
    }
    if (status.code() != StatusCode::kChanged) ++wrong;
    // What the file still has can still be read.
    if (!copy(left).ok() || !Holds(found.substr(0, left), 1, 0)) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(files.VerifyUnchanged().code(), StatusCode::kChanged);
}

// A thread evicts the used pages of a window, while another gives the window a buffer for others.
TEST(SourceThreads, PagesThatAreBeingEvictedAreUncountedOnce) {
  constexpr int kRounds = 40;
  constexpr uint64_t kHeaders = kWindowBytes / 4 * 3;
  // In the build folder, because the folder for temporary files may lie in memory.
  const TemporaryFolder folder(std::filesystem::path(RESHARD_BIN_DIR).parent_path());
  const std::string path = folder.Write("a", std::string(kWindowBytes, 'x'));
  for (int round = 0; round < kRounds; ++round) {
    DropPages(path);
    WindowCache cache(2 * kWindowBytes);
    {
      Result<LocalFile> source = LocalFile::Open(path);
      ASSERT_TRUE(source.ok()) << source.status().message();
      OpenFile file(std::make_unique<LocalFile>(std::move(*source)), cache);
      file.windows.PrefetchPages({0, kHeaders});
      std::string header(kHeaders - 2 * kGranuleBytes, '\0');
      const std::span<char> out = header;
      ASSERT_TRUE(file.windows.Read({0, out.size()}, std::as_writable_bytes(out)).ok());
      ASSERT_GE(cache.Pages(), kHeaders)
          << "the build folder lies in memory; this test needs a disk";
      std::jthread evicting([&cache] { cache.GiveBack(); });
      std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
      cache.SetBudget(2 * kWindowBytes, 0);
      EXPECT_TRUE(file.windows.Hold({kWindowBytes - 1, 1}).ok());
    }
    ASSERT_EQ(cache.Pages(), 0U);
    ASSERT_EQ(cache.Held(), 0U);
  }
}

}  // namespace
}  // namespace reshard::source_threads_test

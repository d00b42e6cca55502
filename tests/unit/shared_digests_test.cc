#include "src/verify/shared_digests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/digest/xxh3.h"
#include "src/io/source_files.h"
#include "src/os/threads.h"
#include "src/record/part_record.h"
#include "tests/support/temporary_folder.h"

namespace reshard::shared_digests_test {
namespace {

class SharedDigestsTest : public testing::Test {
 protected:
  // A file whose windows differ.
  std::string Write(uint64_t size) {
    const std::string path = (folder_.path() / "file").string();
    std::ofstream(path, std::ios::binary).put('a');
    std::filesystem::resize_file(path, size);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (uint64_t at = 1000; at < size; at += kWindowBytes / 3) {
      file.seekp(static_cast<std::streamoff>(at));
      file << at;
    }
    return path;
  }

  // Digests the first `size` bytes, with so many threads that help.
  Result<StoredDigests> Digest(const std::string& path, uint64_t size, size_t helpers) {
    SourceFiles files({.max_open = 4, .window_budget = 8 * kWindowBytes});
    done_ = 0;
    const std::function<void(uint64_t)> progress = [this](uint64_t bytes) { done_ += bytes; };
    SharedDigests digests(files, 1, progress);
    std::vector<Thread> threads;
    for (size_t i = 0; i < helpers; ++i) {
      auto thread = Thread::Start([&digests] { digests.Help(std::stop_token()); });
      EXPECT_TRUE(thread.ok());
      threads.push_back(*std::move(thread));
    }
    Result<StoredDigests> found = digests.Digest(files.Add(path), size, std::stop_token());
    digests.FileDone();
    for (Thread& thread : threads) thread.Join();
    return found;
  }

  TemporaryFolder folder_;
  std::atomic<uint64_t> done_ = 0;
};

TEST_F(SharedDigestsTest, AnyNumberOfThreadsGivesTheSame) {
  const uint64_t size = kDigestBlockBytes + 5 * kWindowBytes + 77;
  const std::string path = Write(size);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  for (const uint64_t length : {size, kDigestBlockBytes, kWindowBytes, uint64_t{5}, uint64_t{0}}) {
    Xxh3 whole;
    whole.Update(std::string_view(bytes).substr(0, length));
    std::vector<std::string> blocks;
    for (uint64_t at = 0; at < length; at += kDigestBlockBytes) {
      Xxh3 block;
      block.Update(std::string_view(bytes).substr(at, std::min(kDigestBlockBytes, length - at)));
      blocks.push_back(block.HexDigest());
    }
    for (const size_t helpers : {0U, 1U, 3U}) {
      const auto found = Digest(path, length, helpers);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found->file, whole.HexDigest()) << length;
      EXPECT_EQ(found->blocks, blocks) << length;
      EXPECT_EQ(done_, length);
    }
  }
}

TEST_F(SharedDigestsTest, TheFirstErrorIsReturned) {
  const uint64_t size = 6 * kWindowBytes;
  const std::string path = Write(size);
  std::string expected;
  for (const size_t helpers : {0U, 1U, 3U}) {
    const auto found = Digest(path, size + 6 * kWindowBytes, helpers);
    EXPECT_EQ(found.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(done_, size);
    if (helpers == 0) expected = found.status().message();
    EXPECT_EQ(found.status().message(), expected);
  }
}

// Returns whether `holds` does within a minute.
bool Becomes(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_F(SharedDigestsTest, AThreadWithoutAFileTakesWindows) {
  const uint64_t size = 3 * kWindowBytes;
  SourceFiles files(4);
  const auto self = std::this_thread::get_id();
  std::atomic<uint64_t> helped = 0;
  bool is_helped = true;
  SharedDigests digests(files, 1, [&](uint64_t bytes) {
    if (std::this_thread::get_id() != self) {
      helped += bytes;
    } else if (helped == 0) {
      is_helped = is_helped && Becomes([&] { return helped > 0; });
    }
  });
  auto helper = Thread::Start([&digests] { digests.Help(std::stop_token()); });
  ASSERT_TRUE(helper.ok());
  EXPECT_TRUE(digests.Digest(files.Add(Write(size)), size, std::stop_token()).ok());
  digests.FileDone();
  helper->Join();
  EXPECT_TRUE(is_helped);
}

TEST_F(SharedDigestsTest, WindowsAreReadAhead) {
  const uint64_t size = 4 * kWindowBytes;
  SourceFiles files({.window_budget = 8 * kWindowBytes, .access = IoChoice::Source::kPread});
  uint64_t done = 0;
  bool is_ahead = true;
  SharedDigests digests(files, 1, [&](uint64_t bytes) {
    done += bytes;
    // All are: there is room for them.
    is_ahead = is_ahead && Becomes([&] { return files.FilledBytes() == size; });
  });
  EXPECT_TRUE(digests.Digest(files.Add(Write(size)), size, std::stop_token()).ok());
  digests.FileDone();
  EXPECT_EQ(done, size);
  EXPECT_TRUE(is_ahead);
}

TEST_F(SharedDigestsTest, StopsOnRequest) {
  const std::string path = Write(3 * kWindowBytes);
  SourceFiles files(4);
  SharedDigests digests(files, 2, {});
  std::stop_source stop;
  stop.request_stop();
  const auto found = digests.Digest(files.Add(path), 3 * kWindowBytes, stop.get_token());
  EXPECT_EQ(found.status().code(), StatusCode::kCancelled);
  digests.Help(stop.get_token());  // does not wait for the files
}

}  // namespace
}  // namespace reshard::shared_digests_test

// A source that has what a ByteSource must have, and nothing else: bytes in memory, without a file,
// a map or pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/container_table/container_table.h"
#include "src/io/decrypted_file.h"
#include "src/io/open_files.h"
#include "src/io/window_cache.h"
#include "src/os/byte_source.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/encrypted_bytes.h"

namespace reshard::memory_source_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string bytes, bool is_remote = true)
      : ByteSource("memory", FileIdentity({.size = bytes.size()})),
        bytes_(std::move(bytes)),
        is_remote_(is_remote) {}

  uint64_t size() const override { return bytes_.size(); }
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override {
    ++reads_;
    const Status status = CheckRange(offset, destination.size());
    if (status.ok()) std::memcpy(destination.data(), bytes_.data() + offset, destination.size());
    return status;
  }
  void Prefetch(ByteRange range) const override {
    const std::scoped_lock lock(mutex_);
    prefetched_.push_back(range);
  }

  bool IsRemote() const override { return is_remote_; }

  int reads() const { return reads_; }
  std::vector<ByteRange> prefetched() const {
    const std::scoped_lock lock(mutex_);
    return prefetched_;
  }

 private:
  const std::string bytes_;
  const bool is_remote_;
  mutable std::atomic<int> reads_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<ByteRange> prefetched_;  // guarded by mutex_
};

// As many windows as there are, of which the last one is short.
std::string ManyBytes() {
  std::string bytes(3 * kWindowBytes + 12345, '\0');
  uint32_t value = 1;
  for (char& byte : bytes) {
    value = value * 1664525 + 1013904223;
    byte = static_cast<char>(value >> 24);
  }
  return bytes;
}

TEST(MemorySource, WindowsHaveItsBytes) {
  const std::string bytes = ManyBytes();
  // A window does not fit, or all of them do.
  for (const uint64_t budget : {kGranuleBytes, 8 * kWindowBytes}) {
    SCOPED_TRACE(budget);
    WindowCache cache(budget);
    OpenFile file(std::make_unique<MemorySource>(bytes), cache);
    EXPECT_EQ(file.windows.map(), nullptr);
    for (const bool ahead : {false, true}) {
      for (uint64_t offset = 0; offset < bytes.size();) {
        const uint64_t length = std::min<uint64_t>(
            {kWindowBytes - offset % kWindowBytes, 1'000'003, bytes.size() - offset});
        const ByteRange range{offset, length};
        if (ahead) file.windows.Prefetch(range);
        const auto held = file.windows.Hold(range);
        ASSERT_TRUE(held.ok()) << held.status().message();
        EXPECT_EQ(std::memcmp(held->At(offset), bytes.data() + offset, length), 0) << offset;
        std::string read(length, '\0');
        ASSERT_TRUE(file.windows.Read(range, std::as_writable_bytes(std::span(read))).ok());
        EXPECT_TRUE(bytes.compare(offset, length, read) == 0) << offset;
        offset += length;
      }
    }
  }
}

TEST(MemorySource, IsToldOfHeadersThatAreGoingToBeRead) {
  WindowCache cache(8 * kWindowBytes);
  auto source = std::make_unique<MemorySource>(ManyBytes(), false);
  const MemorySource& memory = *source;
  OpenFile file(std::move(source), cache);
  file.windows.PrefetchPages({5, 100});
  EXPECT_THAT(memory.prefetched(), Contains(ByteRange{5, 100}));
}

TEST(MemorySource, OnAServerIsAskedOnceForHeadersThatLieTogether) {
  const std::string bytes = ManyBytes();
  WindowCache cache(8 * kWindowBytes);
  auto source = std::make_unique<MemorySource>(bytes);
  const MemorySource& memory = *source;
  OpenFile file(std::move(source), cache);
  for (uint64_t offset = 0; offset < kGranuleBytes; offset += 1000) {
    std::string header(10, '\0');
    const std::span<char> out = header;
    ASSERT_TRUE(file.windows.Read({offset, out.size()}, std::as_writable_bytes(out)).ok());
    EXPECT_EQ(header, bytes.substr(offset, out.size()));
  }
  EXPECT_EQ(memory.reads(), 1);
}

TEST(MemorySource, IsDecrypted) {
  const std::string plain = ManyBytes();
  const std::string key = "0123456789abcdef";
  for (const char* mode : {"AES-GCM", "AES-CBC"}) {
    SCOPED_TRACE(mode);
    auto source = std::make_unique<MemorySource>(Encrypted(mode, key, plain, size_t{1} << 20));
    const MemorySource& memory = *source;
    const Result<std::optional<TargetSpec::EncryptionMode>> found = EncryptionModeOf(*source);
    ASSERT_TRUE(found.ok() && *found) << found.status().message();
    const auto blocks = EncryptedBlocks::Read(*source, **found, KeyOf(key));
    ASSERT_TRUE(blocks.ok()) << blocks.status().message();
    WindowCache cache(8 * kWindowBytes);
    OpenFile file(std::make_unique<DecryptedFile>(std::move(source), *blocks), cache);
    ASSERT_EQ(file.source.size(), plain.size());
    EXPECT_EQ(file.source.pages(), nullptr);
    // Within a block, over several, and all that is left.
    for (const ByteRange range : {ByteRange{5, 100}, ByteRange{(size_t{1} << 20) - 7, 3'000'000},
                                  ByteRange{plain.size() - 10'000, 10'000}}) {
      std::string read(range.length, '\0');
      const Status status =
          file.windows.Read(range, std::as_writable_bytes(std::span(read)).first(range.length));
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(plain.compare(range.offset, range.length, read) == 0) << range.offset;
    }
    EXPECT_FALSE(memory.prefetched().empty()) << "cipher bytes are asked for ahead";
  }
}

TEST(MemorySource, BlocksThatDoNotFitTheKeyAreRefused) {
  std::string bytes = Encrypted("AES-GCM", "0123456789abcdef", "plain bytes");
  bytes.back() ^= 1;
  auto source = std::make_unique<MemorySource>(std::move(bytes));
  const auto blocks = EncryptedBlocks::Read(*source, TargetSpec::EncryptionMode::kAesGcm,
                                            KeyOf("0123456789abcdef"));
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  const DecryptedFile file(std::move(source), *blocks);
  std::byte byte;
  const Status status = file.ReadAt(0, {&byte, 1});
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("memory: encrypted block 0 at offset 0"));
}

TEST(MemorySource, TablesOfAllContainersAreRead) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  const std::string files[] = {TensorValue("w", "Float32", {2, 3}, std::string(24, 'x')),
                               length + header + std::string(24, 'x')};
  for (const std::string& bytes : files) {
    WindowCache cache(kWindowBytes);
    OpenFile file(std::make_unique<MemorySource>(bytes), cache);
    const FileBytes reader = {.path = file.source.path(),
                              .size = file.source.size(),
                              .read =
                                  [&](uint64_t offset, std::span<std::byte> out) {
                                    return file.windows.Read({offset, out.size()}, out);
                                  },
                              .prefetch = [&](ByteRange range) -> Status {
                                file.windows.PrefetchPages(range);
                                return {};
                              },
                              .is_remote = file.source.IsRemote()};
    const Result<TableOfFile> read = ReadTable(reader);
    ASSERT_TRUE(read.ok()) << read.status().message();
    const StoredArray* const array = read->table->Find("w");
    ASSERT_NE(array, nullptr);
    EXPECT_EQ(array->shape, (Shape{2, 3}));
    EXPECT_EQ(array->bytes, 24U);
  }
}

}  // namespace
}  // namespace reshard::memory_source_test

// Encrypted files, read with their key by SourceFiles.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "reshard/encryption.h"
#include "src/cipher/encrypted_block.h"
#include "src/io/source_files.h"
#include "tests/support/bytes_read.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/memory_pages.h"
#include "tests/support/random_bytes.h"
#include "tests/support/says.h"
#include "tests/support/source_content.h"
#include "tests/support/temporary_folder.h"

namespace reshard::decrypted_file_test {
namespace {

using testing::HasSubstr;

constexpr std::string_view kKey = "0123456789abcdef0123456789ABCDEF";

struct ModeAndKey {
  const char* mode;
  size_t key_bytes;
};

std::string NameOfMode(const testing::TestParamInfo<ModeAndKey>& info) {
  std::string name = info.param.mode + std::to_string(info.param.key_bytes);
  name.erase(3, 1);
  return name;
}

class DecryptedFileTest : public testing::TestWithParam<ModeAndKey> {
 protected:
  std::string Encrypt(std::string_view plain, size_t block_bytes) const {
    return Encrypted(GetParam().mode, key_, plain, block_bytes);
  }
  SourceFiles::Options Options(IoChoice::Source access = IoChoice::Source::kAuto) const {
    return {.max_open = 1, .access = access, .key = KeyOf(key_)};
  }

  const std::string_view key_ = kKey.substr(0, GetParam().key_bytes);
  const TemporaryFolder folder_;
};

TEST_P(DecryptedFileTest, AnyBytesAreThoseOfThePlainFile) {
  const std::string plain = RandomBytes(100'000, 1);
  std::mt19937_64 random;  // NOLINT(cert-msc51-cpp): the same each time
  for (const size_t block_bytes : {1U, 15U, 16U, 17U, 1000U, 65536U, 100000U, 1000000U}) {
    SCOPED_TRACE(block_bytes);
    const std::string part = plain.substr(0, 300 * block_bytes);
    SourceFiles files(Options());
    const FileId file = files.Add(folder_.Write("a.ckpt", Encrypt(part, block_bytes)));
    ASSERT_TRUE(files.Size(file).ok()) << files.Size(file).status().message();
    ASSERT_EQ(*files.Size(file), part.size());
    EXPECT_EQ(Copied(files, file, 0, part.size()), part);
    for (int i = 0; i < 50; ++i) {
      const size_t offset = random() % part.size();
      const size_t length = std::min<size_t>(random() % 5000, part.size() - offset);
      EXPECT_EQ(Copied(files, file, offset, length), part.substr(offset, length));
      EXPECT_EQ(Content(files.Open(file, offset, length)), part.substr(offset, length));
    }
    EXPECT_THAT(Copied(files, file, part.size() - 1, 2), Naming(" offset "));
  }
}

TEST_P(DecryptedFileTest, BlocksNeedNotBeAsLarge) {
  const std::string plain = RandomBytes(10'000, 1);
  std::string bytes;
  size_t done = 0;
  for (const size_t length : {3000U, 17U, 4000U, 1U, 2982U}) {
    bytes += Encrypt(plain.substr(done, length), length);
    done += length;
  }
  ASSERT_EQ(done, plain.size());
  SourceFiles files(Options());
  for (const std::string& trailer : {std::string(), CrcTrailer(0)}) {
    const FileId file = files.Add(folder_.Write("a" + trailer.substr(0, 3), bytes + trailer));
    EXPECT_EQ(Copied(files, file, 0, plain.size()), plain);
    EXPECT_EQ(Copied(files, file, 3010, 10), plain.substr(3010, 10));
  }
}

// Blocks of these sizes, the last of which lies where it would if all were as large as the first.
TEST_P(DecryptedFileTest, BlocksThatOnlySeemAsLargeAreFound) {
  const bool is_gcm = std::string_view(GetParam().mode) == "AES-GCM";
  const size_t header = is_gcm ? 48 : 32;
  // As many blocks and as many bytes; then fewer blocks; and a last one that is larger.
  for (const std::vector<size_t>& blocks :
       {std::vector<size_t>{112, 48, 176, 112}, std::vector<size_t>{112, 2 * 112 + header, 112},
        std::vector<size_t>{112, 112, 300}}) {
    size_t bytes = 0;
    for (const size_t block : blocks) bytes += block;
    const std::string plain = RandomBytes(bytes, 1);
    std::string stored;
    for (size_t done = 0; const size_t block : blocks) {
      // A whole unit of padding would stand behind whole units.
      stored += Encrypt(plain.substr(done, block), block);
      done += block;
    }
    SourceFiles files(Options());
    const FileId file = files.Add(folder_.Write("a.ckpt", stored));
    // From the end, so that nothing is known of the blocks before.
    for (size_t at = bytes - 1; at < bytes; at -= std::min(at, size_t{50}) + (at == 0 ? 1 : 0)) {
      EXPECT_EQ(Copied(files, file, at, 1), plain.substr(at, 1)) << at;
    }
    EXPECT_EQ(Copied(files, file, 0, bytes), plain);
    EXPECT_EQ(*files.Size(file), bytes);
  }
}

TEST_P(DecryptedFileTest, OfManyBlocksEachIsAtItsPlace) {
  constexpr size_t kBlock = 17'000;
  constexpr size_t kBlocks = 1100;
  const std::string plain = RandomBytes(kBlocks * kBlock, 1);
  const size_t stored = Encrypt(plain.substr(0, kBlock), kBlock).size();
  const std::string even = Encrypt(plain, kBlock);
  SourceFiles files(Options());
  const FileId of_even = files.Add(folder_.Write("even.ckpt", even));
  const uint64_t before = BytesRead();
  ASSERT_EQ(*files.Size(of_even), plain.size());
  EXPECT_LT(BytesRead() - before, kBlocks * 100);
  EXPECT_EQ(Copied(files, of_even, 900 * kBlock - 5, 10), plain.substr(900 * kBlock - 5, 10));

  // Two in the middle are of other sizes.
  constexpr size_t kMore = 160;
  std::string uneven = even.substr(0, 500 * stored);
  uneven += Encrypt(plain.substr(500 * kBlock, kBlock + kMore), kBlock + kMore);
  uneven += Encrypt(plain.substr(501 * kBlock + kMore, kBlock - kMore), kBlock - kMore);
  uneven += even.substr(502 * stored);
  ASSERT_EQ(uneven.size(), even.size());
  const std::string path = folder_.Write("uneven.ckpt", uneven);
  for (const size_t first : {size_t{0}, 501 * kBlock, 1000 * kBlock}) {
    SourceFiles others(Options());
    const FileId file = others.Add(path);
    for (const size_t offset : {first, 499 * kBlock, 500 * kBlock + 7, 502 * kBlock - 3}) {
      EXPECT_EQ(Copied(others, file, offset, 2 * kBlock), plain.substr(offset, 2 * kBlock));
    }
    if (first == 0) {
      EXPECT_EQ(Copied(others, file, 0, plain.size()), plain);
    }
  }

  // Threads that open and read it at the same time.
  SourceFiles others(Options());
  const FileId file = others.Add(path);
  std::vector<std::string> found(4);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < found.size(); ++t) {
      threads.emplace_back([&, t] { found[t] = Copied(others, file, 501 * kBlock + 7 + t, 100); });
    }
  }
  for (size_t t = 0; t < found.size(); ++t) {
    EXPECT_EQ(found[t], plain.substr(501 * kBlock + 7 + t, 100)) << t;
  }
}

TEST_P(DecryptedFileTest, ADamagedHeaderIsSaidAtOnce) {
  constexpr size_t kBlock = 1000;
  const std::string plain = RandomBytes(300 * kBlock + 7, 1);
  std::string bytes = Encrypt(plain, kBlock);
  const size_t place = 100 * Encrypt(plain.substr(0, kBlock), kBlock).size();
  bytes[place] = static_cast<char>(bytes[place] ^ 4);
  SourceFiles files(Options());
  const Result<uint64_t> size = files.Size(files.Add(folder_.Write("a.ckpt", bytes)));
  ASSERT_FALSE(size.ok());
  EXPECT_THAT(size.status().message(),
              Naming(fmt::format("a.ckpt: encrypted block 100 at offset {}: ", place),
                     "expected a block of"));
}

// As reshard makes them; those of 64 MiB are read once more for their tags.
TEST_P(DecryptedFileTest, BlocksThatAWindowHasWholeAreReadOnce) {
  const std::string plain = RandomBytes(3 * kWindowBytes + 12'345, 1);
  const std::string bytes = Encrypt(plain, kPlainBlockBytes);
  SourceFiles files(Options());
  const FileId file = files.Add(folder_.Write("a.ckpt", bytes));
  const uint64_t before = BytesRead();
  for (uint64_t offset = 0; offset < plain.size(); offset += kWindowBytes) {
    const size_t length = std::min<size_t>(plain.size() - offset, kWindowBytes);
    EXPECT_EQ(Content(files.Open(file, offset, length)), plain.substr(offset, length));
  }
  const uint64_t read = BytesRead() - before;
  EXPECT_GE(read, bytes.size());
  EXPECT_LE(read, bytes.size() + bytes.size() / 100);
}

// Blocks that are larger than a window are checked several at a time where each has a header that
// is read.
TEST_P(DecryptedFileTest, ADamagedBlockIsSaidToWhoReadsIt) {
  constexpr size_t kBlock = kWindowBytes + 1000;
  const std::string plain = RandomBytes(6 * kBlock, 1);
  std::string bytes = Encrypt(plain, kBlock);
  const size_t stored = bytes.size() / 6;
  const bool has_tags = std::string_view(GetParam().mode) == "AES-GCM";
  // Of CBC only the padding tells, which is looked at with the headers.
  if (!has_tags) return;
  bytes[4 * stored + 100] = static_cast<char>(bytes[4 * stored + 100] ^ 4);
  SourceFiles files(Options());
  const FileId file = files.Add(folder_.Write("a.ckpt", bytes));
  for (const size_t block : {0U, 1U, 2U, 3U, 4U, 5U, 4U}) {
    const std::string found = Copied(files, file, block * kBlock + 7, 10);
    if (block == 4) {
      EXPECT_THAT(found, HasSubstr(fmt::format("encrypted block 4 at offset {}: ", 4 * stored)));
    } else {
      EXPECT_EQ(found, plain.substr(block * kBlock + 7, 10));
    }
  }
  // The others have been checked.
  const uint64_t before = BytesRead();
  EXPECT_EQ(Copied(files, file, 5 * kBlock, 10), plain.substr(5 * kBlock, 10));
  EXPECT_LT(BytesRead() - before, 1000U);
}

TEST_P(DecryptedFileTest, WindowsAcrossBlocksByManyThreads) {
  const std::string plain = RandomBytes(3 * kWindowBytes + 12'345, 1);
  SourceFiles files({.max_open = 1, .window_budget = kWindowBytes, .key = KeyOf(key_)});
  const FileId file = files.Add(folder_.Write("a.ckpt", Encrypt(plain, 1'000'001)));
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int i = 0; i < 8; ++i) {
        const size_t offset = random() % plain.size();
        const size_t length = std::min<size_t>(random() % kWindowBytes, plain.size() - offset);
        if (!files.Prefetch(file, offset, length).ok()) ++wrong;
        if (Content(files.Open(file, offset, length)) != plain.substr(offset, length)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(files.VerifyUnchanged().ok());
}

TEST_P(DecryptedFileTest, MappedOrReadTheBytesAreTheSame) {
  const std::string plain = RandomBytes(2 * kWindowBytes + 12'345, 1);
  const std::string path = folder_.Write("a.ckpt", Encrypt(plain, 3'000'001));
  for (const IoChoice::Source access : {IoChoice::Source::kMap, IoChoice::Source::kPread}) {
    SourceFiles files(Options(access));
    const FileId file = files.Add(path);
    for (const size_t offset : {size_t{0}, size_t{7}, size_t{1'000'000}, plain.size() - 100'000}) {
      const size_t length = std::min<size_t>(plain.size() - offset, kWindowBytes);
      EXPECT_EQ(Content(files.Open(file, offset, length)), plain.substr(offset, length));
    }
    EXPECT_EQ(files.access_counts().mapped, access == IoChoice::Source::kMap ? 1U : 0U);
  }
}

TEST_P(DecryptedFileTest, AFileThatShrinksIsToldFromADamagedOne) {
  const std::string encrypted = Encrypt(RandomBytes(3'000'000, 1), 3'000'000);
  // Behind a page, and within one: the rest of that would read as zeros in a map.
  for (const size_t left : {size_t{1} << 20, (size_t{1} << 20) + 100, encrypted.size() - 100}) {
    SCOPED_TRACE(left);
    const std::string path = folder_.Write("a.ckpt", encrypted);
    SourceFiles files(Options());
    const FileId file = files.Add(path);
    ASSERT_TRUE(files.Size(file).ok());
    std::filesystem::resize_file(path, left);
    const auto window = files.Open(file, 0, 3'000'000);
    EXPECT_EQ(window.status().code(), StatusCode::kChanged);
    EXPECT_EQ(files.VerifyUnchanged().code(), StatusCode::kChanged);
  }
}

TEST_P(DecryptedFileTest, PagesThatWereReadLeaveThePageCache) {
  const std::string plain = RandomBytes(2 * kWindowBytes + 12'345, 1);
  // In the build folder, because the folder for temporary files may lie in memory.
  const TemporaryFolder folder(std::filesystem::path(RESHARD_BIN_DIR).parent_path());
  const std::string path = folder.Write("a.ckpt", Encrypt(plain, 3'000'001));
  for (const IoChoice::Source access : {IoChoice::Source::kMap, IoChoice::Source::kPread}) {
    DropPages(path);
    ASSERT_EQ(CachedPages(path), 0U) << "the build folder lies in memory; this test needs a disk";
    SourceFiles files(Options(access));
    const FileId file = files.Add(path);
    for (size_t offset = 0; offset < plain.size(); offset += kWindowBytes) {
      const size_t length = std::min<size_t>(plain.size() - offset, kWindowBytes);
      EXPECT_EQ(Content(files.Open(file, offset, length)), plain.substr(offset, length));
    }
    // Headers of blocks stay.
    EXPECT_LE(CachedPages(path), 8U);
    EXPECT_EQ(MappedPages(path), 0U);
  }
}

// Threads only wait for the disk: for what is cached they would take the processors from those who
// decrypt it.
TEST_P(DecryptedFileTest, ThreadsReadAheadWhatIsNotCached) {
  const std::string plain = RandomBytes(2 * kWindowBytes + 12'345, 1);
  // In the build folder, as above.
  const TemporaryFolder folder(std::filesystem::path(RESHARD_BIN_DIR).parent_path());
  const std::string path = folder.Write("a.ckpt", Encrypt(plain, 3'000'001));
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  for (const bool is_cached : {true, false}) {
    SourceFiles files(Options());
    const FileId file = files.Add(path);
    ASSERT_TRUE(files.Size(file).ok());
    if (!is_cached) {
      DropPages(path);
      ASSERT_EQ(CachedPages(path), 0U) << "the build folder lies in memory; this test needs a disk";
    }
    const auto before = threads();
    ASSERT_TRUE(files.Prefetch(file, 0, plain.size()).ok());
    EXPECT_EQ(threads() > before, !is_cached);
    EXPECT_EQ(Content(files.Open(file, 7, 1'000'000)), plain.substr(7, 1'000'000));
  }
}

TEST_P(DecryptedFileTest, ATrailerBehindTheBlocksDoesNotCount) {
  const std::string plain = RandomBytes(1000, 1);
  SourceFiles files(Options());
  const FileId file = files.Add(folder_.Write("a.ckpt", Encrypt(plain, 300) + CrcTrailer(0)));
  EXPECT_EQ(Copied(files, file, 0, plain.size()), plain);
  EXPECT_EQ(*files.Size(file), plain.size());
}

TEST_P(DecryptedFileTest, AnotherKeyIsNoticedBeforeAByteIsUsed) {
  const std::string plain(1'000'000, 'x');
  const std::string path = folder_.Write("a.ckpt", Encrypt(plain, plain.size()));
  std::string other(key_);
  other.back() ^= 1;
  SourceFiles files({.max_open = 1, .key = KeyOf(other)});
  EXPECT_THAT(Copied(files, files.Add(path), 0, 10), HasSubstr("encrypted block 0 at offset 0: "));
}

TEST_P(DecryptedFileTest, PlainFilesAreReadAsTheyAre) {
  SourceFiles files(Options());
  EXPECT_EQ(Copied(files, files.Add(folder_.Write("a.ckpt", "plain bytes")), 0, 11), "plain bytes");
  EXPECT_EQ(*files.Size(files.Add(folder_.Write("b.ckpt", ""))), 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, DecryptedFileTest,
                         testing::Values(ModeAndKey{"AES-GCM", 16}, ModeAndKey{"AES-GCM", 24},
                                         ModeAndKey{"AES-GCM", 32}, ModeAndKey{"AES-CBC", 16},
                                         ModeAndKey{"AES-CBC", 24}, ModeAndKey{"AES-CBC", 32},
                                         ModeAndKey{"SM4-CBC", 16}),
                         NameOfMode);

}  // namespace
}  // namespace reshard::decrypted_file_test

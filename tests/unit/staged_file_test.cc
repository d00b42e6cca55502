// Output files: exact bytes by direct and by buffered writes, and what is refused.
#include "src/os/staged_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>

#include "tests/support/temporary_folder.h"

namespace reshard::staged_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

OutputDirectory OpenFolder(const fs::path& path) {
  auto folder = OutputDirectory::Open(path.string());
  EXPECT_TRUE(folder.ok());
  return std::move(*folder);
}

std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  // One by one the first of them only: most builds of tests are not optimized.
  const size_t first = std::min<size_t>(size, 1'000'003);
  for (size_t i = 0; i < first; ++i) bytes[i] = static_cast<char>(i * 11 + i / 256);
  for (size_t i = first; i < size; i += first) {
    std::memcpy(bytes.data() + i, bytes.data(), std::min(first, size - i));
  }
  return bytes;
}

// The bytes at an address that is `shift` beyond an aligned one.
class Shifted {
 public:
  Shifted(const std::string& bytes, size_t shift)
      : memory_(static_cast<std::byte*>(::operator new(bytes.size() + shift, kAlignment))),
        bytes_(memory_.get() + shift, bytes.size()) {
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t kAlignment{StagedFile::kAlignment};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::span<std::byte> bytes_;
};

// Writes `bytes` in chunks of these sizes, then the rest.
void Write(const fs::path& folder, const std::string& name, const std::string& bytes, size_t shift,
           const std::vector<size_t>& chunks) {
  const Shifted memory(bytes, shift);
  WriteBack write_back(64 << 20);
  auto file =
      StagedFile::Create(OpenFolder(folder), name, bytes.size(), {.write_back = &write_back});
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::span<const std::byte> rest = memory.bytes();
  const auto write = [&](size_t chunk) {
    const Status status = file->WriteAt(bytes.size() - rest.size(), rest.first(chunk));
    EXPECT_TRUE(status.ok()) << status.message();
    rest = rest.subspan(chunk);
  };
  for (const size_t chunk : chunks) write(chunk);
  write(rest.size());
  const Status status = file->Finish();
  ASSERT_TRUE(status.ok()) << status.message();
}

TEST(StagedFile, WritesExactly) {
  const struct {
    const char* name;
    size_t size;
    size_t shift;
    std::vector<size_t> chunks;
  } rows[] = {
      {"nothing", 0, 0, {}},
      {"a byte", 1, 0, {}},
      {"aligned", 3 << 20, 0, {1 << 20, 1 << 20}},
      {"aligned but for the end", (3 << 20) + 1, 0, {1 << 20, 1 << 20}},
      {"memory not aligned", 1 << 20, 8, {1 << 19}},
      {"aligned no longer", 1 << 20, 0, {1 << 19, 100, 4096}},
      {"small chunks", 10000, 0, {1, 4095, 4096, 7}},
      {"several windows of early write-back", (110 << 20) + 3, 8, {50 << 20, 10 << 20, 10 << 20}},
  };
  // The second one is a tmpfs: no direct writes before Linux 6.6.
  for (const fs::path& parent : {fs::temp_directory_path(), fs::path("/dev/shm")}) {
    const TemporaryFolder folder(parent);
    for (const auto& row : rows) {
      const std::string bytes = Bytes(row.size);
      Write(folder.path(), row.name, bytes, row.shift, row.chunks);
      EXPECT_TRUE(ReadFile(folder.path() / row.name) == bytes) << row.name << " in " << parent;
    }
  }
}

TEST(StagedFile, TakesAChunkInPieces) {
  const TemporaryFolder folder;
  auto file = StagedFile::Create(OpenFolder(folder.path()), "f", 10);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  using Pieces = std::vector<std::span<const std::byte>>;
  EXPECT_TRUE(file->WritePieces(6, Pieces({bytes("6"), bytes(""), bytes("789")})).ok());
  EXPECT_TRUE(file->WritePieces(0, Pieces({bytes("01234")})).ok());
  EXPECT_EQ(file->WritePieces(5, Pieces({bytes("5"), bytes("67890")})).code(),
            StatusCode::kInternal);
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_EQ(ReadFile(folder.path() / "f"), "0123456789");
}

TEST(StagedFile, HasOrdinaryPermissions) {
  const TemporaryFolder folder;
  const mode_t mask = umask(026);
  Write(folder.path(), "file", "x", 0, {});
  umask(mask);
  EXPECT_EQ(fs::status(folder.path() / "file").permissions(), fs::perms(0640));
}

TEST(StagedFile, ReservesItsSpace) {
  const TemporaryFolder folder;
  const auto file = StagedFile::Create(OpenFolder(folder.path()), "file", 1 << 20);
  ASSERT_TRUE(file.ok());
  struct stat status {};
  ASSERT_EQ(stat((folder.path() / "file").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 1 << 20);
}

TEST(StagedFile, ReplacesNothing) {
  const TemporaryFolder folder;
  folder.Write("there", "precious");
  fs::create_symlink(folder.path() / "there", folder.path() / "link");
  fs::create_symlink(folder.path() / "nowhere", folder.path() / "dangling");
  for (const char* name : {"there", "link", "dangling"}) {
    const auto file = StagedFile::Create(OpenFolder(folder.path()), name, 1);
    EXPECT_EQ(file.status().code(), StatusCode::kAlreadyExists) << name;
  }
  EXPECT_EQ(ReadFile(folder.path() / "there"), "precious");
  EXPECT_FALSE(fs::exists(folder.path() / "nowhere"));
}

TEST(StagedFile, TakesNeitherMoreNorLess) {
  const TemporaryFolder folder;
  const std::string bytes = Bytes(10);
  auto file = StagedFile::Create(OpenFolder(folder.path()), "file", 9);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->WriteAt(0, std::as_bytes(std::span(bytes))).code(), StatusCode::kInternal);
  EXPECT_TRUE(file->WriteAt(0, std::as_bytes(std::span(bytes).first(8))).ok());
  const Status status = file->Finish();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("8 bytes were written, expected 9"));
}

TEST(StagedFile, NoticesWhenTheFileIsCut) {
  const TemporaryFolder folder;
  auto file = StagedFile::Create(OpenFolder(folder.path()), "file", 4);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->WriteAt(0, std::as_bytes(std::span("1234", 4))).ok());
  fs::resize_file(folder.path() / "file", 3);
  const Status status = file->Finish();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), HasSubstr("has 3 bytes after 4 were written"));
}

TEST(StagedFile, ReportsSizesThatAreTooLarge) {
  const TemporaryFolder folder;
  for (const uint64_t size : {uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX}) {
    const auto file = StagedFile::Create(OpenFolder(folder.path()), std::to_string(size), size);
    EXPECT_EQ(file.status().code(), StatusCode::kIo) << size;
  }
}

TEST(StagedFile, ReportsTheLimitOfFileSizes) {
  const TemporaryFolder folder;
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit low = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const auto file = StagedFile::Create(OpenFolder(folder.path()), "file", 2 << 20);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(file.status().code(), StatusCode::kIo);
  EXPECT_THAT(file.status().message(), HasSubstr("cannot reserve 2.0 MiB: File too"));
}

}  // namespace
}  // namespace reshard::staged_file_test

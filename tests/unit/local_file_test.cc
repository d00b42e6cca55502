// Local files: what may be opened, identities, exact reads.
#include "src/os/local_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "src/os/file_identity.h"
#include "src/os/paths.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"

namespace reshard::local_file_test {
namespace {

namespace fs = std::filesystem;
using testing::ExitedWithCode;
using testing::HasSubstr;

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void MakeSocket(const std::string& path) {
  const FileDescriptor socket_end(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(bind(socket_end.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

TEST(LocalFile, OnlyRegularFilesAndNeverWaits) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe";
  const std::string socket_path = folder.path() / "socket";
  const std::string link = folder.path() / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  MakeSocket(socket_path);
  fs::create_symlink("pipe", link);
  struct {
    const char* name;
    std::string path;
    StatusCode code;
    const char* message;
  } const rows[] = {
      {"folder", folder.path(), StatusCode::kCorrupt, "expected a regular file, found a folder"},
      {"pipe", pipe, StatusCode::kCorrupt, "/pipe: expected a regular file, found a pipe"},
      {"link to a pipe", link, StatusCode::kCorrupt,
       "/link: expected a regular file, found a pipe"},
      {"device", "/dev/zero", StatusCode::kCorrupt, "expected a regular file, found a device"},
      {"socket", socket_path, StatusCode::kCorrupt, "expected a regular file, found a socket"},
      {"missing", folder.path() / "none", StatusCode::kNotFound, "/none: does not exist"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Status status = LocalFile::Open(row.path).status();
    EXPECT_EQ(status.code(), row.code);
    EXPECT_THAT(status.message(), HasSubstr(row.message));
  }
}

TEST(LocalFile, NeedsPermissionAndNoMore) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", "abc");
  fs::permissions(folder.path(), fs::perms::all);
  ASSERT_EQ(chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(LocalFile::Open(path).ok());
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // In a child without root's privileges, to whom permissions mean nothing.
  const auto open_as_nobody = [&path] {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const Status status = LocalFile::Open(path).status();
    fprintf(stderr, "%s\n", status.message().c_str());
    _exit(status.code() == StatusCode::kIo ? 0 : 1);
  };
  EXPECT_EXIT(open_as_nobody(), ExitedWithCode(0),
              "/a: cannot open: Permission denied; check the permissions");
}

TEST(LocalFile, ReadsExactlyOrSaysWhatIsMissing) {
  const TemporaryFolder folder;
  const auto file = LocalFile::Open(folder.Write("a.ckpt", "0123456789"));
  ASSERT_TRUE(file.ok());
  struct {
    const char* name;
    uint64_t offset;
    size_t length;
    const char* content;  // null: kCorrupt with `message`
    const char* message;
  } const rows[] = {
      {"all", 0, 10, "0123456789", ""},
      {"middle", 3, 2, "34", ""},
      {"nothing", 5, 0, "", ""},
      {"nothing at the end", 10, 0, "", ""},
      {"over the end", 8, 3, nullptr,
       "/a.ckpt: expected 3 bytes at offset 8, found 2: the file ends at 10"},
      {"beyond the end", 11, 0, nullptr,
       "expected 0 bytes at offset 11, found 0: the file ends at 10"},
      {"sum wraps", UINT64_MAX, 2, nullptr,
       "expected 2 bytes at offset 18446744073709551615, found 0"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<std::byte> bytes(row.length);
    const Status status = file->ReadAt(row.offset, bytes);
    if (row.content != nullptr) {
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(Text(bytes), row.content);
    } else {
      EXPECT_EQ(status.code(), StatusCode::kCorrupt);
      EXPECT_THAT(status.message(), HasSubstr(row.message));
    }
  }
}

TEST(LocalFile, SaysThatItShrank) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.ckpt", std::string(10000, 'x'));
  const auto file = LocalFile::Open(path);
  ASSERT_TRUE(file.ok());
  fs::resize_file(path, 9000);
  EXPECT_EQ(file->size(), 10000U);
  EXPECT_THAT(file->CheckUnchanged().message(), HasSubstr("9000 bytes, were 10000"));
  std::vector<std::byte> bytes(2000);
  const Status status = file->ReadAt(8000, bytes);
  EXPECT_EQ(status.code(), StatusCode::kChanged);
  EXPECT_THAT(status.message(), Naming("10000 ", "9000 "));
}

TEST(LocalFile, IsNotInherited) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", "");
  const auto file = LocalFile::Open(path);
  ASSERT_TRUE(file.ok());
  int found = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry, gone) != path) continue;
    ++found;
    EXPECT_EQ(fcntl(std::stoi(entry.path().filename()), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(found, 1);
}

TEST(FileIdentity, TellsChangesApart) {
  const FileIdentity before({.device = 1, .inode = 2, .size = 3, .mtime_ns = 4, .ctime_ns = 5});
  struct {
    const char* name;
    FileIdentity::Numbers numbers;
    const char* words;
  } const rows[] = {
      {"same", {1, 2, 3, 4, 5}, ""},
      {"device", {9, 2, 3, 4, 5}, "another file took its place"},
      {"inode", {1, 9, 3, 4, 5}, "another file took its place"},
      {"size", {1, 2, 9, 4, 5}, "9 bytes, were 3"},
      {"mtime", {1, 2, 3, 9, 5}, "its modification time (mtime) differs"},
      {"ctime", {1, 2, 3, 4, 9}, "its change time (ctime) differs"},
      {"several", {1, 2, 9, 4, 9}, "9 bytes, were 3, its change time (ctime) differs"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const FileIdentity after(row.numbers);
    EXPECT_EQ(after == before, *row.words == '\0');
    EXPECT_EQ(DescribeChange(before, after), row.words);
  }
}

TEST(FileIdentity, KeysTellFilesApart) {
  const FileIdentity one({.device = 1, .inode = 2, .size = 3});
  EXPECT_EQ(one.key(), FileIdentity({.device = 1, .inode = 2, .size = 4, .ctime_ns = 5}).key());
  EXPECT_NE(one.key(), FileIdentity({.device = 9, .inode = 2, .size = 3}).key());
  EXPECT_NE(one.key(), FileIdentity({.device = 1, .inode = 9, .size = 3}).key());
  EXPECT_TRUE(one.has_key());
  EXPECT_FALSE(FileIdentity({.size = 3}).has_key());
}

TEST(FileIdentity, SameThroughPathLinkAndDescriptor) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", "abc");
  const std::string link = folder.path() / "link";
  fs::create_symlink("a", link);
  const auto identity = IdentityOf(path);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->size(), 3U);
  EXPECT_EQ(*IdentityOf(link), *identity);
  EXPECT_EQ(LocalFile::Open(path)->identity(), *identity);
  EXPECT_EQ(IdentityOf(path + "x").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace reshard::local_file_test

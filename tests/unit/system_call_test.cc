// What a user reads when a system call fails.
#include "src/os/system_call.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace reshard::system_call_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ErrnoStatus, SaysWhatAndWhereAndWhatToDo) {
  struct {
    const char* name;
    int error;
    StatusCode code;
    const char* advice;
  } const rows[] = {
      {"missing", ENOENT, StatusCode::kNotFound, "No such file"},
      {"no space", ENOSPC, StatusCode::kIo, "free some space"},
      {"quota", EDQUOT, StatusCode::kIo, "disk quota is used up"},
      {"too large", EFBIG, StatusCode::kIo, "ulimit -f"},
      {"descriptors", EMFILE, StatusCode::kIo, "ulimit -n"},
      {"permissions", EACCES, StatusCode::kIo, "check the permissions"},
      {"memory", ENOMEM, StatusCode::kResourceExhausted, "ulimit -v"},
      {"no advice", ENOTDIR, StatusCode::kIo, "Not a directory"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Status status = ErrnoStatus(row.error, "write 10 bytes at offset 4096", "rank_0/a.ckpt");
    EXPECT_EQ(status.code(), row.code);
    EXPECT_THAT(status.message(),
                StartsWith("rank_0/a.ckpt: cannot write 10 bytes at offset 4096: "));
    EXPECT_THAT(status.message(), HasSubstr(row.advice));
  }
}

TEST(ErrnoStatus, KeepsTheNumberInOtherWords) {
  for (const char* operation : {"open", "make"}) {
    EXPECT_EQ(ErrnoStatus(ENOENT, operation, "x").system_error(), ENOENT) << operation;
  }
  const Status refused = ErrnoStatus(ENOSPC, "write", "x").WithMessage("--log-file: x");
  EXPECT_EQ(refused.system_error(), ENOSPC);
  EXPECT_EQ(refused.code(), StatusCode::kIo);
  EXPECT_EQ(refused.message(), "--log-file: x");
  EXPECT_EQ(NotFoundError("rank 3").system_error(), 0);
}

TEST(ErrnoStatus, EscapesThePath) {
  EXPECT_THAT(ErrnoStatus(EIO, "open", "a\x1b[2J\n").message(), StartsWith("a\\x1b[2J\\n: cannot"));
}

TEST(FileDescriptor, ClosesOnceAndReportsFailure) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  FileDescriptor first(fd);
  FileDescriptor second(std::move(first));
  EXPECT_EQ(second.get(), fd);
  EXPECT_TRUE(second.Close("x").ok());
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_FALSE(second.valid());
  EXPECT_TRUE(second.Close("x").ok());

  const Status status = FileDescriptor(fd).Close("x");
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), StartsWith("x: cannot close: "));
}

}  // namespace
}  // namespace reshard::system_call_test

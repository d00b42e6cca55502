#include "src/os/file_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "src/os/errno_status.h"
#include "src/os/file_stat.h"

namespace reshard {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

}  // namespace

FileIdentity IdentityFromStat(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<uint64_t>(status.st_size),
          .mtime_ns = Nanoseconds(status.st_mtim),
          .ctime_ns = Nanoseconds(status.st_ctim)};
}

Result<FileIdentity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrnoStatus(errno, "look at", path);
  return IdentityFromStat(status);
}

std::string DescribeChange(const FileIdentity& before, const FileIdentity& after) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (before.device != after.device || before.inode != after.inode) {
    add(fmt::format("another file took its place (inode {}, was {})", after.inode, before.inode));
  }
  if (before.size != after.size) add(fmt::format("{} bytes, were {}", after.size, before.size));
  if (before.mtime_ns != after.mtime_ns) add("its modification time (mtime) differs");
  if (before.ctime_ns != after.ctime_ns) add("its change time (ctime) differs");
  return text;
}

}  // namespace reshard

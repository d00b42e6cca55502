#include "src/os/system_call.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <iterator>
#include <string_view>
#include <system_error>

#include "src/base/quote.h"

namespace reshard {
namespace {

// Advice for the user; empty if only the path itself can tell.
std::string_view Advice(int error) {
  switch (error) {
    case ENOSPC:
      return "free some space there, or choose a target on another file system";
    case EDQUOT:
      return "the disk quota is used up; free some space, or choose a target on another file "
             "system";
    case EFBIG:
      return "the file exceeds the limit of this file system or of `ulimit -f`; raise the limit, "
             "or choose another target";
    case EMFILE:
      return "this process has too many open files; raise `ulimit -n`";
    case ENFILE:
      return "the whole system has too many open files; close other programs, or raise fs.file-max";
    case ENOMEM:
      return "memory or address space ran out; close other programs, or raise `ulimit -v`";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and of the folders above it";
    case EROFS:
      return "the file system is mounted read-only; choose a target on another one";
    case EXDEV:
      return "something is mounted at or above one of the two; unmount it, or choose another "
             "target folder";
    case EIO:
      return "the disk or the network file system reported an error; look at the kernel's log";
    case ESTALE:
      return "the file was replaced on the file server; start again";
    default:
      return {};
  }
}

// Returns the length of the scheme of a URL (RFC 3986); 0: `path` is none.
size_t SchemeLength(std::string_view path) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kOthers = "0123456789+-.";
  const auto is_letter = [&](char c) { return kLetters.find(c) != std::string_view::npos; };
  if (path.empty() || !is_letter(path.front())) return 0;
  const auto end = std::find_if_not(path.begin(), path.end(), [&](char c) {
    return is_letter(c) || kOthers.find(c) != std::string_view::npos;
  });
  const auto length = static_cast<size_t>(end - path.begin());
  return path.substr(length).starts_with("://") ? length : 0;
}

// Whether words are to follow: the path stands before the operation.
[[maybe_unused]] bool NeedsObject(std::string_view operation) {
  constexpr std::string_view kPrepositions[] = {" of", " for", " to", " at", " in", " from", " on"};
  return std::any_of(std::begin(kPrepositions), std::end(kPrepositions),
                     [&](std::string_view word) { return operation.ends_with(word); });
}

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return StatusCode::kNotFound;
    case ENOMEM:
      return StatusCode::kResourceExhausted;
    default:
      return StatusCode::kIo;
  }
}

}  // namespace

Status CheckIsPath(const std::string& path) {
  const size_t scheme = SchemeLength(path);
  struct stat folder {};
  if (scheme == 0 || stat(path.substr(0, scheme + 1).c_str(), &folder) == 0) return {};
  return UnsupportedError(
      fmt::format("{}: expected a path, found a URL; mount the storage as a folder, or copy the "
                  "files to a disk",
                  Escape(path)));
}

Status ErrnoStatus(int error, std::string_view operation, const std::string& path) {
  assert(!NeedsObject(operation));
  if (error == ENOENT) {
    if (Status status = CheckIsPath(path); !status.ok()) return status;
  }
  constexpr std::string_view kLooking[] = {"open", "look up", "list the folder"};
  if (error == ENOENT &&
      std::find(std::begin(kLooking), std::end(kLooking), operation) != std::end(kLooking)) {
    const bool is_pattern = path.find_first_of("*?") != std::string_view::npos;
    return {StatusCode::kNotFound,
            fmt::format("{}: does not exist{}", Escape(path),
                        is_pattern ? "; * and ? are not expanded: give the folder of the ranks, or "
                                     "a pattern with {rank}"
                                   : ""),
            error};
  }
  std::string message = fmt::format("{}: cannot {}: {}", Escape(path), operation,
                                    std::generic_category().message(error));
  if (const std::string_view advice = Advice(error); !advice.empty()) {
    message += "; ";
    message += advice;
  }
  return {CodeOf(error), std::move(message), error};
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

Status FileDescriptor::Close(const std::string& path) {
  const int fd = std::exchange(fd_, -1);
  // Linux frees the descriptor even if close fails, so a retry could close another thread's file.
  // EINTR does not say anything about the data.
  if (fd >= 0 && close(fd) != 0 && errno != EINTR) return ErrnoStatus(errno, "close", path);
  return {};
}

size_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return _POSIX_OPEN_MAX;
  return limit.rlim_cur;  // RLIM_INFINITY is the greatest number of its type
}

}  // namespace reshard

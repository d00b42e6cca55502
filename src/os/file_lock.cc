#include "src/os/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/errno_status.h"

namespace reshard {
namespace {

constexpr size_t kMaxHostBytes = 255;

constexpr int kOpenFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

int OpenAt(const OutputDirectory& folder, const std::string& name, int flags) {
  int fd = -1;
  do {
    fd = openat(folder.fd(), name.c_str(), flags | kOpenFlags, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool HasNoLocks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

}  // namespace

FileLock::FileLock(FileDescriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

Result<FileLock> FileLock::Open(const OutputDirectory& folder, const std::string& name) {
  std::string path = folder.PathOf(name);
  // For writing, because network file systems lock exclusively only what is open for it.
  FileDescriptor file(OpenAt(folder, name, O_RDWR | O_CREAT));
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  return FileLock(std::move(file), std::move(path));
}

Result<FileLock> FileLock::OpenToAsk(const OutputDirectory& folder, const std::string& name) {
  std::string path = folder.PathOf(name);
  FileDescriptor file(OpenAt(folder, name, O_RDONLY));
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  return FileLock(std::move(file), std::move(path));
}

Result<bool> FileLock::Try(Mode mode) const {
  const int operation = mode == Mode::kShared ? LOCK_SH : LOCK_EX;
  while (flock(file_.get(), operation | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return false;
    if (HasNoLocks(error)) {
      return IoError(ErrnoStatus(error, "lock", path_).message() +
                     "; the file system has no locks that keep runs apart: have it mounted with "
                     "them, or choose a target folder on another one");
    }
    if (error != EINTR) return ErrnoStatus(error, "lock", path_);
  }
  return true;
}

Status FileLock::Wait(const Patience& patience) const {
  // Asked again and again: a flock that waits would not see a stop request, and where a network
  // file system carries it, the kernel asks in the same way.
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  constexpr milliseconds kLongest(100);
  constexpr milliseconds kFirstReport(2000);
  constexpr milliseconds kLongestSilence(60000);
  const Clock::time_point begin = Clock::now();
  const auto& [most, report] = patience.waiting;
  milliseconds pause(1);
  milliseconds next_report = kFirstReport;
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (true) {
    RESHARD_ASSIGN_OR_RETURN(const bool had, Try(Mode::kExclusive));
    if (had) {
      Sign();
      return {};
    }
    const auto time = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    if (most && time >= *most) {
      const std::string holder = Holder();
      return AlreadyExistsError(fmt::format(
          "{}: held by {}, which has not let go of it within {} s; end that process, or wait for "
          "it longer",
          Escape(path_), holder.empty() ? "another process" : holder,
          std::chrono::duration_cast<std::chrono::seconds>(*most).count()));
    }
    if (report && time >= next_report) {
      report({path_, Holder(), time});
      next_report += std::min(next_report, kLongestSilence);
    }
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, patience.stop, pause, [] { return false; });
    if (patience.stop.stop_requested()) {
      return CancelledError(fmt::format("stopped while waiting for {}", Escape(path_)));
    }
    pause = std::min(2 * pause, kLongest);
  }
}

void FileLock::Sign() const {
  char host[kMaxHostBytes + 1] = {};
  if (gethostname(host, kMaxHostBytes) != 0) return;
  const std::string text = fmt::format("{} {}\n", getpid(), host);
  if (ftruncate(file_.get(), 0) != 0) return;
  static_cast<void>(pwrite(file_.get(), text.data(), text.size(), 0) == 0);
}

std::string FileLock::Holder() const {
  std::string text(kMaxHostBytes + 32, '\0');
  const ssize_t size = pread(file_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  const size_t blank = text.find(' ');
  if (!text.ends_with('\n') || blank == 0 || blank + 2 >= text.size() ||
      text.find_first_not_of("0123456789") != blank) {
    return "";
  }
  text.pop_back();
  return fmt::format("process {} on {}", text.substr(0, blank), Escape(text.substr(blank + 1)));
}

void FileLock::Unlock() const { static_cast<void>(flock(file_.get(), LOCK_UN)); }

bool FileLock::IsNamed(const OutputDirectory& root, const std::string& path) const {
  struct stat held {};
  struct stat named {};
  return fstat(file_.get(), &held) == 0 &&
         fstatat(root.fd(), path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace reshard

#include "src/os/job_lock.h"

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
#include <thread>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

constexpr size_t kMaxHostBytes = 255;

// A lock that is held for a moment, of a few system calls, is tried again. A network file system or
// a busy processor may draw the moment out.
constexpr int kAskerAttempts = 1000;
constexpr int kDyingAttempts = 200;
constexpr std::chrono::milliseconds kMomentPause(1);

bool HasNoLocks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

constexpr const char* kLockName = "lock";
constexpr const char* kBeginName = "begin";
constexpr const char* kCommitName = "commit";
constexpr const char* kCallName = "call";  // of python/reshard/mindspore/_turns.py

// A run that ends removes files and folder, perhaps between two calls here. Then the opened file is
// no longer a lock, and the next attempt makes both again. Each lost attempt means that another run
// has just ended.
constexpr int kAttempts = 100;

// The path of a lock from the target folder.
std::string PathOf(const char* name) { return fmt::format("{}/{}", JobLock::kFolderName, name); }

// Calls `attempt` until it succeeds, or fails for another reason than a removal by another run.
template <typename Attempt>
Result<JobLock> Retry(const OutputDirectory& target, const Attempt& attempt) {
  Status failure;
  for (int i = 0; i < kAttempts; ++i) {
    Result<std::optional<JobLock>> lock = attempt();
    if (lock.ok() && *lock) return std::move(**lock);
    failure = lock.ok() ? IoError(fmt::format("{}: another program keeps replacing the lock file",
                                              Escape(target.PathOf(JobLock::kFolderName))))
                        : lock.status();
    if (!lock.ok() && failure.code() != StatusCode::kNotFound) return failure;
  }
  return failure;
}

}  // namespace

FileLock::FileLock(FileDescriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

Result<FileLock> FileLock::Open(const OutputDirectory& folder, const std::string& name) {
  std::string path = folder.PathOf(name);
  // For writing, because network file systems lock exclusively only files that are open for
  // writing.
  FileDescriptor file = folder.OpenAt(name, O_RDWR | O_CREAT | O_NONBLOCK);
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  return FileLock(std::move(file), std::move(path));
}

Result<FileLock> FileLock::OpenToAsk(const OutputDirectory& folder, const std::string& name) {
  std::string path = folder.PathOf(name);
  FileDescriptor file = folder.OpenAt(name, O_RDONLY | O_NONBLOCK);
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  return FileLock(std::move(file), std::move(path));
}

Result<std::optional<FileLock::State>> FileLock::LookAt(const OutputDirectory& folder,
                                                        const std::string& name) {
  const auto file = OpenToAsk(folder, name);
  if (file.status().code() == StatusCode::kNotFound) return std::optional<State>();
  if (!file.ok()) return file.status();
  RESHARD_ASSIGN_OR_RETURN(const bool held, file->IsHeld());
  return std::optional(State{held, file->Holder()});
}

Result<bool> FileLock::Try(Mode mode) const {
  const int operation = mode == Mode::kShared ? LOCK_SH : LOCK_EX;
  while (flock(file_.get(), operation | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return false;
    if (HasNoLocks(error)) {
      const Status refused = ErrnoStatus(error, "lock", path_);
      return refused.WithMessage(
          refused.message() +
          "; this file system has no locks to keep runs apart: mount it with locks, or choose a "
          "target folder on another one");
    }
    if (error != EINTR) return ErrnoStatus(error, "lock", path_);
  }
  return true;
}

Result<bool> FileLock::TryPastAskers() const {
  for (int i = 0; i < kAskerAttempts; ++i) {
    RESHARD_ASSIGN_OR_RETURN(const bool had, Try(Mode::kExclusive));
    if (had) return true;
    RESHARD_ASSIGN_OR_RETURN(const bool shared, Try(Mode::kShared));
    if (!shared) return false;
    Unlock();
    std::this_thread::sleep_for(kMomentPause);
  }
  return false;
}

Result<std::optional<FileLock::Mode>> FileLock::TryExclusiveElseShared() const {
  for (int i = 0; i < kDyingAttempts; ++i) {
    // Shared first: if it is granted, no exclusive holder can end between two attempts.
    RESHARD_ASSIGN_OR_RETURN(const bool granted, Try(Mode::kShared));
    if (granted) {
      RESHARD_ASSIGN_OR_RETURN(const bool alone, Try(Mode::kExclusive));
      if (alone) return std::optional(Mode::kExclusive);
      RESHARD_ASSIGN_OR_RETURN(const bool shared, Try(Mode::kShared));
      if (shared) return std::optional(Mode::kShared);
    }
    std::this_thread::sleep_for(kMomentPause);
  }
  return std::optional<Mode>();
}

Result<bool> FileLock::IsHeld() const {
  RESHARD_ASSIGN_OR_RETURN(const bool shared, Try(Mode::kShared));
  if (shared) Unlock();
  return !shared;
}

Status FileLock::Wait(const Patience& patience) const {
  // Polls, because a waiting flock would not see a stop request. On a network file system, the
  // kernel polls in the same way.
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  constexpr milliseconds kLongest(100);
  constexpr milliseconds kLongestSilence(60000);
  const Clock::time_point begin = Clock::now();
  milliseconds pause(1);
  milliseconds next_report = patience.first_report;
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (true) {
    RESHARD_ASSIGN_OR_RETURN(const bool had, TryPastAskers());
    if (had) {
      Sign();
      return {};
    }
    const auto time = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    if (patience.limit && time >= *patience.limit) {
      const std::string holder = Holder();
      return AlreadyExistsError(
          fmt::format("{}: still held by {} after {} s; end that process, or wait longer",
                      Escape(path_), holder.empty() ? "another process" : holder,
                      std::chrono::duration_cast<std::chrono::seconds>(*patience.limit).count()));
    }
    if (patience.held && time >= next_report) {
      patience.held({path_, Holder(), time});
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

JobLock::JobLock(OutputDirectory folder, FileLock file)
    : folder_(std::move(folder)), file_(std::move(file)) {}

Result<JobLock> JobLock::Acquire(const OutputDirectory& target) {
  return Retry(target, [&]() -> Result<std::optional<JobLock>> {
    RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, target.MakeFolder(kFolderName));
    RESHARD_ASSIGN_OR_RETURN(FileLock file, FileLock::Open(folder, kLockName));
    RESHARD_ASSIGN_OR_RETURN(const bool had, file.Try(FileLock::Mode::kExclusive));
    if (!had) return HeldError(target);
    std::optional<JobLock> lock;
    if (file.IsNamed(target, PathOf(kLockName))) {
      lock = JobLock(std::move(folder), std::move(file));
    }
    return lock;
  });
}

Result<JobLock> JobLock::AcquireAsWorker(const OutputDirectory& target, const Patience& patience,
                                         bool waited) {
  return Retry(target, [&]() -> Result<std::optional<JobLock>> {
    std::optional<JobLock> none;
    RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, target.MakeFolder(kFolderName));
    RESHARD_ASSIGN_OR_RETURN(FileLock begin, FileLock::Open(folder, kBeginName));
    RESHARD_ASSIGN_OR_RETURN(const bool is_free, begin.TryPastAskers());
    waited = waited || !is_free;
    if (is_free) {
      begin.Sign();
    } else {
      RESHARD_RETURN_IF_ERROR(begin.Wait(patience));
    }
    RESHARD_ASSIGN_OR_RETURN(FileLock file, FileLock::Open(folder, kLockName));
    RESHARD_ASSIGN_OR_RETURN(const auto mode, file.TryExclusiveElseShared());
    if (!mode) return HeldError(target);
    RESHARD_ASSIGN_OR_RETURN(FileLock commit, FileLock::Open(folder, kCommitName));
    if (!begin.IsNamed(target, PathOf(kBeginName)) || !file.IsNamed(target, PathOf(kLockName)) ||
        !commit.IsNamed(target, PathOf(kCommitName))) {
      return none;
    }
    JobLock lock(std::move(folder), std::move(file));
    lock.begin_ = std::move(begin);
    lock.commit_ = std::move(commit);
    lock.alone_ = *mode == FileLock::Mode::kExclusive;
    lock.waited_ = waited;
    return std::optional(std::move(lock));
  });
}

Status JobLock::HeldError(const OutputDirectory& target) {
  return AlreadyExistsError(fmt::format(
      "another reshard run is writing to {}; wait until it has ended, or choose another "
      "target folder",
      Escape(target.path())));
}

Status JobLock::Check(const OutputDirectory& target) {
  const auto folder = target.OpenFolder(kFolderName);
  if (folder.status().code() == StatusCode::kNotFound) return {};
  if (!folder.ok()) return folder.status();
  const auto file = FileLock::OpenToAsk(*folder, kLockName);
  if (file.status().code() == StatusCode::kNotFound) return {};
  if (!file.ok()) return file.status();
  // Shared, so that several processes may ask at the same time.
  RESHARD_ASSIGN_OR_RETURN(const bool had, file->Try(FileLock::Mode::kShared));
  return had ? Status() : HeldError(target);
}

Result<bool> JobLock::IsWorkerBusy(const OutputDirectory& folder) {
  for (const char* name : {kBeginName, kCommitName}) {
    RESHARD_ASSIGN_OR_RETURN(const auto lock, FileLock::LookAt(folder, name));
    if (lock && lock->held) return true;
  }
  return false;
}

Status JobLock::Admit() {
  if (alone_) {
    alone_ = false;
    // Not in one step: an ordinary run may come between, and then has the folder for itself.
    RESHARD_ASSIGN_OR_RETURN(const bool shared, file_.Try(FileLock::Mode::kShared));
    if (!shared) {
      return AlreadyExistsError(
          fmt::format("another reshard run has just begun to write to {}; wait until it has ended, "
                      "or choose another target folder",
                      Escape(folder_.path())));
    }
  }
  begin_->Unlock();
  return {};
}

Status JobLock::Dismiss(const Patience& patience) const { return begin_->Wait(patience); }

Status JobLock::WaitToCommit(const Patience& patience) const { return commit_->Wait(patience); }

std::string UnfinishedTarget(const std::string& folder) {
  return fmt::format(
      "{}: a conversion into this folder is unfinished; `FindStatus` tells how far "
      "it is",
      Escape(folder));
}

Result<bool> JobLock::RemoveFolder(const OutputDirectory& target) const {
  for (const char* name : {kCallName, kCommitName, kLockName, kBeginName}) {
    RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(name));
  }
  return target.RemoveFolder(kFolderName);
}

}  // namespace reshard

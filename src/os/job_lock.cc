#include "src/os/job_lock.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr const char* kLockName = "lock";
constexpr const char* kBeginName = "begin";
constexpr const char* kCommitName = "commit";

// A run that ends removes files and folder, perhaps between any two calls here: then what was
// opened is nobody's lock any more, and the next attempt makes both anew. Each lost attempt means
// that another run has just ended.
constexpr int kAttempts = 100;

// The path of a lock from the target folder.
std::string PathOf(const char* name) { return fmt::format("{}/{}", JobLock::kFolderName, name); }

// Calls `attempt` until it has something, or fails otherwise than by what another run removed.
template <typename Attempt>
Result<JobLock> Retry(const OutputDirectory& target, const Attempt& attempt) {
  Status failure;
  for (int i = 0; i < kAttempts; ++i) {
    Result<std::optional<JobLock>> lock = attempt();
    if (lock.ok() && *lock) return std::move(**lock);
    failure = lock.ok() ? IoError(fmt::format("{}: the lock's file is replaced again and again",
                                              Escape(target.PathOf(JobLock::kFolderName))))
                        : lock.status();
    if (!lock.ok() && failure.code() != StatusCode::kNotFound) return failure;
  }
  return failure;
}

}  // namespace

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

Result<JobLock> JobLock::AcquireAsShard(const OutputDirectory& target, const Patience& patience) {
  return Retry(target, [&]() -> Result<std::optional<JobLock>> {
    std::optional<JobLock> none;
    RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, target.MakeFolder(kFolderName));
    RESHARD_ASSIGN_OR_RETURN(FileLock begin, FileLock::Open(folder, kBeginName));
    RESHARD_RETURN_IF_ERROR(begin.Wait(patience));
    RESHARD_ASSIGN_OR_RETURN(FileLock file, FileLock::Open(folder, kLockName));
    RESHARD_ASSIGN_OR_RETURN(const bool alone, file.Try(FileLock::Mode::kExclusive));
    if (!alone) {
      RESHARD_ASSIGN_OR_RETURN(const bool shared, file.Try(FileLock::Mode::kShared));
      if (!shared) return HeldError(target);
    }
    RESHARD_ASSIGN_OR_RETURN(FileLock commit, FileLock::Open(folder, kCommitName));
    if (!begin.IsNamed(target, PathOf(kBeginName)) || !file.IsNamed(target, PathOf(kLockName)) ||
        !commit.IsNamed(target, PathOf(kCommitName))) {
      return none;
    }
    JobLock lock(std::move(folder), std::move(file));
    lock.begin_ = std::move(begin);
    lock.commit_ = std::move(commit);
    lock.alone_ = alone;
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
  // Shared, so that those who only ask do not disturb each other.
  RESHARD_ASSIGN_OR_RETURN(const bool had, file->Try(FileLock::Mode::kShared));
  return had ? Status() : HeldError(target);
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

Result<bool> JobLock::RemoveFolder(const OutputDirectory& target) const {
  for (const char* name : {kCommitName, kLockName, kBeginName}) {
    RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(name));
  }
  return target.RemoveFolder(kFolderName);
}

}  // namespace reshard

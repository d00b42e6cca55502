// JobLock: the right to write to a target folder.
//
// Held by one process at a time, or by the shards of one conversion together. It ends with its
// process, however that ends. Move-only; it is let go when the object dies. Used by one thread at a
// time.
#ifndef RESHARD_SRC_OS_JOB_LOCK_H_
#define RESHARD_SRC_OS_JOB_LOCK_H_

#include <optional>
#include <string>

#include "reshard/status.h"
#include "src/os/file_lock.h"
#include "src/os/output_directory.h"

namespace reshard {

class JobLock {
 public:
  // The folder in a target folder that holds the lock and all that is unfinished.
  static constexpr const char* kFolderName = ".reshard";

  // Makes the folder and its file `lock` in `target`, and locks it.
  // Errors: kAlreadyExists when another run or a shard holds it, kIo.
  static Result<JobLock> Acquire(const OutputDirectory& target);

  // As Acquire, for a shard: waits for shards that are just beginning, and goes together with those
  // that have begun. Until Admit, no other shard begins. Errors: as Acquire; those of
  // FileLock::Wait.
  static Result<JobLock> AcquireAsShard(const OutputDirectory& target, const Patience& patience);

  // As Acquire, but only says whether the lock could be had, as far as shards do not hold it; makes
  // nothing.
  static Status Check(const OutputDirectory& target);

  // What Acquire and Check say when another run or a shard holds the lock of `target`.
  static Status HeldError(const OutputDirectory& target);

  // The folder `.reshard`.
  const OutputDirectory& folder() const { return folder_; }

  // Whether no other shard holds it. Until Admit, as it was when this one came.
  bool alone() const { return alone_; }

  // For a shard: lets others begin. Errors: kAlreadyExists when an ordinary run was faster; kIo.
  Status Admit();
  // For a shard that has been admitted: keeps others from beginning until Admit or the object's
  // end. Errors: those of FileLock::Wait.
  Status Dismiss(const Patience& patience) const;

  // For shards: held by the one that publishes. Waits for it. Errors: those of
  // FileLock::Wait.
  Status WaitToCommit(const Patience& patience) const;

  // Removes the lock's files and, if nothing else is left in it, the folder; they are made anew by
  // the next run. Returns whether the folder is gone. The lock is held until the object dies.
  Result<bool> RemoveFolder(const OutputDirectory& target) const;

 private:
  JobLock(OutputDirectory folder, FileLock file);

  OutputDirectory folder_;
  FileLock file_;
  std::optional<FileLock> begin_;   // of a shard: held while it begins
  std::optional<FileLock> commit_;  // of a shard: held while it publishes
  bool alone_ = true;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_JOB_LOCK_H_

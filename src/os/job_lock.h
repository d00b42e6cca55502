// Locks that processes hold against each other: FileLock, one file; JobLock, the right to write to
// a target folder.
#ifndef RESHARD_SRC_OS_JOB_LOCK_H_
#define RESHARD_SRC_OS_JOB_LOCK_H_

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/os/system_call.h"

namespace reshard {

// Until when to wait for a lock.
struct Patience {
  // NOLINTNEXTLINE(google-explicit-constructor): a stop token alone will do
  Patience(std::stop_token stop_token = {}) : stop(std::move(stop_token)) {}
  explicit Patience(const RunOptions& run)
      : stop(run.stop), limit(run.lock_limit), held(run.lock_held) {}

  std::stop_token stop;
  std::optional<std::chrono::milliseconds> limit = {};           // RunOptions::lock_limit
  std::function<void(const RunOptions::LockHolder&)> held = {};  // RunOptions::lock_held
  std::chrono::milliseconds first_report{2000};  // then after twice as long each time
};

// FileLock: an open file that processes lock against each other.
//
// A flock, so it belongs to the open file and ends with its process, however that ends. On network
// file systems it holds between hosts if their mounts have locks. Move-only; one thread at a time.
// Two objects exclude each other within a process, too.
class FileLock {
 public:
  enum class Mode { kExclusive, kShared };

  struct State {
    bool held = false;
    std::string holder;  // the last signature, of a process that may have ended; empty: none
  };

  // Opens `name` in `folder`, and makes it if it does not exist. Does not follow links. Not locked
  // yet.
  // Errors: kNotFound if the folder has been removed, kIo.
  static Result<FileLock> Open(const OutputDirectory& folder, const std::string& name);
  // As Open, but does not make the file; it allows kShared only. Errors: kNotFound, kIo.
  static Result<FileLock> OpenToAsk(const OutputDirectory& folder, const std::string& name);
  // Looks at the lock `name`, as IsHeld does. No value: there is no such file. Errors: kIo.
  static Result<std::optional<State>> LookAt(const OutputDirectory& folder,
                                             const std::string& name);

  // Locks, or changes the mode of a lock that is held. Returns whether it could. If not, a lock
  // that was held may be lost. Errors: kIo, for a file system without locks above all.
  Result<bool> Try(Mode mode) const;
  // As Try(kExclusive), of a lock that only askers share (IsHeld): waits for them. Then no asker
  // makes a process fail that has a right to the lock.
  Result<bool> TryPastAskers() const;
  // Locks exclusively, or else shared, and returns which. Tries for some time: a process that dies
  // frees its locks one after the other, so one that has had to hold the caller's other lock may
  // still hold this one for a moment. No value: another process goes on to hold it exclusively.
  Result<std::optional<Mode>> TryExclusiveElseShared() const;
  // Whether another process holds it exclusively. Shares the lock for a moment, so ask only for
  // locks that are taken by TryPastAskers or Wait. Errors: as Try.
  Result<bool> IsHeld() const;
  // Waits until others have released it, locks exclusively, and signs. Errors: as Try; kCancelled;
  // kAlreadyExists, naming the holder, when the patience is over.
  Status Wait(const Patience& patience) const;
  // For an exclusive lock: writes its holder into the file, for waiting processes. They are not
  // told if that fails.
  void Sign() const;
  // Returns the last signature, such as "process 4711 on node3", or "" if there is none.
  std::string Holder() const;
  void Unlock() const;

  // Whether the file is still at `path`, from `root`. If not, it was removed, and other processes
  // lock another file.
  bool IsNamed(const OutputDirectory& root, const std::string& path) const;

 private:
  FileLock(FileDescriptor file, std::string path);

  FileDescriptor file_;
  std::string path_;  // for messages
};

// JobLock: the right to write to a target folder.
//
// Held by one process at a time, or by the workers of a conversion together. It ends with its
// process, in any way that ends. Move-only; released when the object dies. Used by one thread at a
// time.
class JobLock {
 public:
  // The folder in a target folder with the lock and all unfinished files.
  static constexpr const char* kFolderName = ".reshard";

  // Makes the folder and its file `lock` in `target`, and locks it.
  // Errors: kAlreadyExists when another run or a worker holds it, kIo.
  static Result<JobLock> Acquire(const OutputDirectory& target);

  // As Acquire, for a worker: waits for workers that are just beginning, and shares the lock with
  // workers that have begun. Other workers begin only after Admit. `waited` says that the caller
  // has waited before. Errors: as Acquire and FileLock::Wait; kNotFound if `target` was removed.
  static Result<JobLock> AcquireAsWorker(const OutputDirectory& target, const Patience& patience,
                                         bool waited = false);

  // As Acquire, but only tells whether the lock is free, or held by workers; makes no files.
  static Status Check(const OutputDirectory& target);

  // Whether a worker begins or publishes at this moment, by the locks in `folder`, a `.reshard`.
  // Makes no files, and no other process fails by it. Errors: kIo.
  static Result<bool> IsWorkerBusy(const OutputDirectory& folder);

  // The error of Acquire, AcquireAsWorker and Check when others hold the lock of `target`.
  static Status HeldError(const OutputDirectory& target);

  // The folder `.reshard`.
  const OutputDirectory& folder() const { return folder_; }

  // Whether this worker alone holds it. Until Admit, this is the state when this worker came.
  bool alone() const { return alone_; }
  // Whether this worker had to wait until another one had begun.
  bool waited() const { return waited_; }

  // For a worker: lets others begin. Errors: kAlreadyExists when an ordinary run was faster; kIo.
  Status Admit();
  // For a worker that has been admitted: keeps others from beginning until Admit or the object's
  // end.
  // Errors: as FileLock::Wait.
  Status Dismiss(const Patience& patience) const;

  // For workers: waits for the lock of the publishing worker, and takes it. Errors: as
  // FileLock::Wait.
  Status WaitToCommit(const Patience& patience) const;

  // Removes the lock's files, and the folder if it is empty then. The next run makes them again.
  // Returns whether the folder is gone. The lock is held until the object dies.
  Result<bool> RemoveFolder(const OutputDirectory& target) const;

 private:
  JobLock(OutputDirectory folder, FileLock file);

  OutputDirectory folder_;
  // Freed after `file_`: a worker that gets it expects that no other one holds `file_` exclusively.
  std::optional<FileLock> begin_;  // of a worker: held while it begins
  FileLock file_;
  std::optional<FileLock> commit_;  // of a worker: held while it publishes
  bool alone_ = true;
  bool waited_ = false;
};

// Returns the message that the conversion into `folder`, which has a JobLock::kFolderName, is not
// complete, and what tells more.
std::string UnfinishedTarget(const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_JOB_LOCK_H_

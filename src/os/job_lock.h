// JobLock: the right to write to a target folder, held by one process at a time.
//
// An exclusive flock on a file, so it ends with its process, however that ends. Move-only; it is
// let go when the object dies. Any thread may hold it.
#ifndef RESHARD_SRC_OS_JOB_LOCK_H_
#define RESHARD_SRC_OS_JOB_LOCK_H_

#include <string>

#include "reshard/status.h"
#include "src/os/file_descriptor.h"
#include "src/os/output_directory.h"

namespace reshard {

class JobLock {
 public:
  // The folder in a target folder that holds the lock and all that is unfinished.
  static constexpr const char* kFolderName = ".reshard";

  // Makes the folder and its file `lock` in `target`, and locks it.
  // Errors: kAlreadyExists when another run holds it, kIo.
  static Result<JobLock> Acquire(const OutputDirectory& target);

  // As Acquire, but only says whether the lock could be had; makes nothing.
  static Status Check(const OutputDirectory& target);

  // The folder `.reshard`.
  const OutputDirectory& folder() const { return folder_; }

  // Removes the lock's file and, if nothing else is left in it, the folder; both are made anew by
  // the next run. Returns whether the folder is gone. The lock is held until the object dies.
  Result<bool> RemoveFolder(const OutputDirectory& target) const;

 private:
  JobLock(OutputDirectory folder, FileDescriptor file);

  OutputDirectory folder_;
  FileDescriptor file_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_JOB_LOCK_H_

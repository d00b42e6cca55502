// FileLock: an open file that processes lock against each other.
//
// A flock, so it belongs to the open file and ends with its process, however that ends. On network
// file systems it holds between hosts where their mounts have locks. Move-only; one thread at a
// time. Two objects exclude each other within a process, too.
#ifndef RESHARD_SRC_OS_FILE_LOCK_H_
#define RESHARD_SRC_OS_FILE_LOCK_H_

#include <stop_token>
#include <string>
#include <utility>

#include "reshard/lock_waiting.h"
#include "reshard/status.h"
#include "src/os/file_descriptor.h"
#include "src/os/output_directory.h"

namespace reshard {

// Until when to wait for a lock.
struct Patience {
  // NOLINTNEXTLINE(google-explicit-constructor): a stop token alone will do
  Patience(std::stop_token stop_token = {}, LockWaiting lock_waiting = {})
      : stop(std::move(stop_token)), waiting(std::move(lock_waiting)) {}

  std::stop_token stop;
  LockWaiting waiting;
};

class FileLock {
 public:
  enum class Mode { kExclusive, kShared };

  // Opens `name` in `folder`, made where it is not there; links are not followed. Not locked yet.
  // Errors: kNotFound when the folder has been removed, kIo.
  static Result<FileLock> Open(const OutputDirectory& folder, const std::string& name);
  // As Open, but makes nothing; only kShared can be had. Errors: kNotFound, kIo.
  static Result<FileLock> OpenToAsk(const OutputDirectory& folder, const std::string& name);

  // Locks, or changes the mode of a lock that is held. Returns whether it could; where not, a lock
  // that was held may be lost. Errors: kIo, for a file system without locks above all.
  Result<bool> Try(Mode mode) const;
  // Locks exclusively, when others have let go, and signs. Errors: those of Try; kCancelled;
  // kAlreadyExists, naming the holder, when the patience is over.
  Status Wait(const Patience& patience) const;
  // Of a lock that is held exclusively: writes into the file whose it is, for those who wait. Where
  // that fails they are not told.
  void Sign() const;
  // Returns who signed last: "process 4711 on node3", or nothing where nobody has.
  std::string Holder() const;
  void Unlock() const;

  // Whether the file is what `path`, from `root`, stands for: else it was removed, and others lock
  // another one.
  bool IsNamed(const OutputDirectory& root, const std::string& path) const;

 private:
  FileLock(FileDescriptor file, std::string path);

  FileDescriptor file_;
  std::string path_;  // for messages
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_LOCK_H_

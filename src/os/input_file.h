// InputFile: a regular file, open for reading.
//
// Owns its descriptor and closes it. Immutable once open: any number of threads may read from it.
#ifndef RESHARD_SRC_OS_INPUT_FILE_H_
#define RESHARD_SRC_OS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "reshard/status.h"
#include "src/os/paths.h"
#include "src/os/system_call.h"

namespace reshard {

class InputFile {
 public:
  // Opens without ever waiting for another process; symbolic links are followed. Reads will not
  // read ahead. Errors: kNotFound; kCorrupt for a folder, pipe, device or socket; kIo.
  static Result<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // The identity when it was opened.
  const FileIdentity& identity() const { return identity_; }
  uint64_t size() const { return identity_.size; }
  int descriptor() const { return descriptor_.get(); }

  // The identity at this moment, of the file that is open and not of what lies at its path now.
  // Errors: kIo.
  Result<FileIdentity> CurrentIdentity() const;

  // Ok when the file had these bytes when it was opened.
  // Errors: kCorrupt, naming path, offset, expected and found.
  Status CheckRange(uint64_t offset, uint64_t length) const;

  // Copies exactly `destination.size()` bytes at `offset`.
  // Errors: as CheckRange; kChanged when the file has shrunk; kIo.
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const;

  // Starts reading these bytes of the file, and does not wait for them. Where the system does not
  // do that, nothing happens.
  void Prefetch(uint64_t offset, uint64_t length) const;

  // Whether the file lies on a network or FUSE file system. There a map is slow, and a page that
  // the server does not deliver is a signal instead of an error.
  bool IsRemote() const;

 private:
  InputFile(std::string path, FileDescriptor descriptor, const FileIdentity& identity)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), identity_(identity) {}

  std::string path_;
  FileDescriptor descriptor_;
  FileIdentity identity_;
};

// Returns the content of a small file.
// Errors: as InputFile::Open and ReadAt; kCorrupt when it has more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, uint64_t limit);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_INPUT_FILE_H_

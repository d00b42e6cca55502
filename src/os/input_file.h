// Regular files that are open for reading, and maps of them: the system calls of LocalFile
// (src/io/byte_source.h).
//
// Any number of threads may read from one.
#ifndef RESHARD_SRC_OS_INPUT_FILE_H_
#define RESHARD_SRC_OS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/paths.h"
#include "src/os/system_call.h"

namespace boost::interprocess {
class mapped_region;
}  // namespace boost::interprocess

namespace reshard {

struct InputFile {
  FileDescriptor descriptor;
  FileIdentity identity;  // when it was opened
};

// As LocalFile::Open.
Result<InputFile> OpenInputFile(const std::string& path);

// In what follows, `path` is for messages.

// Errors: kIo.
Result<FileIdentity> IdentityOfOpen(int descriptor, const std::string& path);

// Copies the bytes at `offset`, as far as the file has them, and returns how many. Errors: kIo.
Result<size_t> ReadInputFile(int descriptor, const std::string& path, uint64_t offset,
                             std::span<std::byte> destination);

// Opens the file anew, for reads that pass the page cache by; owns nothing where that cannot be.
// What may be read at a time depends on the file system; whole pages into whole pages do.
FileDescriptor ReopenDirect(int descriptor);

// Starts reading these bytes of the file, and does not wait for them. Where the system does not do
// that, nothing happens.
void PrefetchInputFile(int descriptor, ByteRange range);

// FileMap: a whole file mapped for reading.
//
// Owns the map, move-only; the file may be closed meanwhile. Touch its bytes under the fault guard
// (fault_guard.h), because a file that shrinks takes its pages away. In the last page, bytes beyond
// the new end read as zeros without a sign: only the identity tells. The kernel reads ahead as it
// does for any map, unless AdviseRandom (file_pages.h) tells it not to.
class FileMap {
 public:
  // Maps the first `size` bytes, which are not none, of an open file; `path` is for messages.
  // Errors: kIo, for want of address space or because its file system has no maps.
  static Result<FileMap> Make(int descriptor, uint64_t size, const std::string& path);

  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  const std::byte* data() const;
  uint64_t size() const;

 private:
  explicit FileMap(std::unique_ptr<boost::interprocess::mapped_region> region);

  std::unique_ptr<boost::interprocess::mapped_region> region_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_INPUT_FILE_H_

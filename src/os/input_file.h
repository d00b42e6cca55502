// Regular files that are open for reading: the system calls of LocalFile (src/io/local_file.h).
//
// Any number of threads may read from one.
#ifndef RESHARD_SRC_OS_INPUT_FILE_H_
#define RESHARD_SRC_OS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/file_identity.h"
#include "src/os/system_call.h"

namespace reshard {

struct InputFile {
  FileDescriptor descriptor;
  FileIdentity identity;  // when it was opened
};

// As LocalFile::Open.
Result<InputFile> OpenInputFile(const std::string& path);

// In the functions below, `path` is for messages.

// Errors: kIo.
Result<FileIdentity> IdentityOfOpen(int descriptor, const std::string& path);

// Copies the bytes at `offset`, as far as the file has them, and returns how many. Errors: kIo.
Result<size_t> ReadInputFile(int descriptor, const std::string& path, uint64_t offset,
                             std::span<std::byte> destination);

// Opens the file again, for reads past the page cache; owns no descriptor if that is not supported.
// The sizes that may be read depend on the file system. Whole pages into whole pages always work.
FileDescriptor ReopenDirect(int descriptor);

// Makes `descriptor` stand for the open file of `other`, at once for all threads. Errors: kIo.
Status ReplaceDescriptor(int other, int descriptor, const std::string& path);

// Starts reading these bytes of the file, without waiting. Has no effect if the system does not
// support it.
void PrefetchInputFile(int descriptor, ByteRange range);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_INPUT_FILE_H_

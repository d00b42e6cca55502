// A file of a target folder, reached without following symbolic links, and the digests of its
// bytes.
//
// All state is in the arguments; any number of threads may call.
#ifndef RESHARD_SRC_VERIFY_STORED_FILE_H_
#define RESHARD_SRC_VERIFY_STORED_FILE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/damage.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/os/output_directory.h"

namespace reshard {

// A target folder: `root` is looked into, `files` reads.
struct StoredFolder {
  const OutputDirectory& root;
  SourceFiles& files;
};

// Opens the regular file at `path`, relative to the folder. Returns nothing, and says in `damage`
// what is there, when it is none, or when a folder on the way is a link or no folder.
// Errors: kIo.
Result<std::optional<FileId>> OpenStored(const StoredFolder& folder, const std::string& path,
                                         Damage& damage);

// The digests of a file's bytes, as 32 hexadecimal digits.
struct StoredDigests {
  std::string file;
  std::vector<std::string> blocks;
};

// Digests the first `size` bytes of a file, reading ahead; `progress` may be empty.
// Errors: those of SourceFiles; kCancelled.
Result<StoredDigests> DigestStored(SourceFiles& files, FileId file, uint64_t size,
                                   const std::stop_token& stop,
                                   const std::function<void(uint64_t bytes)>& progress);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STORED_FILE_H_

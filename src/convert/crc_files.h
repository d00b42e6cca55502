// The source files that state a CRC of themselves, checked before any of their bytes is used.
#ifndef RESHARD_SRC_CONVERT_CRC_FILES_H_
#define RESHARD_SRC_CONVERT_CRC_FILES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/verify/shared_work.h"

namespace reshard {

struct CrcFiles {
  std::vector<FileId> files;
  uint64_t bytes = 0;  // that a check of all reads
};

// Returns those of the files chosen for `ranks` that state one. Reads the last bytes of each.
// Errors: those of SourceFiles.
Result<CrcFiles> FindCrcFiles(OpenedSource& source, const std::set<int64_t>& ranks);

// Checks each of them, several at a time. Errors: those of CheckCrc and TableCache; kCancelled.
Status CheckCrcFiles(OpenedSource& source, const CrcFiles& files, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CRC_FILES_H_

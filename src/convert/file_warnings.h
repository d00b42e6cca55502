// Warnings about what a file holds beside arrays that are tensors.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_CONVERT_FILE_WARNINGS_H_
#define RESHARD_SRC_CONVERT_FILE_WARNINGS_H_

#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Returns the warnings about the file at `path` that a listing of its arrays needs: parts of
// tensors, tensors that cannot be read, and other values.
std::vector<Warning> ListingWarnings(const std::string& path, const IndexedFile& file);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_FILE_WARNINGS_H_

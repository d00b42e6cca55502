// Warnings about what a file holds beside arrays that are tensors.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_CONVERT_FILE_WARNINGS_H_
#define RESHARD_SRC_CONVERT_FILE_WARNINGS_H_

#include <string>
#include <vector>

#include "format/container/device_mesh.h"
#include "reshard/status.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Says that the file at `path` holds `parts` of tensors, of which there is at least one.
Warning WarningOfParts(const std::string& path, const std::vector<MeshTensor>& parts);

// Returns the warnings about the file at `path` that a listing of its arrays needs: parts of
// tensors, tensors that cannot be read, and other values.
std::vector<Warning> ListingWarnings(const std::string& path, const IndexedFile& file);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_FILE_WARNINGS_H_

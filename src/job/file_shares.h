// The share that each of n workers writes: about an equal number of bytes.
//
// Pure functions of the files' paths and sizes, so that workers do not need to communicate. Any
// thread.
#ifndef RESHARD_SRC_JOB_FILE_SHARES_H_
#define RESHARD_SRC_JOB_FILE_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "src/record/manifest_codec.h"
#include "src/write/part_sink.h"

namespace reshard {

// Returns the share of `worker`. All shares together are `files`, without overlap. A file is split
// only if it is larger than the n-th part of all bytes, and then at multiples of kDigestBlockBytes.
// Files go to the workers in the order of the numbers in their paths, because neighbouring ranks
// mostly read the same sources.
std::vector<FilePart> ShareOf(const std::vector<ManifestFile>& files, const WorkerShare& worker);

// Returns the shares of all of so many workers.
std::vector<std::vector<FilePart>> AllShares(const std::vector<ManifestFile>& files,
                                             uint64_t workers);

// Returns, for each of `files`, in how many parts the shares of `workers` workers have it, in file
// order: one part for a file that is not split.
std::vector<std::vector<ByteRange>> PartsOf(const std::vector<ManifestFile>& files,
                                            uint64_t workers);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_FILE_SHARES_H_

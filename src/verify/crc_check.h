// The check of a checkpoint file against the CRC-32 that its trailer states.
#ifndef RESHARD_SRC_VERIFY_CRC_CHECK_H_
#define RESHARD_SRC_VERIFY_CRC_CHECK_H_

#include <cstdint>
#include <functional>
#include <stop_token>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Reads the whole file of `index`, which has a trailer, and compares. MindSpore leaves the Values
// of MapTensors out of the number that it writes, so that is accepted beside the true one.
// `progress`, which may be empty, is called with the bytes read since its last call. Any thread.
// Errors: kCorrupt when the numbers differ; those of SourceFiles; kCancelled.
Status CheckCrc(SourceFiles& files, const IndexedFile& index,
                const std::function<void(uint64_t)>& progress, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_CRC_CHECK_H_

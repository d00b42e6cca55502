// The check of a checkpoint file against the CRC-32s that it states of itself and its contents.
#ifndef RESHARD_SRC_VERIFY_CRC_CHECK_H_
#define RESHARD_SRC_VERIFY_CRC_CHECK_H_

#include <cstdint>
#include <functional>
#include <stop_token>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Reads the bytes that each CRC of `file` covers, and compares. MindSpore writes other numbers in
// some cases, which are accepted, too. `progress` gets the bytes read since its last call; it may
// be empty. Any thread. Errors: kCorrupt if two numbers differ; as SourceFiles; kCancelled.
Status CheckCrc(SourceFiles& files, const IndexedFile& file,
                const std::function<void(uint64_t)>& progress, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_CRC_CHECK_H_

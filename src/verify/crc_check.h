// The check of a checkpoint file against the CRC-32 that it states of itself.
#ifndef RESHARD_SRC_VERIFY_CRC_CHECK_H_
#define RESHARD_SRC_VERIFY_CRC_CHECK_H_

#include <cstdint>
#include <functional>
#include <stop_token>

#include "format/container/file_table.h"
#include "reshard/status.h"
#include "src/io/source_files.h"

namespace reshard {

// Reads the bytes of `file` that `stated`, which is what it states of itself, is of, and compares.
// The number without the bytes that it may lack is accepted beside the true one.
// `progress`, which may be empty, is called with the bytes read since its last call. Any thread.
// Errors: kCorrupt when the numbers differ; those of SourceFiles; kCancelled.
Status CheckCrc(SourceFiles& files, FileId file, const StatedCrc& stated,
                const std::function<void(uint64_t)>& progress, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_CRC_CHECK_H_

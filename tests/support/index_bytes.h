// Indexes checkpoint bytes by way of a temporary file.
#ifndef RESHARD_TESTS_SUPPORT_INDEX_BYTES_H_
#define RESHARD_TESTS_SUPPORT_INDEX_BYTES_H_

#include <string>
#include <string_view>

#include "src/source/indexed_file.h"

namespace reshard {

// Returns the index of a file of these bytes, which messages call "net.ckpt".
Result<IndexedFile> IndexBytes(std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_INDEX_BYTES_H_

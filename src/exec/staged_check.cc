#include "src/exec/staged_check.h"

#include <algorithm>
#include <span>

#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/source/source_files.h"

namespace reshard {

Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest, const std::stop_token& stop) {
  SourceFiles files(1);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size != expected_size) return false;
  Xxh3 digest;
  for (uint64_t offset = 0; offset < size;) {
    if (stop.stop_requested()) return CancelledError("stopped on request");
    const uint64_t length = std::min(kWindowBytes, size - offset);
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, offset, length));
    RESHARD_RETURN_IF_ERROR(window.Read(
        [&digest, length](const std::byte* data) { digest.Update(std::span(data, length)); }));
    offset += length;
  }
  return digest.HexDigest() == expected_digest;
}

}  // namespace reshard

#include "src/exec/staged_check.h"

#include <span>

#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/source/in_steps.h"
#include "src/source/source_files.h"

namespace reshard {

Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest, const std::stop_token& stop) {
  SourceFiles files(1);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size != expected_size) return false;
  Xxh3 digest;
  const auto add = [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, part.offset, part.length));
    return window.Read(
        [&digest, &part](const std::byte* data) { digest.Update(std::span(data, part.length)); });
  };
  RESHARD_RETURN_IF_ERROR(InSteps({0, size}, kWindowBytes, stop, {}, add));
  return digest.HexDigest() == expected_digest;
}

}  // namespace reshard

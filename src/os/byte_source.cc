#include "src/os/byte_source.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

Status ByteSource::CheckRange(uint64_t offset, uint64_t length) const {
  if (offset <= size() && length <= size() - offset) return {};
  return CorruptError(fmt::format(
      "{}: expected {} bytes at offset {}, found {}: the file ends at {}; is it cut off?",
      Escape(path()), length, offset, offset < size() ? size() - offset : 0, size()));
}

}  // namespace reshard

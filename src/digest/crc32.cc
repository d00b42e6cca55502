#include "src/digest/crc32.h"

#include <libdeflate.h>

namespace reshard {

void Crc32::Update(std::span<const std::byte> bytes) {
  // Without bytes data() may be null, which libdeflate takes for a new beginning.
  if (!bytes.empty()) value_ = libdeflate_crc32(value_, bytes.data(), bytes.size());
}

}  // namespace reshard

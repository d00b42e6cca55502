#include "src/base/zero_byte.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

Status CheckNoZeroByte(const std::string& path, std::string_view bytes) {
  const size_t zero = bytes.find('\0');
  if (zero == std::string_view::npos) return {};
  return CorruptError(
      fmt::format("{}: expected JSON, found a zero byte at byte {}", Escape(path), zero + 1));
}

}  // namespace reshard

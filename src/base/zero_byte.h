// CheckNoZeroByte: for parsers of JSON that take a zero byte for the end, whatever follows.
#ifndef RESHARD_SRC_BASE_ZERO_BYTE_H_
#define RESHARD_SRC_BASE_ZERO_BYTE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/base/quote.h"

namespace reshard {

// `bytes` are those of the file `path`. Errors: kCorrupt. Pure; any thread.
inline Status CheckNoZeroByte(const std::string& path, std::string_view bytes) {
  const size_t zero = bytes.find('\0');
  if (zero == std::string_view::npos) return {};
  return CorruptError(Escape(path) + ": expected JSON, found a zero byte at byte " +
                      std::to_string(zero + 1));
}

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_ZERO_BYTE_H_

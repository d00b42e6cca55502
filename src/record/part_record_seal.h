// The last line of a part record: the digest of all lines before it, and the count of Values.
#ifndef RESHARD_SRC_RECORD_PART_RECORD_SEAL_H_
#define RESHARD_SRC_RECORD_PART_RECORD_SEAL_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "src/digest/xxh3.h"

namespace reshard {

// No other line begins like this.
inline constexpr std::string_view kRecordSealBegin = "{\"digest\":";

// Returns the line, its end included, that follows `lines`.
inline std::string PartRecordSeal(const Xxh3& lines, uint64_t values) {
  return fmt::format("{}\"{}\",\"values\":{}}}\n", kRecordSealBegin, lines.HexDigest(), values);
}

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_PART_RECORD_SEAL_H_

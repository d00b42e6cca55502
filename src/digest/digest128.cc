#include "src/digest/digest128.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>

namespace reshard {

std::string ToHex(const Digest128& digest) {
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

std::optional<Digest128> ParseHex(std::string_view hex) {
  constexpr size_t kDigits = 16;  // of each half
  if (hex.size() != 2 * kDigits || hex.find_first_not_of("0123456789abcdef") != hex.npos) {
    return std::nullopt;
  }
  Digest128 digest;
  std::from_chars(hex.data(), hex.data() + kDigits, digest.high, 16);
  std::from_chars(hex.data() + kDigits, hex.data() + 2 * kDigits, digest.low, 16);
  return digest;
}

}  // namespace reshard

// Little-endian words from bytes, without reading beyond them.
#ifndef RESHARD_SRC_DIGEST_LOAD_WORD_H_
#define RESHARD_SRC_DIGEST_LOAD_WORD_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/digest/digest128.h"

namespace reshard {

template <typename Integer>
Integer LoadInteger(const std::byte* bytes) {
  static_assert(std::endian::native == std::endian::little);
  Integer value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// The first `size` < 16 bytes of a word, the others 0. Two loads that may overlap are faster than a
// copy of unknown length.
inline Digest128 LoadPartOfWord(const std::byte* bytes, size_t size) {
  if (size > 8) {
    const auto last = LoadInteger<uint64_t>(bytes + size - 8);
    return {.low = LoadInteger<uint64_t>(bytes), .high = last >> (8 * (16 - size))};
  }
  if (size == 8) return {.low = LoadInteger<uint64_t>(bytes), .high = 0};
  if (size >= 4) {
    const uint64_t last = LoadInteger<uint32_t>(bytes + size - 4);
    return {.low = LoadInteger<uint32_t>(bytes) | last << (8 * (size - 4)), .high = 0};
  }
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return {.low = value, .high = 0};
}

inline Digest128 LoadWord(const std::byte* bytes) {
  return {.low = LoadInteger<uint64_t>(bytes), .high = LoadInteger<uint64_t>(bytes + 8)};
}

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_LOAD_WORD_H_

// ByteRange: a stretch of bytes in a file.
//
// Implemented in src/base (header only).
#ifndef RESHARD_BYTE_RANGE_H_
#define RESHARD_BYTE_RANGE_H_

#include <cstdint>

namespace reshard {
inline namespace v0_1 {

// Bytes [offset, offset + length) of a file. The code that makes a range checks that the sum does
// not overflow.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;

  constexpr uint64_t end() const { return offset + length; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Returns the bytes that are in both; an empty range if there are none.
constexpr ByteRange Overlap(ByteRange a, ByteRange b) {
  const uint64_t begin = a.offset > b.offset ? a.offset : b.offset;
  const uint64_t end = a.end() < b.end() ? a.end() : b.end();
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_BYTE_RANGE_H_

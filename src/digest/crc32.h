// Crc32: the CRC-32 of zlib, of a stream of bytes, as checkpoint trailers state it.
//
// A plain value. Update may be called under Guarded().
#ifndef RESHARD_SRC_DIGEST_CRC32_H_
#define RESHARD_SRC_DIGEST_CRC32_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace reshard {

class Crc32 {
 public:
  void Update(std::span<const std::byte> bytes);
  // Adds so many zero bytes, in a time that grows with the logarithm of their number.
  void UpdateZeros(uint64_t count);
  // Of all bytes so far; 0 of none.
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_CRC32_H_

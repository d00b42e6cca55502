// Digest128: a digest of 128 bits, as XXH3-128 and the logical digest give it. A plain value.
#ifndef RESHARD_SRC_DIGEST_DIGEST128_H_
#define RESHARD_SRC_DIGEST_DIGEST128_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reshard {

struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;

  friend bool operator==(const Digest128&, const Digest128&) = default;

  // Addition over GF(2): the logical digests of disjoint parts add up to the digest of their union.
  Digest128& operator^=(const Digest128& other) {
    low ^= other.low;
    high ^= other.high;
    return *this;
  }
  friend Digest128 operator^(Digest128 a, const Digest128& b) { return a ^= b; }
};

// Returns 32 lower-case hexadecimal digits, the most significant first.
std::string ToHex(const Digest128& digest);
// Sets `hex` to them.
void SetHex(const Digest128& digest, std::string& hex);

// Returns the digest that ToHex printed so, or no value for another text.
std::optional<Digest128> ParseHex(std::string_view hex);

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_DIGEST128_H_

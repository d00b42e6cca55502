// The field of the logical digest: polynomials over GF(2) modulo P = x^128 + x^7 + x^2 + x + 1,
// with the coefficient of x^k in bit k. P is primitive: the powers of x are all elements except 0.
//
// Plain arithmetic for tables and for processors without carry-less multiplication.
#ifndef RESHARD_SRC_DIGEST_GF128_H_
#define RESHARD_SRC_DIGEST_GF128_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/digest/digest128.h"

namespace reshard {

// x^128 modulo P.
inline constexpr uint64_t kFieldTail = 0x87;
inline constexpr Digest128 kFieldOne{.low = 1, .high = 0};
// x^-1, as x * (x^127 + x^6 + x + 1) = P + 1.
inline constexpr Digest128 kFieldInverseX{.low = 0x43, .high = uint64_t{1} << 63};

// x^(128 k): (x^7 + x^2 + x + 1)^k, of degree 7 k and so without reduction.
inline constexpr std::array<uint64_t, 9> kWordPowers = [] {
  std::array<uint64_t, 9> powers{1};
  for (size_t k = 1; k < powers.size(); ++k) {
    const uint64_t p = powers[k - 1];
    powers[k] = p ^ p << 1 ^ p << 2 ^ p << 7;
  }
  return powers;
}();

constexpr Digest128 TimesX128(Digest128 value) {
  // The bits that the shifts by 1, 2 and 7 push out; at most 7 bits.
  const uint64_t over = (value.high >> 63) ^ (value.high >> 62) ^ (value.high >> 57);
  const uint64_t v0 = value.low;
  const uint64_t v1 = value.high;
  return {.low = v0 ^ (v0 << 1) ^ (v0 << 2) ^ (v0 << 7) ^ over ^ (over << 1) ^ (over << 2) ^
                 (over << 7),
          .high = v1 ^ (v1 << 1 | v0 >> 63) ^ (v1 << 2 | v0 >> 62) ^ (v1 << 7 | v0 >> 57)};
}

constexpr Digest128 FieldMultiply(Digest128 a, Digest128 b) {
  // table[n] = a * n for the polynomials n of degree < 4.
  std::array<Digest128, 16> table{};
  table[1] = a;
  for (size_t n = 2; n < 16; n += 2) {
    const Digest128& half = table[n / 2];
    table[n] = {.low = half.low << 1 ^ (half.high >> 63) * kFieldTail,
                .high = half.high << 1 | half.low >> 63};
    table[n + 1] = {.low = table[n].low ^ a.low, .high = table[n].high ^ a.high};
  }
  Digest128 product;
  const auto add_digit = [&](uint64_t digit) {
    const uint64_t over = product.high >> 60;
    product = {
        .low = product.low << 4 ^ over ^ over << 1 ^ over << 2 ^ over << 7 ^ table[digit].low,
        .high = (product.high << 4 | product.low >> 60) ^ table[digit].high};
  };
  const auto digits = [](uint64_t bits) {
    return static_cast<size_t>(67 - std::countl_zero(bits)) / 4;
  };
  for (size_t i = digits(b.high); i-- > 0;) add_digit(b.high >> (4 * i) & 15);
  for (size_t i = b.high != 0 ? 16 : digits(b.low); i-- > 0;) add_digit(b.low >> (4 * i) & 15);
  return product;
}

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_GF128_H_

// The values of floats that C++ has no type for, from their bits.
//
// Without branches, so that loops over many become vector code. Pure; any thread.
#ifndef RESHARD_SRC_TENSOR_FLOAT_BITS_H_
#define RESHARD_SRC_TENSOR_FLOAT_BITS_H_

#include <bit>
#include <cstdint>

namespace reshard {

// Content is little-endian, as is every machine that this is built for.
static_assert(std::endian::native == std::endian::little);

inline float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline float Float16ToFloat(uint16_t bits) {
  constexpr uint32_t kInfinity = 0x7c00;  // the exponent of infinities and NaNs
  constexpr uint32_t kWideInfinity = 0x7f800000;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffU) << 13;
  // Subnormals become subnormals of a float, and then numbers, as the exponents differ by 127 - 15.
  const auto number = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const uint32_t special = (bits & kInfinity) == kInfinity ? kWideInfinity : 0;
  return std::bit_cast<float>(sign | number | special);
}

inline float Float8E5M2ToFloat(uint8_t bits) {
  return Float16ToFloat(static_cast<uint16_t>(bits << 8));
}

// Has no infinity: all exponent bits are a number unless all others are set too.
inline float Float8E4M3FnToFloat(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80U) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fU) << 20;
  const auto number = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p120F);
  const uint32_t special = (bits & 0x7fU) == 0x7fU ? 0x7fc00000U : 0;
  return std::bit_cast<float>(sign | number | special);
}

// Kinds without infinity and minus zero. The bits of minus zero are the NaN.

inline float Float8E4M3FnuzToFloat(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80U) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fU) << 20;
  const auto number = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p119F);
  return std::bit_cast<float>(bits == 0x80 ? 0x7fc00000U : sign | number);
}

inline float Float8E5M2FnuzToFloat(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80U) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fU) << 21;
  const auto number = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p111F);
  return std::bit_cast<float>(bits == 0x80 ? 0x7fc00000U : sign | number);
}

// An exponent: a power of two.
inline float Float8E8M0ToFloat(uint8_t bits) {
  const uint32_t subnormal = 0x00400000;  // 2^-127
  const uint32_t number = bits == 0 ? subnormal : static_cast<uint32_t>(bits) << 23;
  return std::bit_cast<float>(bits == 0xff ? 0x7fc00000U : number);
}

// Kinds in which all bits are numbers; `bits` has no others than theirs.

inline float Float4E2M1ToFloat(uint32_t bits) {
  const float number = std::bit_cast<float>((bits & 0x7U) << 22) * 0x1p126F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(number) | (bits & 0x8U) << 28);
}

inline float Float6E2M3ToFloat(uint32_t bits) {
  const float number = std::bit_cast<float>((bits & 0x1fU) << 20) * 0x1p126F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(number) | (bits & 0x20U) << 26);
}

inline float Float6E3M2ToFloat(uint32_t bits) {
  const float number = std::bit_cast<float>((bits & 0x1fU) << 21) * 0x1p124F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(number) | (bits & 0x20U) << 26);
}

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_FLOAT_BITS_H_

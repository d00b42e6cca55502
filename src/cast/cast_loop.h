// CastValues: the loops of a cast, without branches. They become vector code for the instruction
// set of the including file.
//
// Everything has internal linkage, so that each file uses its own instruction set. The file
// includes the headers that this one needs before it.
#ifndef RESHARD_SRC_CAST_CAST_LOOP_H_
#define RESHARD_SRC_CAST_CAST_LOOP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "reshard/tensor.h"
#include "src/cast/cast.h"

namespace reshard {
// NOLINTBEGIN(misc-definitions-in-headers): each file is to have its own
namespace {

// Values that are cast together, through floats that stay in the core's nearest cache.
constexpr size_t kBatch = 512;

constexpr uint32_t kSignBit = 0x80000000;
constexpr uint32_t kInfinityBits = 0x7f800000;

template <typename To, typename From>
[[gnu::always_inline]] inline To BitsOf(From value) {
  To bits;
  static_assert(sizeof(bits) == sizeof(value));
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// These turn the bits of a float16, bfloat16, float32 or float64 into those of a float.

[[gnu::always_inline]] inline uint32_t FromFloat16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffU) << 13;
  // Subnormals become subnormals of a float, and then numbers, as the exponents differ by 127 - 15.
  const auto number = BitsOf<uint32_t>(BitsOf<float>(magnitude) * 0x1p112F);
  const uint32_t special = (bits & 0x7c00U) == 0x7c00U ? kInfinityBits : 0;
  return sign | number | special;
}

[[gnu::always_inline]] inline uint32_t FromBFloat16(uint16_t bits) {
  return static_cast<uint32_t>(bits) << 16;
}

[[gnu::always_inline]] inline uint32_t FromFloat32(uint32_t bits) { return bits; }

[[gnu::always_inline]] inline uint32_t FromFloat64(uint64_t bits) {
  return BitsOf<uint32_t>(static_cast<float>(BitsOf<double>(bits)));
}

// Rounds the magnitude of a float to one with kDropped mantissa bits less and an exponent of bias
// kBias, without a limit for the exponent. A value too small for a normal number is rounded by an
// addition, to a float whose lowest bit is that of the target's subnormals.
template <uint32_t kDropped, uint32_t kBias>
[[gnu::always_inline]] inline uint32_t RoundMagnitude(uint32_t magnitude) {
  constexpr uint32_t kLeastNormal = (127 - kBias + 1) << 23;
  constexpr uint32_t kShift = (127 - kBias + 1 + kDropped) << 23;
  constexpr uint32_t kRebias = (127 - kBias) << 23;
  const uint32_t subnormal =
      BitsOf<uint32_t>(BitsOf<float>(magnitude) + BitsOf<float>(kShift)) - kShift;
  const uint32_t odd = (magnitude >> kDropped) & 1;
  const uint32_t normal =
      (magnitude - kRebias + ((uint32_t{1} << (kDropped - 1)) - 1) + odd) >> kDropped;
  return magnitude < kLeastNormal ? subnormal : normal;
}

// These turn the bits of a float into those of the target.

[[gnu::always_inline]] inline uint16_t ToFloat16(uint32_t bits) {
  const uint32_t magnitude = bits & ~kSignBit;
  uint32_t rounded = RoundMagnitude<13, 15>(magnitude);
  rounded = magnitude >= 0x47800000U ? 0x7c00U : rounded;  // 65536
  rounded = magnitude > kInfinityBits ? 0x7e00U : rounded;
  return static_cast<uint16_t>(rounded | (bits & kSignBit) >> 16);
}

[[gnu::always_inline]] inline uint16_t ToBFloat16(uint32_t bits) {
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool is_nan = (bits & ~kSignBit) > kInfinityBits;
  return static_cast<uint16_t>(is_nan ? 0x7fc0U : rounded);  // MindSpore's has no sign
}

[[gnu::always_inline]] inline uint32_t ToFloat32(uint32_t bits) { return bits; }

[[gnu::always_inline]] inline uint64_t ToFloat64(uint32_t bits) {
  return BitsOf<uint64_t>(static_cast<double>(BitsOf<float>(bits)));
}

// It has no infinity, so a value that is too large becomes NaN.
[[gnu::always_inline]] inline uint8_t ToFloat8E4M3FN(uint32_t bits) {
  const uint32_t magnitude = bits & ~kSignBit;
  uint32_t rounded = RoundMagnitude<20, 7>(magnitude);
  rounded = magnitude > 0x43e80000U ? 0x7fU : rounded;  // 464: ties with 448 and goes there
  return static_cast<uint8_t>(rounded | (bits & kSignBit) >> 24);
}

[[gnu::always_inline]] inline uint8_t ToFloat8E5M2(uint32_t bits) {
  const uint32_t magnitude = bits & ~kSignBit;
  uint32_t rounded = RoundMagnitude<21, 15>(magnitude);
  rounded = magnitude >= 0x47800000U ? 0x7cU : rounded;  // 65536
  rounded = magnitude > kInfinityBits ? 0x7eU : rounded;
  return static_cast<uint8_t>(rounded | (bits & kSignBit) >> 24);
}

// Loops over values of one dtype. Source and target need no alignment.

template <typename From, uint32_t (*kToFloat)(From)>
[[gnu::always_inline]] inline void Widen(const std::byte* values, size_t count, uint32_t* floats) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    __builtin_memcpy(&value, values + i * sizeof(From), sizeof(From));
    floats[i] = kToFloat(value);
  }
}

// Of a batch, so that the counts are as wide as floats.
struct BatchLoss {
  uint32_t overflowed = 0;
  uint32_t zeroed = 0;
};

// Returns how many finite doubles have no finite float, and how many nonzero doubles have the float
// 0. It counts non-finite (or zero) values among the floats, and subtracts those among the doubles.
// So each loop has lanes of one width.
[[gnu::always_inline]] inline BatchLoss CountLost(const std::byte* values, size_t count,
                                                  const uint32_t* floats) {
  constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
  BatchLoss lost;
  for (size_t i = 0; i < count; ++i) {
    lost.overflowed += static_cast<uint32_t>((floats[i] & kInfinityBits) == kInfinityBits);
    lost.zeroed += static_cast<uint32_t>(floats[i] << 1 == 0);
  }
  uint64_t not_finite = 0;
  uint64_t zeros = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t value;
    __builtin_memcpy(&value, values + i * sizeof(value), sizeof(value));
    not_finite += static_cast<uint64_t>((value & kInfinity) == kInfinity);
    zeros += static_cast<uint64_t>(value << 1 == 0);
  }
  lost.overflowed -= static_cast<uint32_t>(not_finite);
  lost.zeroed -= static_cast<uint32_t>(zeros);
  return lost;
}

// The magnitudes of floats that a target has no finite number for: from kOverflow on. Those up to
// kZero become zero.
template <uint32_t kOverflow, uint32_t kZero>
struct Range {
  // Adds a float to `lost`. Zero wraps around.
  [[gnu::always_inline]] static void Count(uint32_t bits, BatchLoss& lost) {
    const uint32_t magnitude = bits & ~kSignBit;
    lost.overflowed += static_cast<uint32_t>(magnitude - kOverflow < kInfinityBits - kOverflow);
    lost.zeroed += static_cast<uint32_t>(magnitude - 1 < kZero);
  }
};

using Float16Range = Range<0x477ff000, 0x33000000>;       // 65520, 2^-25
using BFloat16Range = Range<0x7f7f8000, 0x00008000>;      // 2^128 - 2^119, 2^-134
using Float8E4M3FNRange = Range<0x43e80001, 0x3a800000>;  // above 464, 2^-10
using Float8E5M2Range = Range<0x47700000, 0x37000000>;    // 61440, 2^-17

// Has room for all floats.
struct WholeRange {
  [[gnu::always_inline]] static void Count(uint32_t /*bits*/, BatchLoss& /*lost*/) {}
};

// Stores the targets.
template <typename To, To (*kFromFloat)(uint32_t), typename TargetRange = WholeRange>
[[gnu::always_inline]] inline BatchLoss Narrow(const uint32_t* floats, size_t count,
                                               std::byte* out) {
  BatchLoss lost;
  for (size_t i = 0; i < count; ++i) {
    const To value = kFromFloat(floats[i]);
    __builtin_memcpy(out + i * sizeof(To), &value, sizeof(To));
    TargetRange::Count(floats[i], lost);
  }
  return lost;
}

BatchLoss ToFloats(DType from, const std::byte* values, size_t count, uint32_t* floats) {
  switch (from) {
    case DType::kFloat16:
      Widen<uint16_t, FromFloat16>(values, count, floats);
      return {};
    case DType::kBFloat16:
      Widen<uint16_t, FromBFloat16>(values, count, floats);
      return {};
    case DType::kFloat64:
      Widen<uint64_t, FromFloat64>(values, count, floats);
      return CountLost(values, count, floats);
    default:
      Widen<uint32_t, FromFloat32>(values, count, floats);
      return {};
  }
}

BatchLoss FromFloats(DType to, const uint32_t* floats, size_t count, std::byte* out) {
  switch (to) {
    case DType::kFloat16:
      return Narrow<uint16_t, ToFloat16, Float16Range>(floats, count, out);
    case DType::kBFloat16:
      return Narrow<uint16_t, ToBFloat16, BFloat16Range>(floats, count, out);
    case DType::kFloat64:
      return Narrow<uint64_t, ToFloat64>(floats, count, out);
    case DType::kFloat8E4M3FN:
      return Narrow<uint8_t, ToFloat8E4M3FN, Float8E4M3FNRange>(floats, count, out);
    case DType::kFloat8E5M2:
      return Narrow<uint8_t, ToFloat8E5M2, Float8E5M2Range>(floats, count, out);
    default:
      return Narrow<uint32_t, ToFloat32>(floats, count, out);
  }
}

CastLoss CastValues(DType from, DType to, const std::byte* values, size_t count, std::byte* out) {
  uint32_t floats[kBatch];
  CastLoss lost;
  const size_t of_value = from == DType::kFloat64 ? 8 : from == DType::kFloat32 ? 4 : 2;
  const size_t of_target = to == DType::kFloat64                             ? 8
                           : to == DType::kFloat32                           ? 4
                           : to == DType::kFloat16 || to == DType::kBFloat16 ? 2
                                                                             : 1;
  for (size_t done = 0; done < count; done += kBatch) {
    const size_t batch = count - done < kBatch ? count - done : kBatch;
    const BatchLoss widened = ToFloats(from, values + done * of_value, batch, floats);
    const BatchLoss narrowed = FromFloats(to, floats, batch, out + done * of_target);
    lost.overflowed += uint64_t{widened.overflowed} + narrowed.overflowed;
    lost.zeroed += uint64_t{widened.zeroed} + narrowed.zeroed;
  }
  return lost;
}

}  // namespace
// NOLINTEND(misc-definitions-in-headers)
}  // namespace reshard

#endif  // RESHARD_SRC_CAST_CAST_LOOP_H_

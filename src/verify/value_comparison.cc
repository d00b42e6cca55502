#include "src/verify/value_comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/tensor/float_bits.h"

namespace reshard {
namespace {

double ToDouble(DType dtype, uint16_t bits) {
  return dtype == DType::kFloat16 ? Float16ToFloat(bits) : BFloat16ToFloat(bits);
}
double ToDouble(DType, uint32_t bits) { return std::bit_cast<float>(bits); }
double ToDouble(DType, uint64_t bits) { return std::bit_cast<double>(bits); }

template <typename Bits>
void CompareBits(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                 ValueDifference& difference) {
  for (size_t i = 0; i + sizeof(Bits) <= a.size(); i += sizeof(Bits)) {
    Bits bits_a;
    Bits bits_b;
    std::memcpy(&bits_a, a.data() + i, sizeof(Bits));
    std::memcpy(&bits_b, b.data() + i, sizeof(Bits));
    if (bits_a == bits_b) continue;
    const double value_a = ToDouble(dtype, bits_a);
    const double value_b = ToDouble(dtype, bits_b);
    if (std::isnan(value_a) && std::isnan(value_b)) {
      ++difference.nan_against_nan;
    } else if (std::isnan(value_a) || std::isnan(value_b)) {
      ++difference.nan_against_number;
    } else {
      ++difference.numbers;
      difference.greatest = std::max(difference.greatest, std::fabs(value_a - value_b));
    }
  }
}

}  // namespace

bool HasComparableValues(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

void CompareValues(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                   ValueDifference& difference) {
  switch (ItemBytes(dtype)) {
    case 2:
      return CompareBits<uint16_t>(dtype, a, b, difference);
    case 4:
      return CompareBits<uint32_t>(dtype, a, b, difference);
    default:
      return CompareBits<uint64_t>(dtype, a, b, difference);
  }
}

void AddValues(const ValueDifference& other, ValueDifference& difference) {
  difference.numbers += other.numbers;
  difference.nan_against_number += other.nan_against_number;
  difference.nan_against_nan += other.nan_against_nan;
  difference.greatest = std::max(difference.greatest, other.greatest);
}

}  // namespace reshard

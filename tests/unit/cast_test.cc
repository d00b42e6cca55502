// Casts: every kernel against a plain reference, for all values of 16 bits and many others.
#include "src/cast/cast.h"

#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/cast/cast_kernel.h"

namespace reshard::cast_test {
namespace {

constexpr DType kSources[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
constexpr DType kTargets[] = {DType::kFloat16, DType::kBFloat16,     DType::kFloat32,
                              DType::kFloat64, DType::kFloat8E4M3FN, DType::kFloat8E5M2};

// What a format of less than 32 bits is: sign, exponent and mantissa.
struct Format {
  int mantissa;
  int bias;
  uint32_t special;  // the magnitude of infinity, or of NaN where there is none
  bool has_infinity;
  uint32_t nan;  // the magnitude that NaN is cast to
  bool nan_has_sign;
  int bits;
};

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {10, 15, 0x7c00, true, 0x7e00, true, 16};
    case DType::kBFloat16:
      return {7, 127, 0x7f80, true, 0x7fc0, false, 16};
    case DType::kFloat8E4M3FN:
      return {3, 7, 0x7f, false, 0x7f, true, 8};
    default:
      return {2, 15, 0x7c, true, 0x7e, true, 8};  // Float8E5M2
  }
}

// The value of a magnitude, exactly; that of the special ones as if exponents went on.
double ValueOf(const Format& format, uint32_t magnitude) {
  const uint32_t exponent = magnitude >> format.mantissa;
  const double fraction = magnitude & ((1U << format.mantissa) - 1);
  const double whole = std::ldexp(1.0, format.mantissa);
  return exponent == 0 ? std::ldexp(fraction / whole, 1 - format.bias)
                       : std::ldexp(1 + fraction / whole, static_cast<int>(exponent) - format.bias);
}

// The magnitude whose value is nearest, by bisection; of two the even one.
uint32_t Nearest(const Format& format, double value) {
  uint32_t low = 0;
  uint32_t high = format.special;  // what lies beyond is special, too
  if (value >= ValueOf(format, high)) return high;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (ValueOf(format, middle) <= value ? low : high) = middle;
  }
  const double below = value - ValueOf(format, low);
  const double above = ValueOf(format, high) - value;
  if (below == above) return low % 2 == 0 ? low : high;
  return below < above ? low : high;
}

// To float32, as the rules say: 16 bits keep all bits of a NaN.
uint32_t ToFloat(DType from, uint64_t bits) {
  if (from == DType::kFloat32) return static_cast<uint32_t>(bits);
  if (from == DType::kFloat64) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  }
  if (from == DType::kBFloat16) return static_cast<uint32_t>(bits) << 16;
  const Format format = FormatOf(from);
  const auto magnitude = static_cast<uint32_t>(bits & 0x7fff);
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  if (magnitude >= format.special) return sign | 0x7f800000 | (magnitude & 0x3ff) << 13;
  return sign | std::bit_cast<uint32_t>(static_cast<float>(ValueOf(format, magnitude)));
}

uint64_t FromFloat(DType to, uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (to == DType::kFloat32) return bits;
  if (to == DType::kFloat64) return std::bit_cast<uint64_t>(static_cast<double>(value));
  const Format format = FormatOf(to);
  const uint32_t sign = (bits >> 31) << (format.bits - 1);
  if (std::isnan(value)) return format.nan | (format.nan_has_sign ? sign : 0);
  if (std::isinf(value)) return format.special | sign;
  return Nearest(format, std::fabs(static_cast<double>(value))) | sign;
}

bool IsZero(DType dtype, uint64_t bits) { return bits << (64 - 8 * ItemBytes(dtype)) << 1 == 0; }

bool IsFinite(DType dtype, uint64_t bits) {
  if (dtype == DType::kFloat64) return std::isfinite(std::bit_cast<double>(bits));
  if (dtype == DType::kFloat32) {
    return std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  const Format format = FormatOf(dtype);
  return (bits & ((uint64_t{1} << (format.bits - 1)) - 1)) < format.special;
}

std::vector<std::byte> Bytes(DType dtype, const std::vector<uint64_t>& values) {
  std::vector<std::byte> bytes(values.size() * ItemBytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(bytes.data() + i * ItemBytes(dtype), &values[i], ItemBytes(dtype));
  }
  return bytes;
}

std::vector<uint64_t> AnyValues(DType dtype) {
  std::vector<uint64_t> values;
  if (ItemBytes(dtype) == 2) {
    for (uint64_t bits = 0; bits < 65536; ++bits) values.push_back(bits);
    return values;
  }
  std::mt19937_64 random(18);
  const auto add = [&](double value) {
    for (const double signed_value : {value, -value}) {
      values.push_back(dtype == DType::kFloat64
                           ? std::bit_cast<uint64_t>(signed_value)
                           : std::bit_cast<uint32_t>(static_cast<float>(signed_value)));
    }
  };
  for (int i = 0; i < 100'000; ++i) values.push_back(random());  // as many bits as count
  // Where the targets round: at their values, between them, and beside that.
  for (const DType target : {DType::kFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2}) {
    const Format format = FormatOf(target);
    for (uint32_t magnitude = 0; magnitude <= format.special; ++magnitude) {
      const double value = ValueOf(format, magnitude);
      const double between = (value + ValueOf(format, magnitude + 1)) / 2;
      for (const double at : {value, between, between * (1 + 0x1p-20), between * (1 - 0x1p-20),
                              between * (1 + 0x1p-40), between * (1 - 0x1p-40)}) {
        add(at);
      }
    }
  }
  for (const double value :
       {65504.0, 65519.0, 65519.99999, 65520.0, 448.0, 464.0, 465.0, 61439.0, 61440.0, 1e300,
        3.4028235677973366e38, 1e-45, 1e-320, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    add(value);
  }
  // NaNs that do not signal, with payloads; float32 around the largest bfloat16.
  for (const uint64_t bits : {0x7f7f7fffULL, 0x7f7f8000ULL, 0x7f7f8001ULL, 0x7fc12345ULL,
                              0xffc12345ULL, 0x7f800000ULL, 0xff800000ULL}) {
    if (dtype == DType::kFloat32) values.push_back(bits);
  }
  if (dtype == DType::kFloat64) values.push_back(0x7ff8123456789abcULL);
  return values;
}

TEST(CastTest, EveryKernelIsAsTheReference) {
  for (const DType from : kSources) {
    const std::vector<uint64_t> values = AnyValues(from);
    const std::vector<std::byte> source = Bytes(from, values);
    for (const DType to : kTargets) {
      if (from == to) continue;
      std::vector<uint64_t> expected;
      CastLoss lost;
      for (uint64_t value : values) {
        if (from == DType::kFloat32) value &= 0xffffffff;
        expected.push_back(FromFloat(to, ToFloat(from, value)));
        if (IsFinite(from, value) && !IsFinite(to, expected.back())) ++lost.overflowed;
        if (!IsZero(from, value) && IsZero(to, expected.back())) ++lost.zeroed;
      }
      const std::vector<std::byte> wanted = Bytes(to, expected);
      for (const CastKernel* const kernel : CastKernels()) {
        SCOPED_TRACE(std::string(kernel->name) + ": " + std::string(DTypeName(from)) + " to " +
                     std::string(DTypeName(to)));
        std::vector<std::byte> out(wanted.size());
        EXPECT_EQ(kernel->cast(from, to, source.data(), values.size(), out.data()), lost);
        for (size_t i = 0; i < values.size(); ++i) {
          const size_t item = ItemBytes(to);
          uint64_t found = 0;
          std::memcpy(&found, out.data() + i * item, item);
          ASSERT_EQ(found, expected[i]) << std::hex << values[i];
        }
      }
    }
  }
}

// Any number of elements, at any address.
TEST(CastTest, AnyCountAtAnyAddress) {
  const std::vector<std::byte> source = Bytes(DType::kFloat32, AnyValues(DType::kFloat32));
  std::vector<std::byte> all(source.size() / 2);
  Cast(DType::kFloat32, DType::kBFloat16, source, all);
  for (const CastKernel* const kernel : CastKernels()) {
    for (size_t count = 0; count < 1100; count += count < 70 ? 1 : 101) {
      std::vector<std::byte> from(count * 4 + 1);
      std::copy_n(source.begin(), count * 4, from.begin() + 1);
      std::vector<std::byte> out(count * 2 + 3, std::byte{0x5a});
      kernel->cast(DType::kFloat32, DType::kBFloat16, from.data() + 1, count, out.data() + 1);
      EXPECT_TRUE(std::equal(out.begin() + 1, out.end() - 2, all.begin())) << count;
      EXPECT_EQ(out.front(), std::byte{0x5a});
      EXPECT_EQ(out.back(), std::byte{0x5a});
      EXPECT_EQ(out[count * 2 + 1], std::byte{0x5a});
    }
  }
}

// What the specification states of the casts, in its own numbers.
TEST(CastTest, KnownValues) {
  struct Row {
    DType from;
    uint64_t value;
    DType to;
    uint64_t expected;
  };
  const Row rows[] = {
      {DType::kFloat64, std::bit_cast<uint64_t>(1 + 0x1p-11 + 0x1p-40), DType::kFloat16, 0x3c00},
      {DType::kFloat64, std::bit_cast<uint64_t>(65519.99999), DType::kFloat16, 0x7c00},
      {DType::kFloat32, std::bit_cast<uint32_t>(65520.0F), DType::kFloat16, 0x7c00},
      {DType::kFloat32, 0x7f7f8000, DType::kBFloat16, 0x7f80},
      {DType::kFloat32, 0xffc00001, DType::kFloat16, 0xfe00},
      {DType::kFloat32, 0xffc00001, DType::kBFloat16, 0x7fc0},
      {DType::kFloat16, 0x7c01, DType::kFloat32, 0x7f802000},
      {DType::kFloat32, std::bit_cast<uint32_t>(464.0F), DType::kFloat8E4M3FN, 0x7e},
      {DType::kFloat32, std::bit_cast<uint32_t>(465.0F), DType::kFloat8E4M3FN, 0x7f},
      {DType::kFloat32, 0x7f800000, DType::kFloat8E4M3FN, 0x7f},
      {DType::kFloat32, std::bit_cast<uint32_t>(61440.0F), DType::kFloat8E5M2, 0x7c},
      {DType::kFloat32, std::bit_cast<uint32_t>(61439.0F), DType::kFloat8E5M2, 0x7b},
  };
  for (const Row& row : rows) {
    const std::vector<std::byte> source = Bytes(row.from, {row.value});
    std::vector<std::byte> out(ItemBytes(row.to));
    Cast(row.from, row.to, source, out);
    EXPECT_EQ(out, Bytes(row.to, {row.expected})) << std::hex << row.value;
  }
}

}  // namespace
}  // namespace reshard::cast_test

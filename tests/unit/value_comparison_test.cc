#include "src/verify/parameter_comparison.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace reshard::value_comparison_test {
namespace {

template <typename Bits>
DiffReport::ValueDifference Compare(DType dtype, const std::vector<Bits>& a,
                                    const std::vector<Bits>& b) {
  DiffReport::ValueDifference difference;
  CompareValues(dtype, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), difference);
  return difference;
}

struct Row {
  std::string name;
  DType dtype;
  uint64_t a;  // the bits of one element
  uint64_t b;
  DiffReport::ValueDifference expected;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class ValueComparisonTest : public testing::TestWithParam<Row> {};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr DiffReport::ValueDifference Numbers(double greatest) { return {1, 0, 0, greatest}; }
constexpr DiffReport::ValueDifference kNanAgainstNumber{0, 1, 0, 0};
constexpr DiffReport::ValueDifference kNanAgainstNan{0, 0, 1, 0};

TEST_P(ValueComparisonTest, OneElement) {
  const DType dtype = GetParam().dtype;
  const DiffReport::ValueDifference& expected = GetParam().expected;
  const auto check = [&](uint64_t left, uint64_t right) {
    DiffReport::ValueDifference found;
    if (ItemBytes(dtype) == 2) {
      found =
          Compare<uint16_t>(dtype, {static_cast<uint16_t>(left)}, {static_cast<uint16_t>(right)});
    } else if (ItemBytes(dtype) == 4) {
      found =
          Compare<uint32_t>(dtype, {static_cast<uint32_t>(left)}, {static_cast<uint32_t>(right)});
    } else {
      found = Compare<uint64_t>(dtype, {left}, {right});
    }
    EXPECT_EQ(found.numbers, expected.numbers);
    EXPECT_EQ(found.nan_against_number, expected.nan_against_number);
    EXPECT_EQ(found.nan_against_nan, expected.nan_against_nan);
    EXPECT_EQ(found.greatest, expected.greatest);
  };
  check(GetParam().a, GetParam().b);
  check(GetParam().b, GetParam().a);
}

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

INSTANTIATE_TEST_SUITE_P(
    Rows, ValueComparisonTest,
    testing::Values(
        Row{"HalfEqual", DType::kFloat16, 0x3c00, 0x3c00, {}},
        Row{"HalfOneAndTwo", DType::kFloat16, 0x3c00, 0x4000, Numbers(1)},
        Row{"HalfLargest", DType::kFloat16, 0x7bff, 0xfbff, Numbers(2 * 65504.0)},
        Row{"HalfLeastSubnormal", DType::kFloat16, 0x0001, 0x0000, Numbers(0x1p-24)},
        Row{"HalfSubnormals", DType::kFloat16, 0x03ff, 0x8001, Numbers(0x1p-14)},
        Row{"HalfZeros", DType::kFloat16, 0x0000, 0x8000, Numbers(0)},
        Row{"HalfInfinity", DType::kFloat16, 0x7c00, 0x3c00, Numbers(kInfinity)},
        Row{"HalfInfinities", DType::kFloat16, 0x7c00, 0xfc00, Numbers(kInfinity)},
        Row{"HalfNanAndInfinity", DType::kFloat16, 0x7c01, 0x7c00, kNanAgainstNumber},
        Row{"HalfNans", DType::kFloat16, 0x7e00, 0x7e01, kNanAgainstNan},
        Row{"HalfSameNan", DType::kFloat16, 0xfe01, 0xfe01, {}},
        Row{"BrainOneAndTwo", DType::kBFloat16, 0x3f80, 0x4000, Numbers(1)},
        Row{"BrainZeros", DType::kBFloat16, 0x0000, 0x8000, Numbers(0)},
        Row{"BrainNeighbours", DType::kBFloat16, 0x4380, 0x4381, Numbers(2)},  // 256 and 258
        Row{"BrainLeastSubnormal", DType::kBFloat16, 0x0001, 0x0000, Numbers(0x1p-133)},
        Row{"BrainInfinity", DType::kBFloat16, 0x7f80, 0x7f7f, Numbers(kInfinity)},
        Row{"BrainSameInfinity", DType::kBFloat16, 0xff80, 0xff80, {}},
        Row{"BrainNan", DType::kBFloat16, 0x7fc0, 0x3f80, kNanAgainstNumber},
        Row{"BrainNans", DType::kBFloat16, 0x7fc0, 0xffc0, kNanAgainstNan},
        Row{"SingleNeighbours", DType::kFloat32, Bits(1.0F), Bits(1.0F) + 1, Numbers(0x1p-23)},
        Row{"SingleSigns", DType::kFloat32, Bits(-3.0F), Bits(3.0F), Numbers(6)},
        Row{"SingleLargest", DType::kFloat32, Bits(std::numeric_limits<float>::max()),
            Bits(-std::numeric_limits<float>::max()),
            Numbers(2 * static_cast<double>(std::numeric_limits<float>::max()))},
        Row{"SingleZeros", DType::kFloat32, Bits(0.0F), Bits(-0.0F), Numbers(0)},
        Row{"SingleInfinities", DType::kFloat32, 0x7f800000, 0xff800000, Numbers(kInfinity)},
        Row{"SingleInfinityAndNan", DType::kFloat32, 0x7f800000, 0x7fc00000, kNanAgainstNumber},
        Row{"SingleNan", DType::kFloat32, 0x7fc00000, 0, kNanAgainstNumber},
        Row{"SingleSignalingNan", DType::kFloat32, 0x7f800001, 0x7fc00001, kNanAgainstNan},
        Row{"DoubleNeighbours", DType::kFloat64, Bits(1.0), Bits(1.0) + 1, Numbers(0x1p-52)},
        Row{"DoubleLargest", DType::kFloat64, Bits(std::numeric_limits<double>::max()),
            Bits(-std::numeric_limits<double>::max()), Numbers(kInfinity)},
        Row{"DoubleZeros", DType::kFloat64, Bits(0.0), Bits(-0.0), Numbers(0)},
        Row{"DoubleInfinity", DType::kFloat64, 0x7ff0000000000000, Bits(1.0), Numbers(kInfinity)},
        Row{"DoubleInfinities", DType::kFloat64, 0x7ff0000000000000, 0xfff0000000000000,
            Numbers(kInfinity)},
        Row{"DoubleLeastSubnormal", DType::kFloat64, 1, 0x8000000000000000, Numbers(0x1p-1074)},
        Row{"DoubleNan", DType::kFloat64, 0x7ff8000000000000, Bits(1.0), kNanAgainstNumber},
        Row{"DoubleNans", DType::kFloat64, 0x7ff0000000000001, 0xfff0000000000001, kNanAgainstNan}),
    [](const auto& row) { return row.param.name; });

TEST(ValueComparisonManyTest, CountsAddUp) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  DiffReport::ValueDifference sum;
  const std::vector<float> a = {1, 2, nan, 4, nan, 6};
  const std::vector<float> b = {1, 2.5, 3, -4, nan, nan};
  CompareValues(DType::kFloat32, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), sum);
  DiffReport::ValueDifference more;
  CompareValues(DType::kFloat32, std::as_bytes(std::span(a).first(2)),
                std::as_bytes(std::span(b).first(2)), more);
  AddValues(more, sum);
  EXPECT_EQ(sum.numbers, 3U);
  EXPECT_EQ(sum.nan_against_number, 2U);
  EXPECT_EQ(sum.nan_against_nan, 0U);
  EXPECT_EQ(sum.greatest, 8);
}

// Every half, against the definition of the format.
TEST(ValueComparisonManyTest, AllHalves) {
  for (uint32_t bits = 1; bits < 0x8000; ++bits) {
    const auto found = Compare<uint16_t>(DType::kFloat16, {static_cast<uint16_t>(bits)}, {0});
    const int exponent = static_cast<int>(bits >> 10);
    const auto mantissa = static_cast<double>(bits & 0x3ffU);
    if (exponent == 31 && mantissa != 0) {
      ASSERT_EQ(found.nan_against_number, 1U) << bits;
      continue;
    }
    const double value = exponent == 31  ? kInfinity
                         : exponent == 0 ? std::ldexp(mantissa, -24)
                                         : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(found.numbers, 1U) << bits;
    ASSERT_EQ(found.greatest, value) << bits;
  }
}

TEST(ValueComparisonManyTest, OnlyFloatsHaveComparableValues) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_TRUE(HasComparableValues(dtype));
  }
  for (const DType dtype :
       {DType::kInt32, DType::kBool, DType::kComplex64, DType::kFloat8E5M2, DType::kString}) {
    EXPECT_FALSE(HasComparableValues(dtype));
  }
}

}  // namespace
}  // namespace reshard::value_comparison_test

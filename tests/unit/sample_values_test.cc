#include "tools/gen/sample_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sample_values_test {
namespace {

std::vector<std::byte> Filled(std::string_view name, DType dtype, uint64_t offset, size_t length) {
  std::vector<std::byte> bytes(length);
  SampleValues(name, dtype).Fill(offset, bytes);
  return bytes;
}

template <typename T>
std::vector<T> Elements(std::string_view name, DType dtype, size_t count) {
  std::vector<T> elements(count);
  SampleValues(name, dtype).Fill(0, std::as_writable_bytes(std::span(elements)));
  return elements;
}

double FromFloat32Bits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double FromFloat16Bits(uint16_t bits) {
  const int exponent = (bits >> 10 & 0x1F) - 15;
  const double magnitude = std::ldexp(1 + (bits & 0x3FF) / 1024.0, exponent);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(SampleValuesTest, EveryStretchIsThatOfTheWholeTensor) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const std::vector<std::byte> whole = Filled("w", dtype, 0, 64);
    for (size_t begin = 0; begin < whole.size(); ++begin) {
      for (size_t end = begin; end <= whole.size(); ++end) {
        EXPECT_EQ(Filled("w", dtype, begin, end - begin),
                  std::vector(whole.begin() + static_cast<ptrdiff_t>(begin),
                              whole.begin() + static_cast<ptrdiff_t>(end)))
            << DTypeName(dtype) << " " << begin << " " << end;
      }
    }
  }
}

// Samples made today have to equal those made by the next version, or on another machine.
TEST(SampleValuesTest, ValuesNeverChange) {
  EXPECT_EQ(Elements<uint32_t>("model.layers.0.attention.wq.weight", DType::kFloat32, 3),
            (std::vector<uint32_t>{0xBE850C1C, 0xBDBA9E97, 0xBF4241BE}));
  EXPECT_EQ(Elements<uint16_t>("adam_v.w", DType::kBFloat16, 3),
            (std::vector<uint16_t>{0x3D6D, 0x3F04, 0x3E8F}));
}

TEST(SampleValuesTest, NamesAndPlacesDiffer) {
  EXPECT_NE(Filled("a", DType::kFloat32, 0, 64), Filled("b", DType::kFloat32, 0, 64));
  EXPECT_NE(Filled("a", DType::kFloat32, 0, 64), Filled("a", DType::kFloat32, 64, 64));
}

TEST(SampleValuesTest, MagnitudesAreThoseOfWeights) {
  constexpr size_t kCount = 10000;
  std::vector<double> values;
  for (const uint32_t bits : Elements<uint32_t>("w", DType::kFloat32, kCount)) {
    values.push_back(FromFloat32Bits(bits));
  }
  for (const uint16_t bits : Elements<uint16_t>("w", DType::kBFloat16, kCount)) {
    values.push_back(FromFloat32Bits(uint32_t{bits} << 16));
  }
  for (const uint16_t bits : Elements<uint16_t>("w", DType::kFloat16, kCount)) {
    values.push_back(FromFloat16Bits(bits));
  }
  size_t negative = 0;
  for (const double value : values) {
    ASSERT_GE(std::abs(value), std::ldexp(1, -8));
    ASSERT_LT(std::abs(value), 1);
    if (value < 0) ++negative;
  }
  EXPECT_GT(negative, values.size() / 3);
  EXPECT_LT(negative, values.size() * 2 / 3);
}

TEST(SampleValuesTest, SecondMomentsArePositive) {
  for (const uint32_t bits : Elements<uint32_t>("adam_v.w", DType::kFloat32, 10000)) {
    ASSERT_GT(FromFloat32Bits(bits), 0);
  }
}

}  // namespace
}  // namespace reshard::sample_values_test

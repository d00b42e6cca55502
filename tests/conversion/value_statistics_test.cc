// What is said of the values of parameters, for every dtype and whatever the layout.

#include "reshard/compare.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "src/os/retries.h"
#include "src/tensor/float_bits.h"
#include "src/verify/value_sums.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/test_tensor.h"

namespace reshard::value_statistics_test {
namespace {

using Number = StatisticsReport::Number;

using testing::ElementsAre;
using testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename Item>
std::string Bytes(const std::vector<Item>& items) {
  std::string bytes(items.size() * sizeof(Item), '\0');
  std::memcpy(bytes.data(), items.data(), bytes.size());
  return bytes;
}

template <typename Item>
std::string Bytes(std::initializer_list<Item> items) {
  return Bytes(std::vector<Item>(items));
}

ValueSums SumsOf(DType dtype, const std::string& bytes) {
  return SumValues(dtype, std::as_bytes(std::span(bytes)));
}

TEST(FloatBitsTest, EveryFloat16IsItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 0x1f);
    const double mantissa = bits & 0x3ff;
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) expected = mantissa == 0 ? kInfinity : kNan;
    if ((bits & 0x8000) != 0) expected = -expected;
    const double found = Float16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << bits;
    } else {
      EXPECT_EQ(found, expected) << bits;
    }
  }
}

TEST(FloatBitsTest, EveryFloat8IsItsValue) {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const double sign = (bits & 0x80) != 0 ? -1 : 1;
    const int exponent = static_cast<int>((bits >> 3) & 0xf);
    const double mantissa = bits & 7;
    const double expected =
        sign * (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
    const double found = Float8E4M3FnToFloat(static_cast<uint8_t>(bits));
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(found)) << bits;
    } else {
      EXPECT_EQ(found, expected) << bits;
    }
  }
  EXPECT_EQ(Float8E5M2ToFloat(0x7b), 57344);
  EXPECT_EQ(Float8E5M2ToFloat(0xfc), -kInfinity);
  EXPECT_TRUE(std::isnan(Float8E5M2ToFloat(0x7d)));
}

TEST(ValueSumsTest, EveryDType) {
  struct Row {
    DType dtype;
    std::string bytes;
    uint64_t values;
    uint64_t nans;
    uint64_t infinities;
    Number least;
    Number greatest;
    double sum;
  };
  constexpr auto kLeast64 = std::numeric_limits<int64_t>::min();
  constexpr auto kMost64 = std::numeric_limits<uint64_t>::max();
  const auto nan = static_cast<float>(kNan);
  const auto infinity = static_cast<float>(kInfinity);
  const Row rows[] = {
      {DType::kInt8, Bytes<int8_t>({-128, 127, 3}), 3, 0, 0, int64_t{-128}, int64_t{127}, 2},
      {DType::kUInt8, Bytes<uint8_t>({255, 1}), 2, 0, 0, uint64_t{1}, uint64_t{255}, 256},
      {DType::kBool, Bytes<uint8_t>({0, 1, 1}), 3, 0, 0, uint64_t{0}, uint64_t{1}, 2},
      {DType::kInt16, Bytes<int16_t>({-300, 7}), 2, 0, 0, int64_t{-300}, int64_t{7}, -293},
      {DType::kUInt16, Bytes<uint16_t>({65535}), 1, 0, 0, uint64_t{65535}, uint64_t{65535}, 65535},
      {DType::kInt32, Bytes<int32_t>({-5, -9}), 2, 0, 0, int64_t{-9}, int64_t{-5}, -14},
      {DType::kUInt32, Bytes<uint32_t>({4000000000, 4000000000}), 2, 0, 0, uint64_t{4000000000},
       uint64_t{4000000000}, 8e9},
      {DType::kInt64, Bytes<int64_t>({kLeast64, 1}), 2, 0, 0, kLeast64, int64_t{1}, -0x1p63},
      {DType::kUInt64, Bytes<uint64_t>({kMost64, 5}), 2, 0, 0, uint64_t{5}, kMost64, 0x1p64},
      {DType::kFloat32, Bytes<float>({nan, 2, -infinity, -0.5F, infinity}), 5, 1, 2, -0.5, 2.0,
       1.5},
      {DType::kFloat64, Bytes<double>({kNan, 1e300, -kInfinity}), 3, 1, 1, 1e300, 1e300, 1e300},
      {DType::kFloat16, Bytes<uint16_t>({0x3c00, 0xc000, 0x7e00, 0x7c00, 0x0001}), 5, 1, 1, -2.0,
       1.0, -1 + 0x1p-24},
      {DType::kBFloat16, Bytes<uint16_t>({0x3f80, 0xc040, 0xff80, 0x7fc1}), 4, 1, 1, -3.0, 1.0, -2},
      {DType::kComplex64, Bytes<float>({1, -2, nan, 4}), 4, 1, 0, -2.0, 4.0, 3},
      {DType::kComplex128, Bytes<double>({1, -2}), 2, 0, 0, -2.0, 1.0, -1},
      {DType::kInt4, Bytes<uint8_t>({0x7f, 0x80}), 4, 0, 0, int64_t{-8}, int64_t{7}, -2},
      {DType::kFloat8E4M3FN, Bytes<uint8_t>({0x7e, 0x7f, 0xb8}), 3, 1, 0, -1.0, 448.0, 447},
      {DType::kFloat8E5M2, Bytes<uint8_t>({0x7c, 0x3c}), 2, 0, 1, 1.0, 1.0, 1},
      {DType::kFloat8E8M0, Bytes<uint8_t>({0xff, 127, 130, 126}), 4, 1, 0, 0.5, 8.0, 9.5},
      {DType::kFloat8E4M3FNUZ, Bytes<uint8_t>({0x80, 0x7f, 0xff, 0x40}), 4, 1, 0, -240.0, 240.0, 1},
      {DType::kFloat8E5M2FNUZ, Bytes<uint8_t>({0x80, 0x7f, 0xff, 0x40}), 4, 1, 0, -57344.0, 57344.0,
       1},
      // All values of the kind once: 0, 0.5, 1, 1.5, 2, 3, 4, 6 with both signs; then 0.5 and 1.
      {DType::kFloat4E2M1, Bytes<uint8_t>({0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x21}),
       18, 0, 0, -6.0, 6.0, 1.5},
      // 0.125, 7.5, -1, 2
      {DType::kFloat6E2M3, Bytes<uint8_t>({0xc1, 0x87, 0x42}), 4, 0, 0, -1.0, 7.5, 8.625},
      // 0.0625, 28, -0.25, 1
      {DType::kFloat6E3M2, Bytes<uint8_t>({0xc1, 0x47, 0x32}), 4, 0, 0, -0.25, 28.0, 28.8125},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(DTypeName(row.dtype));
    ASSERT_TRUE(HasSums(row.dtype));
    const ValueSums sums = SumsOf(row.dtype, row.bytes);
    EXPECT_EQ(sums.values, row.values);
    EXPECT_EQ(sums.nans, row.nans);
    EXPECT_EQ(sums.infinities, row.infinities);
    EXPECT_EQ(sums.least, row.least);
    EXPECT_EQ(sums.greatest, row.greatest);
    EXPECT_EQ(sums.sum, row.sum);
  }
  EXPECT_FALSE(HasSums(DType::kHiFloat8));
  EXPECT_FALSE(HasSums(DType::kString));
}

TEST(ValueSumsTest, EveryPlaceOfALongStretchCounts) {
  constexpr size_t kCount = 1500;
  for (size_t place = 0; place < kCount; ++place) {
    std::vector<float> values(kCount, 1);
    values[place] = -3;
    const ValueSums sums = SumsOf(DType::kFloat32, Bytes(values));
    ASSERT_EQ(sums.least, Number(-3.0)) << place;
    ASSERT_EQ(sums.sum, kCount - 4.0) << place;
    values[place] = static_cast<float>(kNan);
    ASSERT_EQ(SumsOf(DType::kFloat32, Bytes(values)).nans, 1U) << place;
  }
}

TEST(ValueSumsTest, StretchesWithoutFiniteValuesDoNotCount) {
  ValueSums sums;
  sums.Add(SumsOf(DType::kFloat32, Bytes<float>({static_cast<float>(kNan)})));
  sums.Add(SumsOf(DType::kFloat32, Bytes<float>({4, 6})));
  sums.Add(SumsOf(DType::kFloat32, Bytes<float>({static_cast<float>(kInfinity)})));
  EXPECT_EQ(sums.values, 4U);
  EXPECT_EQ(sums.finite(), 2U);
  EXPECT_EQ(sums.least, Number(4.0));
  EXPECT_EQ(sums.greatest, Number(6.0));
}

class ValueStatisticsTest : public testing::Test {
 protected:
  ValueStatisticsTest() {
    // Longer than a stretch, and of a length that ends in the middle of one.
    TestTensor w{"w", DType::kFloat32, {600, 1002}, ""};
    std::vector<float> values(600 * 1002);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 1.0F / static_cast<float>(i + 1) - 0.001F;
    }
    values[777] = static_cast<float>(kNan);
    w.content = Bytes(values);
    tensors_ = {w, MakeTensor("none", DType::kFloat32, {0, 2}),
                MakeTensor("hi", DType::kHiFloat8, {3})};
    folder_.WriteStage(tensors_, layouts_, 6);
    options_.source.path = folder_.options().source.path;
    options_.source.strategy = folder_.options().source.strategy;
  }

  const std::vector<NamedLayout> layouts_ = {{"w", MakeLayout({2, 3}, {{0, 1}})}};
  ConversionFolder folder_{layouts_, {}};
  std::vector<TestTensor> tensors_;
  ContentOptions options_;
};

TEST_F(ValueStatisticsTest, LayoutAndJobsDoNotMatter) {
  ContentOptions full;
  full.source.path = folder_.folder().Write("full.ckpt", EncodeCheckpoint(tensors_));
  const auto expected = MeasureValues(full);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  for (const int jobs : {1, 2, 8}) {
    options_.run.jobs = jobs;
    const auto report = MeasureValues(options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const auto& found = report->parameters[0];
    EXPECT_EQ(found.name, "w");
    EXPECT_EQ(found.shape, (Shape{600, 1002}));
    EXPECT_EQ(found.statistics->values, 600U * 1002);
    EXPECT_EQ(found.statistics->nans, 1U);
    EXPECT_EQ(found.statistics->greatest, Number(static_cast<double>(1.0F - 0.001F)));
    EXPECT_EQ(found.statistics->least, expected->parameters[0].statistics->least);
    EXPECT_EQ(found.statistics->mean, expected->parameters[0].statistics->mean);
    EXPECT_NEAR(*found.statistics->mean, -0.001 + 13.89 / (600 * 1002), 1e-6);
    EXPECT_EQ(report->bytes, 600U * 1002 * 4);
  }
}

TEST_F(ValueStatisticsTest, WhatHasNoValuesHasNone) {
  const std::string note = TensorValue("note", "str", {0}, std::string("n\0\0\0", 4));
  options_ = {};
  options_.source.path = folder_.folder().Write("full.ckpt", EncodeCheckpoint(tensors_) + note);
  options_.exclude = {"w"};
  const auto report = MeasureValues(options_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->parameters, SizeIs(3));
  const StatisticsReport::Parameter& none = report->parameters[0];
  ASSERT_TRUE(none.statistics);
  EXPECT_EQ(none.statistics->values, 0U);
  EXPECT_FALSE(none.statistics->least || none.statistics->greatest || none.statistics->mean);
  EXPECT_FALSE(report->parameters[1].statistics);
  EXPECT_FALSE(report->parameters[2].statistics);
  EXPECT_EQ(report->bytes, 0U);
}

TEST_F(ValueStatisticsTest, ACallThatIsStoppedSaysSo) {
  std::stop_source stop;
  stop.request_stop();
  options_.run.stop = stop.get_token();
  EXPECT_EQ(MeasureValues(options_).status().code(), StatusCode::kCancelled);
}

TEST_F(ValueStatisticsTest, ReadsAreRetried) {
  std::shared_ptr<Retries> retries;
  options_.run.progress = [&](const Progress&) { retries = CurrentRetries(); };
  ASSERT_TRUE(MeasureValues(options_).ok());
  EXPECT_NE(retries, nullptr);
}

}  // namespace
}  // namespace reshard::value_statistics_test

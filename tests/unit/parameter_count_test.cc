// Names of the optimizer's copies, and numbers of parameters as people state them.
#include "reshard/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "src/convert/rounded_count.h"

namespace reshard::parameter_count_test {
namespace {

using testing::HasSubstr;

TEST(OptimizerGroupTest, IsWhatTheListSays) {
  const struct {
    const char* name;
    const char* group;
    const char* parameter;
  } rows[] = {
      {"adam_m.w", "adam_m", "w"},
      {"adam_v.layer.w", "adam_v", "layer.w"},
      {"accu_grads.w", "accu_grads", "w"},
      {"moments.w", "moments", "w"},
      {"exp_avg.w", "exp_avg", "w"},
      {"exp_avg_sq.w", "exp_avg_sq", "w"},
      {"max_exp_avg_sq.w", "max_exp_avg_sq", "w"},
      {"exp_avg_sq_w", "exp_avg_sq", ""},
      {"exp_avg_sq_row_w", "exp_avg_sq_row", ""},
      {"exp_avg_insta_col_w", "exp_avg_insta_col", ""},
      {"accum.w", "accum", "w"},
      {"accum_update.w", "accum_update", "w"},
      {"ax_.w", "ax_", "w"},
      {"muon_m.w", "muon_m", "w"},
      {"main_param.w", "main_param", "w"},
      {"learning_rate", "learning_rate", ""},
      {"learning_rate_group_0", "learning_rate_group", ""},
      {"matrix_a_inv_3", "matrix_a_inv", ""},
      {"optim.state.w.exp_avg", "exp_avg", ""},
      {"optimizer.state.exp_avg_sq.w", "exp_avg_sq", ""},
      {"adam_m.", "adam_m", ""},
      {"adam_m", "", ""},
      {"adam_mw.w", "", ""},
      {"layer.adam_m.w", "", ""},
      {"moment3.w", "", ""},
      {"learning_rate.w", "", ""},
      {"ema.w", "", ""},
      {"", "", ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(OptimizerGroup(row.name), row.group) << row.name;
    EXPECT_EQ(ParameterOfState(row.name), row.parameter) << row.name;
  }
}

// Networks have modules of such names.
TEST(OptimizerGroupTest, AWordIsAStateOfAParameterThatIsThere) {
  const auto has = [](std::string_view name) {
    return name == "w" || name == "linear.weight" || name == "moments.v";
  };
  const struct {
    const char* name;
    const char* group;
  } rows[] = {
      {"linear.w", "linear"},  // FTRL's, of w
      {"linear.v", "linear"},  // likewise, of a parameter that is elsewhere
      {"linear.weight", ""},   // of a module
      {"linear.linear.weight", "linear"},
      {"prev.w", "prev"},
      {"stat.w", "stat"},
      {"moment.w", "moment"},
      {"ax.w", "ax"},
      {"prev.x", ""},
      {"adam_m.x", "adam_m"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(OptimizerGroup(row.name, has), row.group) << row.name;
  }
  EXPECT_EQ(OptimizerGroup("linear.w"), "");
  EXPECT_EQ(ParameterOfState("linear.w"), "w");
}

TEST(ParameterCountTest, IsParsedWithItsPrecision) {
  const struct {
    const char* text;
    uint64_t count;
    uint64_t precision;
  } rows[] = {
      {"6.74B", 6740000000, 10000000},
      {"6.740B", 6740000000, 1000000},
      {"7B", 7000000000, 1000000000},
      {"0.5B", 500000000, 100000000},
      {"671B", 671000000000, 1000000000},
      {"1.2T", 1200000000000, 100000000000},
      {"125M", 125000000, 1000000},
      {"123.4K", 123400, 100},
      {"123.456K", 123456, 1},
      {"6738415616", 6738415616, 1},
      {"0", 0, 1},
      {"18446744073709551615", std::numeric_limits<uint64_t>::max(), 1},
  };
  for (const auto& row : rows) {
    const auto parsed = ParseParameterCount(row.text);
    ASSERT_TRUE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed->count, row.count) << row.text;
    EXPECT_EQ(parsed->precision, row.precision) << row.text;
  }
}

TEST(ParameterCountTest, OtherSpellingsAreErrors) {
  for (const char* text :
       {"", "B", ".", ".5B", "6.B", "6.74", "6.74 B", "6.74b", "6,74B", "1.2345K", "6.7.4B", "-7B",
        "+7B", "7G", "7BB", "1e9", "0x7B", "18446744073709551616", "18446745T"}) {
    const auto parsed = ParseParameterCount(text);
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(parsed.status().message(),
                HasSubstr("expected a number of parameters such as 6.74B"));
  }
}

TEST(ParameterCountTest, RoundsAtTheDigitsGiven) {
  const RoundedCount stated{6740000000, 10000000};
  EXPECT_TRUE(RoundsTo(6738415616, stated));
  EXPECT_TRUE(RoundsTo(6735000000, stated));
  EXPECT_TRUE(RoundsTo(6745000000, stated));
  EXPECT_FALSE(RoundsTo(6734999999, stated));
  EXPECT_FALSE(RoundsTo(6745000001, stated));
  EXPECT_FALSE(RoundsTo(0, stated));
  EXPECT_TRUE(RoundsTo(12, {12, 1}));
  EXPECT_FALSE(RoundsTo(13, {12, 1}));
  EXPECT_FALSE(RoundsTo(11, {12, 1}));
}

TEST(ParameterCountTest, TextIsInUnitsThatPeopleWrite) {
  const struct {
    uint64_t count;
    const char* text;
  } rows[] = {
      {0, "0"},
      {999, "999"},
      {1000, "1.00 K"},
      {1234, "1.23 K"},
      {1235, "1.24 K"},
      {99994, "99.99 K"},
      {99995, "100.0 K"},
      {123400, "123.4 K"},
      {123449, "123.4 K"},
      {123450, "123.5 K"},
      {999949, "999.9 K"},
      {999950, "1.00 M"},
      {6738415616, "6.74 B"},
      {13476831232, "13.48 B"},
      {1000000000000, "1.00 T"},
      {std::numeric_limits<uint64_t>::max(), "18446744.1 T"},
  };
  for (const auto& row : rows) EXPECT_EQ(ParameterCountText(row.count), row.text) << row.count;
}

TEST(FormatBytesTest, OneDecimalInTheUnitThatFits) {
  const struct {
    uint64_t bytes;
    const char* text;
  } rows[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},
      {(uint64_t{1} << 20) - 1, "1.0 MiB"},
      {uint64_t{1} << 20, "1.0 MiB"},
      {uint64_t{34} << 30, "34.0 GiB"},
      {uint64_t{3} << 40, "3.0 TiB"},
      {UINT64_MAX, "16.0 EiB"},
  };
  for (const auto& row : rows) EXPECT_EQ(FormatBytes(row.bytes), row.text);
}

}  // namespace
}  // namespace reshard::parameter_count_test

#include "src/base/natural_order.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>

namespace reshard::natural_order_test {
namespace {

TEST(NaturalOrderTest, DigitsCountAsNumbers) {
  // Ascending.
  const char* const names[] = {"",
                               "0",
                               "00",
                               "1",
                               "2",
                               "10",
                               "a",
                               "part1",
                               "part02",
                               "part2",
                               "part2a",
                               "part10",
                               "part99999999999999999998",
                               "part99999999999999999999",
                               "parts"};
  for (size_t a = 0; a < std::size(names); ++a) {
    for (size_t b = 0; b < std::size(names); ++b) {
      EXPECT_EQ(IsNaturallyBefore(names[a], names[b]), a < b) << names[a] << ", " << names[b];
    }
  }
}

}  // namespace
}  // namespace reshard::natural_order_test

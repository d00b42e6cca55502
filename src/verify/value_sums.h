// ValueSums: what is added up of the values of a tensor, a stretch at a time.
//
// Plain values; pure functions.
#ifndef RESHARD_SRC_VERIFY_VALUE_SUMS_H_
#define RESHARD_SRC_VERIFY_VALUE_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "reshard/dtype.h"

namespace reshard {

struct ValueSums {
  uint64_t values = 0;
  uint64_t nans = 0;
  uint64_t infinities = 0;
  // Of the values that are neither, of which there may be none; int64_t, uint64_t or double.
  std::variant<int64_t, uint64_t, double> least{};
  std::variant<int64_t, uint64_t, double> greatest{};
  double sum = 0;

  uint64_t finite() const { return values - nans - infinities; }

  // Adds those of other values of the same tensor. The sum depends on the order.
  void Add(const ValueSums& other);
};

// Returns whether SumValues knows the values of `dtype`: all but notes and HiFloat8.
bool HasSums(DType dtype);

// The most bytes of a stretch.
inline constexpr size_t kMostSummedBytes = size_t{1} << 20;

// Returns the sums of a stretch of whole elements of `dtype`, which HasSums.
ValueSums SumValues(DType dtype, std::span<const std::byte> bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_VALUE_SUMS_H_

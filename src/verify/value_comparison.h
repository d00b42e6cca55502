// Comparing tensors of floats element by element.
//
// Pure; any thread.
#ifndef RESHARD_SRC_VERIFY_VALUE_COMPARISON_H_
#define RESHARD_SRC_VERIFY_VALUE_COMPARISON_H_

#include <cstddef>
#include <span>

#include "reshard/differences.h"
#include "reshard/dtype.h"

namespace reshard {

// Returns whether CompareValues knows the elements of `dtype`: Float16, BFloat16, Float32, Float64.
bool HasComparableValues(DType dtype);

// Adds how the elements of `a` and `b` differ to `difference`. Both are equally long, whole
// elements of `dtype`, which HasComparableValues.
void CompareValues(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                   ValueDifference& difference);

// Adds what was found in other elements of the same tensors.
void AddValues(const ValueDifference& other, ValueDifference& difference);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_VALUE_COMPARISON_H_

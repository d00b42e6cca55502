// Casts of floating-point values. Each bit equals that of MindSpore's load_param_into_net, and for
// 8-bit floats that of ml_dtypes: to float32 and from there to the target, each step rounded to
// nearest, ties to even.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_CAST_CAST_H_
#define RESHARD_SRC_CAST_CAST_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "reshard/tensor.h"

namespace reshard {

// The floating-point dtypes, Float8E8M0 among them, which has exponents alone.
bool IsFloat(DType dtype);
// The source dtypes of casts: Float16, BFloat16, Float32, Float64.
bool IsCastSource(DType dtype);
// The target dtypes of casts: the source dtypes, Float8E4M3FN and Float8E5M2.
bool IsCastTarget(DType dtype);

// How many values a cast changed beyond rounding.
struct CastLoss {
  uint64_t overflowed = 0;  // finite ones that became an infinity or NaN
  uint64_t zeroed = 0;      // others than zero that became zero

  CastLoss& operator+=(const CastLoss& other) {
    overflowed += other.overflowed;
    zeroed += other.zeroed;
    return *this;
  }
  friend bool operator==(const CastLoss&, const CastLoss&) = default;
};

// Casts the elements of `values`, which are of `from`, to `to`, another dtype. Fills `out`, which
// has as many elements.
CastLoss Cast(DType from, DType to, std::span<const std::byte> values, std::span<std::byte> out);

}  // namespace reshard

#endif  // RESHARD_SRC_CAST_CAST_H_

// Arithmetic on numbers that come from files: every overflow is seen.
#ifndef RESHARD_SRC_BASE_CHECKED_H_
#define RESHARD_SRC_BASE_CHECKED_H_

#include <concepts>
#include <limits>
#include <optional>

namespace reshard {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> CheckedAdd(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The sum, or the largest number if the sum is greater.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T SaturatingAdd(T a, T b) {
  return CheckedAdd(a, b).value_or(std::numeric_limits<T>::max());
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> CheckedMul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_CHECKED_H_

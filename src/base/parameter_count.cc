#include "reshard/parameter_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>

#include "src/base/checked.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

constexpr std::string_view kSuffixes = "KMBT";
constexpr size_t kDecimalsOfSuffix = 3;

std::optional<RoundedCount> Parse(std::string_view text) {
  size_t decimals = 0;  // that the suffix leaves to be filled up with zeros
  if (!text.empty()) {
    if (const size_t suffix = kSuffixes.find(text.back()); suffix != std::string_view::npos) {
      decimals = kDecimalsOfSuffix * (suffix + 1);
      text.remove_suffix(1);
    }
  }
  std::string digits(text);
  if (const size_t point = text.find('.'); point != std::string_view::npos) {
    const size_t stated = text.size() - point - 1;
    if (point == 0 || stated == 0 || stated > decimals) return std::nullopt;
    decimals -= stated;
    digits.erase(point, 1);
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  RoundedCount stated;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), stated.count);
  if (parsed.ec != std::errc()) return std::nullopt;
  for (size_t i = 0; i < decimals; ++i) {
    const auto more = CheckedMul<uint64_t>(stated.count, 10);
    if (!more) return std::nullopt;
    stated.count = *more;
    stated.precision *= 10;
  }
  return stated;
}

}  // namespace

Result<RoundedCount> v0_1::ParseParameterCount(std::string_view text) {
  if (const auto stated = Parse(text)) return *stated;
  return InvalidArgumentError(fmt::format(
      "expected a number of parameters such as 6.74B, with K, M, B or T for powers of 1000, or all "
      "of its digits; found {}",
      Quote(text)));
}

bool v0_1::RoundsTo(uint64_t exact, const RoundedCount& stated) {
  const uint64_t apart = std::max(exact, stated.count) - std::min(exact, stated.count);
  return apart <= stated.precision / 2;
}

std::string v0_1::ParameterCountText(uint64_t count) {
  constexpr uint64_t kThousand = 1000;
  if (count < kThousand) return std::to_string(count);
  uint64_t unit = kThousand;
  size_t suffix = 0;
  // What would round to 1000.0 of a unit is 1.00 of the next.
  while (suffix + 1 < kSuffixes.size() && count / unit * 20 + count % unit * 20 / unit >= 19999) {
    unit *= kThousand;
    ++suffix;
  }
  // Two decimals below 100, else one.
  const auto rounded = [&](uint64_t parts) {  // of a unit
    const uint64_t part = unit / parts;
    return count / part + (count % part >= part - part / 2 ? 1 : 0);
  };
  const uint64_t hundredths = rounded(100);
  if (hundredths < 10000) {
    return fmt::format("{}.{:02} {}", hundredths / 100, hundredths % 100, kSuffixes[suffix]);
  }
  const uint64_t tenths = rounded(10);
  return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kSuffixes[suffix]);
}

}  // namespace reshard

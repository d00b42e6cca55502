#include "src/convert/rounded_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>

#include "src/base/checked.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

std::optional<RoundedCount> ParseRounded(std::string_view text) {
  constexpr std::string_view kSuffixes = "KMBT";
  constexpr size_t kDecimalsOfSuffix = 3;
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
  if (!HasOnlyDigits(digits)) return std::nullopt;
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

Result<RoundedCount> ParseParameterCount(std::string_view text) {
  if (const auto stated = ParseRounded(text)) return *stated;
  return InvalidArgumentError(fmt::format(
      "expected a number of parameters such as 6.74B, with K, M, B or T for powers of 1000, or all "
      "of its digits; found {}",
      Quote(text)));
}

Result<std::optional<RoundedCount>> ExpectedParameters(const CheckChoice& checks) {
  if (checks.parameters.empty()) return std::optional<RoundedCount>();
  const Result<RoundedCount> stated = ParseParameterCount(checks.parameters);
  if (stated.ok()) return std::optional(*stated);
  return stated.status().WithMessage("`checks.parameters`: " + stated.status().message());
}

bool RoundsTo(uint64_t exact, const RoundedCount& stated) {
  const uint64_t apart = std::max(exact, stated.count) - std::min(exact, stated.count);
  return apart <= stated.precision / 2;
}

}  // namespace reshard

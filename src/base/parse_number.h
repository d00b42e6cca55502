// Decimal numbers out of text. Pure functions.
#ifndef RESHARD_SRC_BASE_PARSE_NUMBER_H_
#define RESHARD_SRC_BASE_PARSE_NUMBER_H_

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace reshard {

// Returns the number that decimal digits, and nothing else, spell, if `Number` can hold it.
template <std::integral Number>
std::optional<Number> ParseNumber(std::string_view digits) {
  Number number = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (digits.starts_with('-') || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_PARSE_NUMBER_H_

// Numbers as text, and back, without the cost of a format string. For texts that are written once
// for each of very many parameters. Pure functions.
#ifndef RESHARD_SRC_BASE_NUMBER_TEXT_H_
#define RESHARD_SRC_BASE_NUMBER_TEXT_H_

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace reshard {

// Appends a number in decimal.
template <std::integral Number>
void AppendNumber(std::string& out, Number number) {
  char digits[std::numeric_limits<Number>::digits10 + 2];  // the last digit, and a sign
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

// Appends numbers as "1,2".
template <std::integral Number>
void AppendNumbers(std::string& out, const std::vector<Number>& numbers) {
  for (const Number& number : numbers) {
    if (&number != numbers.data()) out += ',';
    AppendNumber(out, number);
  }
}

// Whether the text is decimal digits, at least one.
inline bool HasOnlyDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the number that decimal digits spell, if there are only digits and `Number` can hold it.
template <std::integral Number>
std::optional<Number> ParseNumber(std::string_view digits) {
  Number number = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (digits.starts_with('-') || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_NUMBER_TEXT_H_

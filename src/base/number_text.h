// Numbers as text, for what is written once for each of very many parameters: without the machinery
// of a format string. Pure functions.
#ifndef RESHARD_SRC_BASE_APPEND_NUMBER_H_
#define RESHARD_SRC_BASE_APPEND_NUMBER_H_

#include <charconv>
#include <concepts>
#include <limits>
#include <string>
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

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_APPEND_NUMBER_H_

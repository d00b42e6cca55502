// Names from files, made safe to print.
#ifndef RESHARD_SRC_BASE_QUOTE_H_
#define RESHARD_SRC_BASE_QUOTE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// Returns `name` with control characters, quotes and backslashes escaped (\n, \x1b, \"); beyond 512
// bytes "..." stands for the middle, so that a path keeps its file name. Other bytes, UTF-8
// included, stay as they are.
std::string Escape(std::string_view name);

// Returns Escape(name) between double quotes.
std::string Quote(std::string_view name);

// Returns "[1, 2]": the first 20 of `numbers`, and how many there are beyond them.
std::string FirstNumbers(const std::vector<int64_t>& numbers);

// Returns "a, b, c": the first 20 of `items`, and how many there are beyond them.
std::string FirstOf(const std::vector<std::string>& items);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_QUOTE_H_

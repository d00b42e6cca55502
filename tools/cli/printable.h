// Text out of files and arguments, made safe for a terminal.
//
// Control characters (C0, DEL, C1) and bytes that are not UTF-8 come out as \n, \x1b or \u009b.
// Pure functions.
#ifndef RESHARD_TOOLS_CLI_PRINTABLE_H_
#define RESHARD_TOOLS_CLI_PRINTABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// Returns a name as one word of a line: newlines and backslashes are escaped too, so that different
// names look different.
std::string PrintableName(std::string_view name);

// Returns a message: newlines and backslashes stay.
std::string PrintableText(std::string_view text);

// Returns "a, b and 3 more": `names`, the first of `count`; "(empty)" stands for one without a
// name.
std::string PrintableNames(const std::vector<std::string>& names, uint64_t count);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PRINTABLE_H_

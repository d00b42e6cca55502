// Names that are not there, and what somebody who mistyped them may have meant. Pure functions.
#ifndef RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_
#define RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/page/text_format.h"

namespace reshard {

// The fewest bytes to insert, delete or replace that make `a` of `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the name, the first of several, that is nearest to `typed`: at most 2 edits away, or a
// third of its length; 1 where it is that short. Empty where none is.
std::string NearestName(std::string_view typed, const std::vector<std::string>& names);

// Returns what to say of the first word, before any `--`, that is no command or option where it
// stands, or nothing. The parser tells of such words last, after faults that they cause. `words`
// come after the program's name; it need not have been possible to parse them.
std::optional<std::string> DescribeUnknownWord(const CLI::App& root,
                                               const std::vector<std::string>& words);

// Returns what to say if more arguments were typed than the command takes, or nothing. A shell that
// expands a pattern makes many of one. `root` is as the parser left it.
std::optional<std::string> DescribeExtraArguments(const CLI::App& root);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_

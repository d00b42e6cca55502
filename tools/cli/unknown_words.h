// Unknown names, and guesses at the intended ones. Pure functions.
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

// Returns the first of the names that are nearest to `typed`: at most 2 edits away, or a third of
// its length, or 1 if it is that short. Empty if there is none.
std::string NearestName(std::string_view typed, const std::vector<std::string>& names);

// Returns advice about `typed`, which is none of the names: "names that contain it: a, b", "did you
// mean a?", or that `command` lists the names.
std::string NamesMeant(std::string_view typed, const std::vector<std::string>& names,
                       std::string_view command);

// Returns a message about the first word, before any `--`, that is not a command or option at its
// place; no value if there is none. The parser reports such words last, after errors that they
// cause. `words` come after the program's name. The parser may have failed on them.
std::optional<std::string> DescribeUnknownWord(const CLI::App& root,
                                               const std::vector<std::string>& words);

// Returns a message if there are more arguments than the command takes, or no value. A shell that
// expands a pattern makes many from one. `root` is in the state after parsing.
std::optional<std::string> DescribeExtraArguments(const CLI::App& root);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_

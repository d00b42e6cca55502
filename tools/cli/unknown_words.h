// Names the commands and options on a command line that there are not, and what may have been
// meant.
//
// The parser tells of them last, after faults that they cause.
#ifndef RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_
#define RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace reshard {

// Returns what to say of the first word, before any `--`, that is no command or option where it
// stands, or nothing. `words` come after the program's name; it need not have been possible to
// parse them.
std::optional<std::string> DescribeUnknownWord(const CLI::App& root,
                                               const std::vector<std::string>& words);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_UNKNOWN_WORDS_H_

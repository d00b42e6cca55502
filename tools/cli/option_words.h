// How the command line says what messages of the library name.
//
// A message of the library names an option by the field of its options, a value after "=", and a
// function by its name, all in backticks: `force`, `unmatched=copy`, `Verify`
// (reshard/status.h). Here is the one table of what to type for each. For any thread once the
// command is chosen.
#ifndef RESHARD_TOOLS_CLI_OPTION_WORDS_H_
#define RESHARD_TOOLS_CLI_OPTION_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Where a command calls the strategy of its source otherwise than --src-strategy: what is typed for
// `source.strategy` from now on, which lives as long as the process.
void SpellSourceStrategy(std::string_view words);

// Returns `message` with what is typed in place of each such name: "pass --force"; anything else
// in backticks stays as it is.
std::string InOptionWords(std::string_view message);

// The same of each.
std::vector<std::string> InOptionWords(const std::vector<std::string>& messages);
std::vector<Warning> InOptionWords(std::vector<Warning> warnings);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_OPTION_WORDS_H_

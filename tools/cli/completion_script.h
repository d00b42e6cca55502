// Completion scripts for shells: commands, options, the values that an option has, files and
// folders.
//
// Each is a whole script, for the shell to read at its start or when it first completes `reshard`.
// It does not run the program. Pure functions.
#ifndef RESHARD_TOOLS_CLI_COMPLETION_SCRIPT_H_
#define RESHARD_TOOLS_CLI_COMPLETION_SCRIPT_H_

#include <string>

#include "tools/cli/command_table.h"

namespace reshard {

std::string BashCompletion(const CommandTable& table);
std::string ZshCompletion(const CommandTable& table);
std::string FishCompletion(const CommandTable& table);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_COMPLETION_SCRIPT_H_

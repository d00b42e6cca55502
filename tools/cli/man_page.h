// The man page, out of the texts of --help.
#ifndef RESHARD_TOOLS_CLI_MAN_PAGE_H_
#define RESHARD_TOOLS_CLI_MAN_PAGE_H_

#include <string>

#include "tools/cli/command_table.h"

namespace reshard {

// Returns reshard.1, in the man macros of roff. Pure.
std::string ManPage(const CommandTable& table);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MAN_PAGE_H_

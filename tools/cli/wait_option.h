// The option --wait, of commands that wait for other processes' locks, and what they say meanwhile.
#ifndef RESHARD_TOOLS_CLI_WAIT_OPTION_H_
#define RESHARD_TOOLS_CLI_WAIT_OPTION_H_

#include <CLI/CLI.hpp>

#include "reshard/lock_waiting.h"

namespace reshard {

// Adds it to `app`. Whether or not it is given, `waiting` tells the user for whom the command
// waits.
CLI::Option* AddWaitOption(CLI::App& app, LockWaiting& waiting);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_WAIT_OPTION_H_

// What the standard error stream is connected to.
#ifndef RESHARD_TOOLS_CLI_TERMINAL_H_
#define RESHARD_TOOLS_CLI_TERMINAL_H_

namespace reshard {

// Returns whether a line on standard error can be written again: it is a terminal and TERM is not
// "dumb".
bool StderrIsTerminal();

// Returns whether words on standard error may have colour: as above, and NO_COLOR is empty or
// unset.
bool StderrTakesColor();

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_TERMINAL_H_

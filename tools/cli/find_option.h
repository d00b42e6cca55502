// FindOption: the option of a name, without CLI11's own look-ups.
#ifndef RESHARD_TOOLS_CLI_FIND_OPTION_H_
#define RESHARD_TOOLS_CLI_FIND_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

namespace reshard {

// Returns the option of this name, or nullptr. CLI::App's own ways to look up or count an option by
// its name end the process when they run out of memory.
const CLI::Option* FindOption(const CLI::App& app, const std::string& name);
CLI::Option* FindOption(CLI::App& app, const std::string& name);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_FIND_OPTION_H_

// The options --src-strategy and --dst-strategy, of commands that plan a conversion.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_OPTIONS_H_
#define RESHARD_TOOLS_CLI_STRATEGY_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

namespace reshard {

// Adds them to `app`; parsing sets the paths.
void AddStrategyOptions(CLI::App& app, std::string& source, std::string& target);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_OPTIONS_H_

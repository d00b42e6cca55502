// `reshard completion`, and the hidden `reshard man`: texts from the option tables for shells and
// packages.
#ifndef RESHARD_TOOLS_CLI_SHELL_COMMANDS_H_
#define RESHARD_TOOLS_CLI_SHELL_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "tools/cli/command_table.h"

namespace reshard {

// Returns reshard.1, out of the texts of --help, in the man macros of roff. Pure.
std::string ManPage(const CommandTable& table);

// Adds itself to the parser that it is made with, which has to outlive it. Not a Command: the
// options that those have in common are for reports.
class ShellCommands {
 public:
  explicit ShellCommands(CLI::App& root);
  ShellCommands(const ShellCommands&) = delete;
  ShellCommands& operator=(const ShellCommands&) = delete;

  bool chosen() const { return completion_.parsed() || man_.parsed(); }

  // Prints the requested text. Returns the exit code.
  int Run() const;

 private:
  const CLI::App& root_;
  CLI::App& completion_;
  CLI::App& man_;
  std::string shell_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHELL_COMMANDS_H_

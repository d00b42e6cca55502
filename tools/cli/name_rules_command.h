// `reshard name-rules`: the rules for names that come with the program.
#ifndef RESHARD_TOOLS_CLI_NAME_RULES_COMMAND_H_
#define RESHARD_TOOLS_CLI_NAME_RULES_COMMAND_H_

#include <string>

#include "tools/cli/command.h"

namespace reshard {

class NameRulesCommand : public Command {
 public:
  explicit NameRulesCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string rules_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_NAME_RULES_COMMAND_H_

// `reshard strategy convert`.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_CONVERT_COMMAND_H_
#define RESHARD_TOOLS_CLI_STRATEGY_CONVERT_COMMAND_H_

#include <string>

#include "tools/cli/command.h"

namespace reshard {

class StrategyConvertCommand : public Command {
 public:
  // `parent` is the parser of `reshard strategy`.
  explicit StrategyConvertCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  std::string input_;
  std::string output_;
  bool force_ = false;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_CONVERT_COMMAND_H_

// `reshard strategy make`.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_MAKE_COMMAND_H_
#define RESHARD_TOOLS_CLI_STRATEGY_MAKE_COMMAND_H_

#include "reshard/strategy_spec.h"
#include "tools/cli/command.h"

namespace reshard {

class StrategyMakeCommand : public Command {
 public:
  // `parent` is the parser of `reshard strategy`.
  explicit StrategyMakeCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  MakeStrategyOptions options_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_MAKE_COMMAND_H_

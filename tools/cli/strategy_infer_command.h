// `reshard strategy infer`.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_INFER_COMMAND_H_
#define RESHARD_TOOLS_CLI_STRATEGY_INFER_COMMAND_H_

#include "reshard/strategy_inference.h"
#include "tools/cli/command.h"

namespace reshard {

class StrategyInferCommand : public Command {
 public:
  // `parent` is the parser of `reshard strategy`.
  explicit StrategyInferCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  InferStrategyOptions options_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_INFER_COMMAND_H_

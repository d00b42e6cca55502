// `reshard strategy show` and `reshard strategy merge`.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_COMMAND_H_
#define RESHARD_TOOLS_CLI_STRATEGY_COMMAND_H_

#include <string>

#include "reshard/status.h"
#include "tools/cli/command.h"

namespace reshard {

class StrategyShowCommand : public Command {
 public:
  // `parent` is the parser of `reshard strategy`.
  explicit StrategyShowCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  std::string path_;
  std::string filter_;
};

class StrategyMergeCommand : public Command {
 public:
  // `parent` is the parser of `reshard strategy`.
  explicit StrategyMergeCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  std::string folder_;
  std::string output_;
  bool force_ = false;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_COMMAND_H_

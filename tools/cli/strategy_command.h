// `reshard strategy show`, `merge`, `convert`, `infer` and `make`. Their parent is the parser of
// `reshard strategy`.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_COMMAND_H_
#define RESHARD_TOOLS_CLI_STRATEGY_COMMAND_H_

#include <string>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/frontend/option_parts.h"
#include "tools/cli/command.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/table_options.h"

namespace reshard {

class StrategyShowCommand : public Command {
 public:
  explicit StrategyShowCommand(CLI::App& parent);
  int Run() override;

 private:
  // Draws which rank holds which box of `mapped_`.
  int ShowMap(const Strategy& strategy);

  std::string path_;
  NameFilter filter_;
  TableOptions table_;
  bool long_ = false;
  std::string mapped_;  // the parameter to draw
  std::string target_strategy_;
};

class StrategyMergeCommand : public Command {
 public:
  explicit StrategyMergeCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string folder_;
  std::string output_;
  TableOptions table_;
};

class StrategyConvertCommand : public Command {
 public:
  explicit StrategyConvertCommand(CLI::App& parent);
  int Run() override;

 private:
  StrategyConversion options_;
  TableOptions table_;
};

class StrategyInferCommand : public Command {
 public:
  explicit StrategyInferCommand(CLI::App& parent);
  int Run() override;

 private:
  StrategyInference options_;
  TableOptions table_;
};

class StrategyMakeCommand : public Command {
 public:
  explicit StrategyMakeCommand(CLI::App& parent);
  int Run() override;

 private:
  MakeStrategyOptions options_;
  TableOptions table_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_COMMAND_H_

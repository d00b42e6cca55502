// `reshard plan`: the effect of a conversion; `reshard ranks`: the source ranks that it needs.
#ifndef RESHARD_TOOLS_CLI_PLAN_COMMAND_H_
#define RESHARD_TOOLS_CLI_PLAN_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "tools/cli/command.h"
#include "tools/cli/conversion_arguments.h"

namespace reshard {

class PlanCommand : public Command {
 public:
  explicit PlanCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintText(const PlanReport& report) const;

  ConversionArguments arguments_;
  bool long_ = false;
};

class RanksCommand : public Command {
 public:
  explicit RanksCommand(CLI::App& parent);
  int Run() override;

 private:
  // Throws the parser's error.
  static std::vector<int64_t> ReadRanks(const std::string& list);
  int RunOne(int64_t rank);
  // Of `ranks_`, or of all.
  int RunSeveral();

  std::vector<int64_t> ranks_;
  bool all_ = false;
  TableOptions table_;
  StrategyRef source_strategy_;
  StrategyRef target_strategy_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PLAN_COMMAND_H_

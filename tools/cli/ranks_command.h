// `reshard ranks`: which source ranks a target rank, or each of them, needs.
#ifndef RESHARD_TOOLS_CLI_RANKS_COMMAND_H_
#define RESHARD_TOOLS_CLI_RANKS_COMMAND_H_

#include <cstdint>
#include <string>

#include "reshard/status.h"
#include "tools/cli/command.h"

namespace reshard {

class RanksCommand : public Command {
 public:
  explicit RanksCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  int RunAll();

  int64_t rank_ = -1;  // until it is given
  bool all_ = false;
  std::string source_strategy_;
  std::string target_strategy_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_RANKS_COMMAND_H_

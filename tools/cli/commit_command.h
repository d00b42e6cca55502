// `reshard commit`: what shards have staged, published.
#ifndef RESHARD_TOOLS_CLI_COMMIT_COMMAND_H_
#define RESHARD_TOOLS_CLI_COMMIT_COMMAND_H_

#include <string>

#include "reshard/lock_waiting.h"
#include "tools/cli/command.h"

namespace reshard {

class CommitCommand : public Command {
 public:
  explicit CommitCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  std::string target_;
  LockWaiting waiting_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_COMMIT_COMMAND_H_

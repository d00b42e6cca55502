// `reshard merge`: slices or segments of a checkpoint, made one file.
#ifndef RESHARD_TOOLS_CLI_MERGE_COMMAND_H_
#define RESHARD_TOOLS_CLI_MERGE_COMMAND_H_

#include <string>
#include <vector>

#include "reshard/merge.h"
#include "tools/cli/command.h"
#include "tools/cli/table_options.h"

namespace reshard {

class MergeCommand : public Command {
 public:
  explicit MergeCommand(CLI::App& parent);
  int Run() override;

 private:
  MergeOptions options_;
  TableOptions table_;
  std::vector<std::string> files_and_output_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MERGE_COMMAND_H_

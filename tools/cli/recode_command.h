// `reshard recode`: checkpoint files as they are, in another format.
#ifndef RESHARD_TOOLS_CLI_RECODE_COMMAND_H_
#define RESHARD_TOOLS_CLI_RECODE_COMMAND_H_

#include <optional>
#include <set>
#include <string>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "tools/cli/command.h"
#include "tools/cli/table_options.h"

namespace reshard {

class RecodeCommand : public Command {
 public:
  explicit RecodeCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintSummary(const ConvertReport& report, double seconds) const;

  RecodeOptions options_;
  std::set<std::string> told_;  // notes that were printed at once
  TableOptions table_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_RECODE_COMMAND_H_

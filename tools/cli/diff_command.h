// `reshard digest` and `reshard diff`: contents of checkpoints in any layout.
#ifndef RESHARD_TOOLS_CLI_DIFF_COMMAND_H_
#define RESHARD_TOOLS_CLI_DIFF_COMMAND_H_

#include "reshard/compare.h"
#include "tools/cli/command.h"
#include "tools/cli/table_options.h"

namespace reshard {

class DigestCommand : public Command {
 public:
  explicit DigestCommand(CLI::App& parent);
  int Run() override;

 private:
  ContentOptions options_;
  TableOptions table_;
  bool long_ = false;
};

class DiffCommand : public Command {
 public:
  explicit DiffCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintSummary(const DiffReport& report, double seconds) const;
  void PrintText(const DiffReport& report) const;

  DiffOptions options_;
  TableOptions table_;
  bool long_ = false;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_DIFF_COMMAND_H_

// `reshard report`: a conversion, or a checkpoint, in pictures.
#ifndef RESHARD_TOOLS_CLI_REPORT_COMMAND_H_
#define RESHARD_TOOLS_CLI_REPORT_COMMAND_H_

#include <string>

#include "src/frontend/layout_report.h"
#include "tools/cli/command.h"
#include "tools/cli/table_options.h"

namespace reshard {

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App& parent);
  int Run() override;

 private:
  LayoutReportOptions options_;
  TableOptions table_;
  std::string output_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_REPORT_COMMAND_H_

// `reshard convert` lays out a checkpoint again. `reshard commit` publishes the files that shards
// have staged.
#ifndef RESHARD_TOOLS_CLI_CONVERT_COMMAND_H_
#define RESHARD_TOOLS_CLI_CONVERT_COMMAND_H_

#include <optional>
#include <string>

#include "reshard/convert.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "tools/cli/command.h"
#include "tools/cli/conversion_arguments.h"

namespace reshard {

class ConvertCommand : public Command {
 public:
  explicit ConvertCommand(CLI::App& parent);
  int Run() override;

 private:
  // Makes the conversion that the arguments say. Its document is printed, or added to `documents`.
  // Returns the exit code.
  int ConvertOne(nlohmann::ordered_json* documents);
  void PrintSummary(const ConvertReport& report, double seconds) const;
  void PrintDetails(const ConvertReport& report) const;

  ConversionArguments arguments_;
  std::string page_;  // the path of the page about the run; empty: none
};

class CommitCommand : public Command {
 public:
  explicit CommitCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string target_;
  TableOptions table_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CONVERT_COMMAND_H_

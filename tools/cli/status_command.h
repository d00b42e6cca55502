// `reshard status` tells how far a conversion is.
#ifndef RESHARD_TOOLS_CLI_STATUS_COMMAND_H_
#define RESHARD_TOOLS_CLI_STATUS_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/convert.h"
#include "tools/cli/command.h"

namespace reshard {

class StatusCommand : public Command {
 public:
  explicit StatusCommand(CLI::App& parent);
  int Run() override;

 private:
  // Asks once, and prints the answer. `is_again` replaces the last one on a terminal.
  Result<StatusReport> Show(bool is_again);

  std::string target_;
  uint64_t watch_ = 0;      // seconds; 0: asks once
  size_t shown_lines_ = 0;  // of a terminal, by the last answer
};

// Returns "ckpt_4: running, 34%, 1.0 GiB of 3.0 GiB, 2 of 8 files, 512.0 MiB/s, 0:04 left" and, of
// several workers, how many there are of each state.
std::string StatusLine(std::string_view target, const StatusReport& report);

// Returns a table of the workers. Workers of one state share a row, except for some of those that
// run or are dead. "" for a conversion alone, and for a published set.
std::string WorkersAsText(const StatusReport& report);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STATUS_COMMAND_H_

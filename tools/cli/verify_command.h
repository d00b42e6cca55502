// `reshard verify`: reads a finished target folder again and says what is damaged.
#ifndef RESHARD_TOOLS_CLI_VERIFY_COMMAND_H_
#define RESHARD_TOOLS_CLI_VERIFY_COMMAND_H_

#include <string>

#include "reshard/verify.h"
#include "tools/cli/command.h"

namespace reshard {

class VerifyCommand : public Command {
 public:
  explicit VerifyCommand(CLI::App& parent);
  int Run() override;

 private:
  void PrintReport(const DamageReport& report, double seconds) const;
  void PrintText(const DamageReport& report) const;

  VerifyOptions options_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_VERIFY_COMMAND_H_

// `reshard verify`: reads a finished target folder again and reports damage, or proves it from its
// sources.
#ifndef RESHARD_TOOLS_CLI_VERIFY_COMMAND_H_
#define RESHARD_TOOLS_CLI_VERIFY_COMMAND_H_

#include <string>

#include "reshard/verify.h"
#include "src/frontend/option_parts.h"
#include "tools/cli/command.h"
#include "tools/cli/table_options.h"

namespace reshard {

class VerifyCommand : public Command {
 public:
  explicit VerifyCommand(CLI::App& parent);
  int Run() override;

 private:
  // With --against.
  void AddAgainst();
  int RunAgainst();

  void PrintText(const DamageReport& report) const;

  Verification options_;
  Proof against_;
  TableOptions table_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_VERIFY_COMMAND_H_

// `reshard digest`: digests of parameters that do not depend on the layout.
#ifndef RESHARD_TOOLS_CLI_DIGEST_COMMAND_H_
#define RESHARD_TOOLS_CLI_DIGEST_COMMAND_H_

#include "reshard/digest.h"
#include "tools/cli/command.h"

namespace reshard {

class DigestCommand : public Command {
 public:
  explicit DigestCommand(CLI::App& parent);
  int Run() override;
  UsedPaths Paths() const override;

 private:
  void PrintReport(const DigestReport& report, double seconds) const;

  DigestOptions options_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_DIGEST_COMMAND_H_

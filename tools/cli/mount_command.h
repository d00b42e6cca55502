// `reshard mount`: shows the files of a conversion as a folder, without writing them. `reshard
// unmount` ends it. Another program (tools/mount) serves the files, so that this one does not need
// libfuse.
#ifndef RESHARD_TOOLS_CLI_MOUNT_COMMAND_H_
#define RESHARD_TOOLS_CLI_MOUNT_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/target_view.h"
#include "src/frontend/option_parts.h"
#include "tools/cli/command.h"
#include "tools/cli/mount_server.h"
#include "tools/cli/table_options.h"

namespace reshard {

class MountCommand : public Command {
 public:
  // `words` are the command line, for the serving program if `serve` is null.
  MountCommand(CLI::App& parent, MountServer serve, std::vector<std::string> words);
  int Run() override;

 private:
  // Tells which positional is which. Throws the parser's errors.
  void Complete();
  // Becomes the program that serves. Returns only if there is none.
  Status Hand() const;
  // Opens the target and serves it until it is unmounted; calls `ready` when it is there.
  int Serve(const std::function<void()>& ready);

  const MountServer serve_;
  const std::vector<std::string> words_;
  ViewedConversion options_;  // without the options of the table
  TableOptions table_;
  std::string folder_;
  bool background_ = false;
  bool caches_ = false;
  bool allows_others_ = false;
};

class UnmountCommand : public Command {
 public:
  explicit UnmountCommand(CLI::App& parent);
  int Run() override;

 private:
  std::string folder_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MOUNT_COMMAND_H_

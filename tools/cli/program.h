// RunProgram: the whole program `reshard`. The Python package's script calls it, too.
#ifndef RESHARD_TOOLS_CLI_PROGRAM_H_
#define RESHARD_TOOLS_CLI_PROGRAM_H_

#include "tools/cli/mount_server.h"

namespace reshard {

// Runs the command in the arguments of main(), and returns the exit code. Does not throw. It needs
// a process of its own: it changes signals, limits and the heap, and is called once. `serve_mount`
// serves the files for `mount`; null: the program reshard-mount does.
int RunProgram(int argc, char** argv, MountServer serve_mount = nullptr);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PROGRAM_H_

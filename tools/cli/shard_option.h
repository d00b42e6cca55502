// What `--shard` stands for. Pure; any thread.
#ifndef RESHARD_TOOLS_CLI_SHARD_OPTION_H_
#define RESHARD_TOOLS_CLI_SHARD_OPTION_H_

#include <string>

#include "reshard/options.h"
#include "reshard/status.h"
#include "reshard/worker_share.h"

namespace reshard {

// Takes "i/n", i counting from 0, or "auto", which is FindWorkerShare.
// Errors: kInvalidArgument.
Result<WorkerShare> ParseShard(const std::string& text, const Environment& environment);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHARD_OPTION_H_

// What `--shard` stands for: "i/n", or what the launcher of parallel jobs has put into the
// environment of each process.
//
// Pure; any thread.
#ifndef RESHARD_TOOLS_CLI_SHARD_OPTION_H_
#define RESHARD_TOOLS_CLI_SHARD_OPTION_H_

#include <functional>
#include <optional>
#include <string>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Returns the value of a variable, or nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Takes "i/n", i counting from 0, or "auto".
// Errors: kInvalidArgument, naming the variables that are missing, wrong, or ambiguous.
Result<WorkerShare> ParseShard(const std::string& text, const Environment& environment);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHARD_OPTION_H_

// The option --unmatched, of every command that plans a conversion.
#ifndef RESHARD_TOOLS_CLI_UNMATCHED_OPTION_H_
#define RESHARD_TOOLS_CLI_UNMATCHED_OPTION_H_

#include <CLI/CLI.hpp>
#include <optional>

#include "reshard/unmatched_policy.h"

namespace reshard {

// Adds it to `app`; parsing sets `policy`.
CLI::Option* AddUnmatchedOption(CLI::App& app, std::optional<UnmatchedPolicy>& policy);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_UNMATCHED_OPTION_H_

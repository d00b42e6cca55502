// Options that several commands have.
#ifndef RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_
#define RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/options.h"

namespace reshard {

// Returns "files written:" and a line for each, with its size.
std::string WrittenFilesText(const std::vector<ConvertReport::File>& files);

// The message of a conversion that found its set in `target`.
std::string AlreadyPublishedText(const std::string& target);

// Returns "3 parameters left out, 2 renamed", or "" if both are 0.
std::string ChoiceText(uint64_t left_out, uint64_t renamed);

// Tells the user the process that a command waits for: RunOptions::lock_held.
void ReportWaiting(const RunOptions::LockHolder& so_far);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHARED_OPTIONS_H_

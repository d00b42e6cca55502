// The output folder of a MindFormers run: checkpoint/rank_N has the files of each rank, strategy/
// the strategies.
//
// Functions without state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_RUN_FOLDER_H_
#define RESHARD_SRC_MINDSPORE_RUN_FOLDER_H_

#include <string>
#include <vector>

#include "reshard/options.h"

namespace reshard {

// Returns `spec`. If its path is the output folder of a run, the result has the path of checkpoint/
// there, and that of strategy/ unless `spec` has a strategy; adds a note for each to `notes`. A
// folder with ranks or checkpoint files of its own is taken itself. Looks at names only; opening
// the source reports errors.
SourceSpec InRunFolder(const SourceSpec& spec, std::vector<std::string>& notes);
SourceSpec InRunFolder(const SourceSpec& spec);

// Returns advice for a source without a strategy: "; strategies are in output/strategy", if a
// folder strategy/ with strategies lies in the path or beside it. Else "".
std::string HintOfStrategyBeside(const SourceSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RUN_FOLDER_H_

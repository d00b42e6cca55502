// Joins the strategy files of a pipeline's stages into one, as MindSpore's
// merge_pipeline_strategys does (SPEC.md, "Merged file").
//
// Takes bytes and opens nothing. Pure functions; any number of threads may call them.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_MERGE_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/mindspore/strategy.h"

namespace reshard {

// One strategy file of a folder, whole.
struct StageFile {
  std::string path;
  std::string bytes;
  std::vector<std::string> copies;  // paths of other files of the folder with the same bytes
};

struct MergedStrategy {
  int64_t stages = 0;
  std::string bytes;
  std::vector<std::string> notes;  // files that were skipped, and why
};

// Parses the files of one folder.
// Errors: kMismatch when some are JSON and others are not; as ParseStrategy.
Result<std::vector<StrategyFile>> ParseStageFiles(const std::vector<StageFile>& files,
                                                  const MemoryCheck& memory = {});

// Merges the files of one folder, whatever their order. In protobuf the result is what MindSpore
// writes when it finds the files in the order of their stages; in JSON what its json.dump writes:
// there a node name of two stages stands once, with what the later one says.
// Errors: as ParseStageFiles and Strategy::FromStageFiles.
Result<MergedStrategy> MergeStageFiles(const std::string& folder,
                                       const std::vector<StageFile>& files);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_MERGE_H_

// Strategies from the disk: a strategy file, or a folder with the strategy files of all stages.
//
// In a folder, every regular file counts whose name ends in .ckpt or .json, except hidden files.
// Sub-folders are not searched. Files with the same bytes are parsed once. The content of a file
// tells its kind, never its name. Any number of threads may call these functions.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_LOADER_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_LOADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/base/memory_check.h"
#include "src/mindspore/strategy_tables.h"
#include "src/os/path_kind.h"

namespace reshard {

// Whether an entry of a folder counts as a strategy file.
bool IsStageFile(const DirectoryEntry& entry);

// One strategy file of a folder, whole.
struct StageFile {
  std::string path;
  std::string bytes;
  std::vector<std::string> copies;  // paths of other files of the folder with the same bytes
};

struct MergedStrategy {
  Strategy strategy;
  std::string bytes;  // of its file
};

// Parses the files of a folder. Errors: kMismatch if some are JSON and others are not; as
// ParseStrategy.
Result<std::vector<StrategyFile>> ParseStageFiles(const std::vector<StageFile>& files,
                                                  const MemoryCheck& memory = {});

// Merges the files of a folder, in any order, as MindSpore's merge_pipeline_strategys does
// (SPEC.md, "Merged file"). Opens no file. In protobuf the result has the bytes that MindSpore
// writes if it finds the files in the order of their stages. In JSON it has the bytes of
// MindSpore's json.dump: a node name of two stages occurs once, with the value of the later stage.
// Errors: as ParseStageFiles and StrategyTables::FromStageFiles.
Result<MergedStrategy> MergeStageFiles(const std::string& folder,
                                       const std::vector<StageFile>& files);

// Returns the value of `strategy`, or loads it from its path. The stage files of a folder make a
// pipeline's strategy, even if there is a single file. A merged file that is alone in a folder is
// taken itself.
// Errors: kNotFound; kIo; as `memory`
//   kCorrupt, kMismatch: as ParseStrategy, StrategyTables::FromFile and
//   StrategyTables::FromStageFiles
Result<Strategy> LoadStrategy(const StrategyRef& strategy, const MemoryCheck& memory = {});

// Returns the name of a strategy for messages: its path.
std::string StrategyName(const StrategyRef& strategy);

// Returns the unparsed bytes of the strategy file `path`, or those that LoadStrategy takes of the
// folder `path`: the merged bytes of its stage files, or the bytes of a lone merged file. Adds
// notes to `notes`. Errors: kNotFound; as MergeStageFiles; kIo.
Result<std::string> ReadStrategyBytes(const std::string& path, std::vector<std::string>& notes);

// Merges the stage files of `folder` to the bytes of a strategy file. Errors: kNotFound; as
// MergeStageFiles; kIo.
Result<MergedStrategy> MergeStrategyFolder(const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_LOADER_H_

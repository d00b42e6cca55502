// Strategies from the disk: a strategy file, or a folder of the strategy files of all stages.
//
// Of a folder, every regular file counts whose name ends in .ckpt or .json, but for hidden ones; it
// is not searched further down. Files with the same bytes are parsed once. What a file holds is
// told by its content, never by its name. Any number of threads may call these functions.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_LOADER_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_LOADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/base/memory_check.h"
#include "src/mindspore/strategy_tables.h"

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

// Merges the files of one folder, whatever their order, as MindSpore's merge_pipeline_strategys
// does (SPEC.md, "Merged file"). Opens nothing. In protobuf the result is what MindSpore writes
// when it finds the files in the order of their stages; in JSON what its json.dump writes: there a
// node name of two stages stands once, with what the later one says. Errors: as ParseStageFiles and
// StrategyTables::FromStageFiles.
Result<MergedStrategy> MergeStageFiles(const std::string& folder,
                                       const std::vector<StageFile>& files);

// Returns the value of `strategy`, or loads it from its path. The stage files of a folder make a
// pipeline's strategy, even if there is one only; a merged file that lies alone in a folder is
// taken itself.
// Errors: kNotFound; kCorrupt and kMismatch as ParseStrategy, StrategyTables::FromFile and
// StrategyTables::FromStageFiles; kIo; those of `memory`.
Result<Strategy> LoadStrategy(const StrategyRef& strategy, const MemoryCheck& memory = {});

// Returns what messages call a strategy: its path.
std::string StrategyName(const StrategyRef& strategy);

// Returns the bytes of the strategy file `path`, not parsed, or of the stage files of the folder
// `path` merged; adds what there is to say to `notes`.
// Errors: kNotFound; as MergeStageFiles; kIo.
Result<std::string> ReadStrategyBytes(const std::string& path, std::vector<std::string>& notes);

// Merges the stage files of `folder` to the bytes of one strategy file.
// Errors: kNotFound; as MergeStageFiles; kIo.
Result<MergedStrategy> MergeStrategyFolder(const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_LOADER_H_

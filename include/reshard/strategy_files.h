// Strategy files: read, merge, and which source ranks a target rank needs.
//
// Wherever a strategy is named, the path of a file or of a folder of stage files will do; protobuf
// and JSON are told apart by content. Pure functions of the files; any number of threads may call
// them.
//
// Implemented in src/mindspore.
#ifndef RESHARD_STRATEGY_FILES_H_
#define RESHARD_STRATEGY_FILES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reshard/box.h"
#include "reshard/status.h"

namespace reshard {

// The layout of one parameter as the file states it (src/mindspore/SPEC.md).
struct StrategyParameter {
  int64_t stage = 0;
  std::string name;  // without stage prefix
  std::vector<int64_t> device_matrix;
  std::vector<std::vector<int64_t>> tensor_map;
  int64_t opt_weight_shard_step = 0;
  int64_t opt_weight_shard_size = 0;
  std::optional<Shape> tensor_shape;  // JSON only
};

struct StrategySummary {
  std::string path;
  bool is_pipeline = false;
  int64_t stages = 1;
  int64_t devices_per_stage = 1;
  std::vector<StrategyParameter> parameters;  // stage by stage, in file order
  std::vector<std::string> notes;             // files of a folder that were skipped, and why
};

// Errors: kNotFound, kCorrupt, kMismatch, kIo.
Result<StrategySummary> ReadStrategy(const std::string& path);

struct StrategyMergeReport {
  int64_t stages = 0;
  uint64_t bytes = 0;
  std::vector<std::string> notes;
};

// Merges the stage files in `folder` into the file `output`; for protobuf with the bytes that
// MindSpore's merge_pipeline_strategys writes with the files in stage order. `output` appears whole
// or not at all. Errors: as ReadStrategy, and kAlreadyExists when `output` exists and not `force`.
Result<StrategyMergeReport> MergeStrategies(const std::string& folder, const std::string& output,
                                            bool force);

// Returns the source ranks that target rank `rank` needs, one replica of each shard, and the one
// that parameters without a layout come from, ascending. An empty path stands for no strategy on
// that side. Errors: as ReadStrategy; kInvalidArgument when `rank` is no target rank or both paths
// are empty.
Result<std::vector<int64_t>> SourceRanks(int64_t rank, const std::string& source_strategy,
                                         const std::string& target_strategy);

// Calls `visit` with each target rank, ascending, and what SourceRanks returns for it; the
// strategies are read once. Errors: as SourceRanks; those that concern one target stage may come
// after calls for the stages before it.
Status ForEachSourceRanks(
    const std::string& source_strategy, const std::string& target_strategy,
    const std::function<void(int64_t rank, const std::vector<int64_t>& source_ranks)>& visit);

}  // namespace reshard

#endif  // RESHARD_STRATEGY_FILES_H_

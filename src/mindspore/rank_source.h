// The rank folders of a training run, or the files of single ranks, as sources; their strategies
// give the places of tensors.
//
// Functions without state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_RANK_SOURCE_H_
#define RESHARD_SRC_MINDSPORE_RANK_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/grid_placement.h"
#include "src/mindspore/rank_folder.h"
#include "src/plan/parameter_choice.h"
#include "src/source/found_source.h"

namespace reshard {

// How messages call the source.
std::string SourceName(const SourceSpec& spec);

// Returns the files of the ranks that `spec` names. Errors: as FindRankFiles; kMismatch for a
// single file with a strategy.
Result<RankFolder> FindRanks(const SourceSpec& spec);

struct RankSource {
  FoundSource found;
  const GridPlacement* grid = nullptr;  // found.placement, if there is a source strategy
};

// Makes the placement of the files of ranks. The rule must outlive the result.
RankSource PlaceRanks(FoundSource found, const ConversionRule& rule, const ParameterChoice& choice);

// Chooses the files of `folder` that belong to ranks of `rule`, and adds them to `files`; sets no
// container. `folder` is a result of FindRanks. The rule must outlive the result. Warns of missing
// ranks that `target_ranks` (empty: all) need.
// Errors:
//   kMismatch: no files of the rule's ranks, or files of other ranks
//   kInvalidArgument: such files were named one by one
//   kIo
Result<RankSource> ChooseRanks(const SourceSpec& spec, const std::vector<int64_t>& target_ranks,
                               const RankFolder& folder, const ConversionRule& rule,
                               const ParameterChoice& choice, SourceFiles& files);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_SOURCE_H_

// The names of a strategy beside the renames of a conversion. A strategy may have the names from
// before or those from after.
//
// Pure functions, for any thread.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_NAMES_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_NAMES_H_

#include <optional>

#include "format/rename_map/renaming.h"
#include "reshard/status.h"
#include "reshard/strategy.h"

namespace reshard {

// Returns the strategy under its new names. Errors: as StrategyTables::Renamed.
Result<Strategy> WithNewNames(const Strategy& strategy, const Renaming& renaming);

// Returns whether the strategy has a name that `renaming` changes. Errors: as Renaming::NewName.
Result<bool> HasOldNames(const Strategy& strategy, const Renaming& renaming);

// If the strategy has new names and no old ones, returns it under the old names. Else no value.
// Errors: as Renaming::NewName.
Result<std::optional<Strategy>> WithOldNames(const Strategy& strategy, const Renaming& renaming);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_NAMES_H_

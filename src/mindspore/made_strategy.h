// Strategies of memory: a Strategy as a Strategy, without a file.
//
// Pure functions; any number of threads may call them.
#ifndef RESHARD_SRC_MINDSPORE_MADE_STRATEGY_H_
#define RESHARD_SRC_MINDSPORE_MADE_STRATEGY_H_

#include <string>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/mindspore/checked_strategy.h"

namespace reshard {

// How messages call a strategy that was read, or made in memory.
std::string NameOf(const Strategy& strategy);

// Returns a strategy as LoadStrategy would load it from the file that WriteStrategy writes.
// Errors: kInvalidArgument for one without parameters; those of EncodeStrategy, ParseStrategy and
// Strategy::FromFile.
Result<CheckedStrategy> StrategyOf(const Strategy& strategy);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_MADE_STRATEGY_H_

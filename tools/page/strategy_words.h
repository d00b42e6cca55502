// The meaning of a strategy, in words. Pure.
#ifndef RESHARD_TOOLS_PAGE_STRATEGY_WORDS_H_
#define RESHARD_TOOLS_PAGE_STRATEGY_WORDS_H_

#include <string>

#include "reshard/strategy.h"

namespace reshard {

// Returns the meaning of the layouts: "tensor parallel 4, data parallel 2, optimizer sharded over
// 2; 2 stages".
std::string StrategyInWords(const Strategy& strategy);

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_STRATEGY_WORDS_H_

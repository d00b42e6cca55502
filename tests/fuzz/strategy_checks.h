// What has to hold of every strategy file that was read, whatever its encoding.
#ifndef RESHARD_TESTS_FUZZ_STRATEGY_CHECKS_H_
#define RESHARD_TESTS_FUZZ_STRATEGY_CHECKS_H_

#include <string>
#include <string_view>

#include "src/mindspore/strategy_tables.h"

namespace reshard {

// Makes the strategy of `file`, which is what ParseStrategy reads in `bytes`. Compares layouts for
// few devices with their definition, rank lists with what they have to be, and the file with the
// one that it becomes when it is merged. Returns what is wrong.
std::string StrategyFault(const StrategyFile& file, std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_TESTS_FUZZ_STRATEGY_CHECKS_H_

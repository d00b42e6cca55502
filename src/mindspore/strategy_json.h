// The JSON form of a strategy file; strategy_codec.h is the way in.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_JSON_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_JSON_H_

#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/mindspore/strategy.h"

namespace reshard {

// Parses without recursion and without a tree, so neither deep nor wide input costs more than a few
// times its size. The layouts may come out empty.
// Errors: kCorrupt (path, byte or parameter and key).
Result<StrategyFile> ParseStrategyJson(const std::string& path, std::string_view bytes,
                                       const MemoryCheck& memory);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_JSON_H_

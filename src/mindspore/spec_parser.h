// Reads the specification of a strategy, in JSON (docs/strategies.md).
//
// Takes bytes and opens nothing. Pure; any number of threads may call it.
#ifndef RESHARD_SRC_MINDSPORE_SPEC_PARSER_H_
#define RESHARD_SRC_MINDSPORE_SPEC_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/mindspore/spec_layouts.h"

namespace reshard {

// A longer file is not read: parsed it may be 25 times as large.
inline constexpr uint64_t kMaxSpecBytes = uint64_t{16} << 20;

// Parses a whole file; `path` is for messages. Every key is known, every entry fits the devices,
// and no pattern stands twice in a stage.
// Errors: kCorrupt (path, place in the file, expected, found).
Result<StrategySpec> ParseStrategySpec(const std::string& path, std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SPEC_PARSER_H_

// Reads strategy files, protobuf or JSON (SPEC.md); told apart by content, never by name.
//
// Takes bytes and opens nothing. Pure functions; any number of threads may call them.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_CODEC_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/mindspore/strategy_tables.h"

namespace reshard {

// A strategy file of more bytes or layouts is not read, so that a hostile one, whose parsed form is
// up to 25 times as large, cannot take all memory. With 200,000 parameters it has about 50 MB.
inline constexpr uint64_t kMaxStrategyFileBytes = uint64_t{128} << 20;
inline constexpr size_t kMaxStrategyLayouts = size_t{1} << 20;

enum class StrategyEncoding { kProtobuf, kJson };

// Returns kJson when the first byte that is not blank is '{' or '[', which begins no strategy in
// protobuf.
StrategyEncoding StrategyEncodingOf(std::string_view bytes);

// Parses a whole strategy file; `path` is for messages, and `memory` is asked now and then.
// Errors: kCorrupt (path, parameter, offset) for what is no strategy, naming what it is instead
// where that can be told, and for one without layouts.
Result<StrategyFile> ParseStrategy(const std::string& path, std::string_view bytes,
                                   const MemoryCheck& memory = {});

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_CODEC_H_

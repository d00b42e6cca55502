// Reads strategy files, protobuf or JSON (SPEC.md). The content tells them apart, never the name.
//
// Takes bytes and opens no file. Pure functions; any number of threads may call them.
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

// The limits for strategy files. A larger file is not read, so that a hostile file cannot take all
// memory: the parsed form may be 25 times as large. A strategy with 200,000 parameters has about 50
// MB.
inline constexpr uint64_t kMaxStrategyFileBytes = uint64_t{128} << 20;
inline constexpr size_t kMaxStrategyLayouts = size_t{1} << 20;

enum class StrategyEncoding { kProtobuf, kJson };

// Returns kJson when the first byte that is not blank is '{' or '[', which begins no strategy in
// protobuf.
StrategyEncoding StrategyEncodingOf(std::string_view bytes);

// Parses a whole strategy file. `path` is for messages; `memory` is called now and then. Errors:
// kCorrupt (path, parameter, offset) for a file without layouts, and for another kind of file,
// named if it is known.
Result<StrategyFile> ParseStrategy(const std::string& path, std::string_view bytes,
                                   const MemoryCheck& memory = {});

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_CODEC_H_

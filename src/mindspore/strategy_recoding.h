// Turns a strategy file from protobuf into JSON and back (SPEC.md, "From one encoding to the
// other").
//
// Takes bytes and opens nothing. Pure functions; any number of threads may call them.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_RECODING_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_RECODING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/strategy_codec.h"

namespace reshard {

struct RecodedStrategy {
  std::string bytes;
  size_t layouts = 0;
  std::vector<std::string> warnings;  // what the other encoding has no place for
};

// Encodes a strategy file in `encoding`; one that is in it already stays as it is. `path` is for
// messages.
// Errors: those of ParseStrategy; kCorrupt and kMismatch for what the other encoding cannot hold
// and a reader would miss.
Result<RecodedStrategy> RecodeStrategy(const std::string& path, const std::string& bytes,
                                       StrategyEncoding encoding);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_RECODING_H_

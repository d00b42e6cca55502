// Writes strategy files in either encoding: from layouts, or from a file in the other one.
//
// Opens nothing.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_WRITER_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/mindspore/strategy.pb.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_json.h"

namespace reshard {

// Puts the items of a strategy together to a file. One thread at a time.
class StrategyWriter {
 public:
  explicit StrategyWriter(StrategyEncoding encoding) : encoding_(encoding) {}

  // Add an item. In JSON, where a name stands once, the last item of a name counts, at the place of
  // the first. Errors: kMismatch for a name that JSON cannot hold.
  Status Add(const ParallelStrategyItem& item);
  Status Add(const ParallelLayoutItem& item);

  // The items that took the place of another one of their name.
  size_t replaced() const { return replaced_; }

  // Returns the whole file; only once.
  std::string TakeBytes(uint32_t current_stage);

 private:
  Status Set(JsonItems& items, const std::string& name, std::string value);

  const StrategyEncoding encoding_;
  std::string strategies_;  // protobuf
  std::string layouts_;
  JsonItems json_strategies_;
  JsonItems json_layouts_;
  size_t replaced_ = 0;
};

// Returns the encoding that MindSpore expects in a file of this name: JSON where it ends in .json.
StrategyEncoding StrategyEncodingOfName(const std::string& path);

// Returns the strategy file of the layouts of `strategy`. Each stage has one strategy item, from
// which readers learn its number; what training tells of operators there is not known.
// Errors: kMismatch for names that the encoding cannot hold, for numbers beyond the format's, and
// for more than readers take of a file.
Result<std::string> EncodeStrategy(const Strategy& strategy, StrategyEncoding encoding);

// A strategy file turned from protobuf into JSON or back (SPEC.md, "From one encoding to the
// other").
struct RecodedStrategy {
  std::string bytes;
  size_t layouts = 0;
  std::vector<Warning> warnings;  // what the other encoding has no place for
};

// Encodes a strategy file in `encoding`; one that is in it already stays as it is. `path` is for
// messages.
// Errors: those of ParseStrategy; kCorrupt and kMismatch for what the other encoding cannot hold
// and a reader would miss.
Result<RecodedStrategy> RecodeStrategy(const std::string& path, const std::string& bytes,
                                       StrategyEncoding encoding);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_WRITER_H_

// Writes strategy files in either encoding: from layouts, or from a file in the other one.
//
// Opens nothing.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_WRITER_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
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

  // Add an item. In JSON a name occurs once: the last item of a name counts, at the place of the
  // first. Errors: kMismatch for a name that JSON cannot hold.
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

// Returns the encoding that MindSpore expects in a file of this name: JSON if it ends in .json.
StrategyEncoding StrategyEncodingOfName(const std::string& path);

// Returns the strategy file with the layouts of `strategy`. Each stage has one strategy item, from
// which readers learn its number. Facts about operators, which training writes there, are unknown.
// Errors: kMismatch for names that the encoding cannot hold, for numbers beyond the format's, and
// for files beyond the readers' limits.
Result<std::string> EncodeStrategy(const Strategy& strategy, StrategyEncoding encoding);

// The report of a strategy that was written to a file of `bytes` bytes.
StrategyReport ReportOf(const Strategy& strategy, uint64_t bytes);

// A strategy file turned from protobuf into JSON or back (SPEC.md, "From one encoding to the
// other").
struct RecodedStrategy {
  std::string bytes;
  size_t layouts = 0;
  std::vector<Warning> warnings = {};  // details that the other encoding cannot hold
  // No value if the file's layouts disagree.
  std::optional<Strategy> strategy = {};
};

// Encodes a strategy file in `encoding`. A file that has this encoding stays as it is. `path` is
// for messages.
// Errors: as ParseStrategy
//   kCorrupt, kMismatch: a detail that the other encoding cannot hold and that a reader needs
Result<RecodedStrategy> RecodeStrategy(const std::string& path, const std::string& bytes,
                                       StrategyEncoding encoding);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_WRITER_H_

// StrategySpec: layouts as a user states them (docs/guide/strategies.md), and the resulting
// layouts.
//
// Values without I/O. Pure functions; any thread.
#ifndef RESHARD_SRC_MINDSPORE_SPEC_LAYOUTS_H_
#define RESHARD_SRC_MINDSPORE_SPEC_LAYOUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/mindspore/strategy_tables.h"

namespace reshard {

struct SpecEntry {
  std::string place;      // in the file, for messages: "stages[0][2]"
  std::string parameter;  // a glob pattern, or a name
  // Parts of each dimension. No value: the parameter is not cut, for any number of dimensions.
  std::optional<std::vector<int64_t>> cuts;
  int64_t optimizer_shards = 1;  // parts of dimension 0 beyond that, over the replicas
};

struct SpecStage {
  int64_t number = 0;
  std::vector<SpecEntry> entries;  // the first that matches counts
};

struct StrategySpec {
  std::string path;     // for messages
  int64_t devices = 1;  // of a stage
  bool is_pipeline = false;
  std::vector<SpecStage> stages;  // of a pipeline 0, 1 and so on; else one
};

// A parameter to be cut.
struct FullTensor {
  std::string name;
  Shape shape;
};

// Returns the layout of a tensor that is cut so over the ranks of a stage. The device matrix is
// [replicas, cuts other than 1], so replicas are the slowest axis. The product of the cuts and
// `optimizer_shards` has to divide `devices`.
ParameterLayout LayoutOfCuts(int64_t devices, const std::vector<int64_t>& cuts,
                             int64_t optimizer_shards);

// Fails with kInvalidArgument unless the cuts and shards of `entry` fit so many devices.
Status CheckEntry(const StrategySpec& spec, const SpecEntry& entry);

// Returns a strategy with layouts for the `parameters` that an entry matches, in their order. An
// optimizer's copy also matches if its parameter does. Warnings tell entries without a match, notes
// parameters without a layout. `checkpoint` is for messages.
// Errors: as StrategyTables::FromLayouts
//   kMismatch: dimensions do not agree or divide, or a stage gets no layouts
Result<MadeStrategy> LayoutsOfTensors(const StrategySpec& spec, const std::string& checkpoint,
                                      const std::vector<FullTensor>& parameters);

// Returns a strategy with layouts for the parameters that the entries name.
// Errors: as StrategyTables::FromLayouts
//   kInvalidArgument: an entry with a glob pattern or without cuts
Result<MadeStrategy> LayoutsOfNames(const StrategySpec& spec);

// A longer file is not read: parsed it may be 25 times as large.
inline constexpr uint64_t kMaxSpecBytes = uint64_t{16} << 20;

// Parses a whole specification, in JSON; `path` is for messages. Every key is known, every entry
// fits the devices, and no pattern stands twice in a stage. Errors: kInvalidArgument (path, place
// in the file, expected, found); kCorrupt for a zero byte.
Result<StrategySpec> ParseStrategySpec(const std::string& path, std::string_view bytes);

// As above, from a file. More errors: those of opening it; kInvalidArgument if it is too long.
Result<StrategySpec> ReadStrategySpec(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SPEC_LAYOUTS_H_

// SingleHolders: the rank that keeps each shard of a stage, if one rank of its replicas does.
//
// The rule of MindSpore's remove_param_redundancy: ranks that hold the same shards of several
// parameters take turns, in the order of names. Immutable, so any number of threads may read it.
// The layouts must outlive it.
#ifndef RESHARD_SRC_MINDSPORE_SINGLE_HOLDERS_H_
#define RESHARD_SRC_MINDSPORE_SINGLE_HOLDERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/base/memory_check.h"
#include "src/plan/parameter_choice.h"
#include "src/source/shard_grid.h"

namespace reshard {

class SingleHolders {
 public:
  // `choice` has the new names, by which MindSpore sorts. All layouts of the stage count, also
  // those of parameters that are not written: the network has them. Errors: as
  // ParameterChoice::TargetName, and those of `memory`.
  static Result<SingleHolders> Make(const Strategy::Stage& layouts, const ParameterChoice& choice,
                                    const MemoryCheck& memory = {});

  // Returns the number of a parameter, by its name in the strategy; no value if each rank keeps it.
  std::optional<size_t> NumberOf(std::string_view name) const;
  // Returns whether this local rank keeps its shard of each parameter, by their numbers.
  std::vector<bool> KeptBy(int64_t local) const;

 private:
  std::vector<ShardGrid> grids_;                                // each once for equal layouts
  std::vector<uint32_t> grid_of_;                               // a parameter's, by its number
  std::vector<std::pair<std::string_view, uint32_t>> numbers_;  // by names in the strategy, sorted
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SINGLE_HOLDERS_H_

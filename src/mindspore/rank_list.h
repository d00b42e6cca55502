// The source ranks that a target rank needs, from the strategies alone.
#ifndef RESHARD_SRC_MINDSPORE_RANK_LIST_H_
#define RESHARD_SRC_MINDSPORE_RANK_LIST_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/mindspore/conversion_rule.h"
#include "src/source/shard_grid.h"

namespace reshard {

// The needs of the ranks of a target stage. Refers to the rule and its strategies, which must
// outlive it. Immutable once made, so any number of threads may read it.
class RankLists {
 public:
  // Errors: kMismatch when the two layouts of a parameter do not fit.
  static Result<RankLists> Make(const ConversionRule& rule, int64_t target_stage);

  struct Source {
    int64_t stage = 0;
    int64_t local = 0;  // rank in the stage
    friend auto operator<=>(const Source&, const Source&) = default;
  };
  // Returns the source ranks, ascending: for each needed stage, one replica of each overlapping
  // shard, and the rank from which parameters without a layout are copied. They are a subset of the
  // ranks that MindSpore's rank_list_for_transform returns. `rank` belongs to the target stage. The
  // cost depends on the overlaps in a few pairs of layouts, not on the number of ranks.
  std::vector<Source> SourcesOf(int64_t rank) const;
  // Returns the same, as the folders of the ranks are numbered.
  std::vector<int64_t> RanksOf(int64_t rank) const;

 private:
  // Two layouts of parameters, as models repeat them in every layer.
  struct Pair {
    ShardGrid source;
    ShardGrid target;
    Shape source_shard;
    Shape target_shard;
  };
  struct Stage {
    int64_t number = 0;
    std::vector<Pair> pairs;
  };

  explicit RankLists(const ConversionRule& rule) : rule_(&rule) {}
  Status AddStage(int64_t number, int64_t target_stage);

  const ConversionRule* rule_;
  std::vector<Stage> stages_;  // of the source, ascending
};

// Fails with kInvalidArgument unless `rank` is a target rank.
Status CheckTargetRank(const ConversionRule& rule, int64_t rank);

// Returns the source ranks that a target rank needs, ascending, by the numbers of their folders.
// Errors: kInvalidArgument if `rank` is no target rank; as RankLists::Make.
Result<std::vector<int64_t>> RankList(const ConversionRule& rule, int64_t rank);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_LIST_H_

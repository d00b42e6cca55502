// The source ranks that a target rank needs, from the strategies alone.
#ifndef RESHARD_SRC_LAYOUT_RANK_LIST_H_
#define RESHARD_SRC_LAYOUT_RANK_LIST_H_

#include <cstdint>
#include <vector>

#include "reshard/status.h"
#include "src/layout/conversion_rule.h"

namespace reshard {

// Returns the least list of source ranks, ascending: one replica of each overlapping shard, and the
// rank from which parameters outside the layouts are copied, for each needed stage. A subset of
// what MindSpore's rank_list_for_transform returns. Errors: kInvalidArgument when `rank` is no
// target rank; kMismatch when the two layouts of a parameter do not fit.
Result<std::vector<int64_t>> RankList(const ConversionRule& rule, int64_t rank);

}  // namespace reshard

#endif  // RESHARD_SRC_LAYOUT_RANK_LIST_H_

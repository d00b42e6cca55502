// ReplicaCheck: the replicas of the sources that a conversion uses.
#ifndef RESHARD_SRC_CONVERT_REPLICA_CHECK_H_
#define RESHARD_SRC_CONVERT_REPLICA_CHECK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "reshard/differences.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/mindspore/conversion_rule.h"

namespace reshard {

// Returns the source stages that these target ranks need, ascending. Ranks that there are not need
// none.
std::vector<int64_t> StagesOf(const ConversionRule& rule, std::span<const int64_t> target_ranks);

// Returns how many bytes CompareReplicas counts for these source stages.
uint64_t ReplicaBytes(const OpenedSource& source, std::span<const int64_t> stages);

// Returns ok when no replicas differ. Errors: kMismatch, which says which do.
Status CheckNoneDiffer(const ReplicaReport& replicas);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_REPLICA_CHECK_H_

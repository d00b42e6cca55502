// Findings about the ranks' values of the same parameters, as text. Pure functions.
#ifndef RESHARD_TOOLS_CLI_RANK_FINDINGS_H_
#define RESHARD_TOOLS_CLI_RANK_FINDINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "reshard/compare.h"

namespace reshard {

// "replicas of 63 parameters compared: all equal"
std::string ReplicasText(const ReplicaReport& replicas);
std::string ReplicasText(const ReplicaReport& a, const ReplicaReport& b);

// "w: rank 3 of B differs from rank 1 from byte 5000 of the shard on", a line for each pair that
// differs. `side` is " of B", or "" if there is a single side.
std::string ReplicaLines(const ReplicaReport& replicas, std::string_view side);

// A note about parameters with different values in different ranks, if there are any.
std::vector<std::string> OwnValueNotes(const ReplicaReport& replicas, std::string_view side);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_RANK_FINDINGS_H_

// SourceChecks: what a conversion checks of its sources before it writes anything.
#ifndef RESHARD_SRC_CONVERT_SOURCE_CHECKS_H_
#define RESHARD_SRC_CONVERT_SOURCE_CHECKS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "reshard/differences.h"
#include "reshard/status.h"
#include "src/convert/conversion_spec.h"
#include "src/convert/crc_files.h"
#include "src/convert/opened_source.h"
#include "src/plan/parameter_choice.h"
#include "src/verify/shared_work.h"

namespace reshard {

struct SourceChecks {
  CrcFiles crc;
  std::vector<int64_t> replica_stages;  // whose replicas are compared
  uint64_t bytes = 0;                   // that all of it reads
};

// Returns what there is to check, as `choice` says, when files of `source_ranks` are read and
// those of `target_ranks` asked for. Errors: those of FindCrcFiles.
Result<SourceChecks> FindChecks(OpenedSource& source, const std::set<int64_t>& source_ranks,
                                const std::vector<int64_t>& target_ranks,
                                const CheckChoice& choice);

// Checks it, of the replicas those of `parameters`. Returns what was found of them, where they are
// compared: all equal.
// Errors: those of CheckCrcFiles; kMismatch for replicas that differ; kCancelled.
Result<std::optional<ReplicaReport>> RunChecks(OpenedSource& source, const SourceChecks& checks,
                                               const ParameterChoice& parameters,
                                               const CheckChoice& choice, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_SOURCE_CHECKS_H_

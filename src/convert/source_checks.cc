#include "src/convert/source_checks.h"

#include "src/base/status_macros.h"
#include "src/convert/replica_check.h"
#include "src/verify/replica_comparison.h"

namespace reshard {

Result<SourceChecks> FindChecks(OpenedSource& source, const std::set<int64_t>& source_ranks,
                                const std::vector<int64_t>& target_ranks,
                                const CheckChoice& choice) {
  SourceChecks checks;
  if (choice.crc) {
    RESHARD_ASSIGN_OR_RETURN(checks.crc, FindCrcFiles(source, source_ranks));
  }
  checks.bytes = checks.crc.bytes;
  if (choice.replicas == CheckReplicas::kAll) {
    checks.replica_stages = StagesOf(source.rule(), target_ranks);
    checks.bytes += ReplicaBytes(source, checks.replica_stages);
  }
  return checks;
}

Result<std::optional<ReplicaReport>> RunChecks(OpenedSource& source, const SourceChecks& checks,
                                               const ParameterChoice& parameters,
                                               const CheckChoice& choice, const SharedWork& work) {
  std::optional<ReplicaReport> replicas;
  const Status crc = CheckCrcFiles(source, checks.crc, work);
  if (crc.code() == StatusCode::kCorrupt) {
    return CorruptError(crc.message() + ", or use it as it is with --no-checksum");
  }
  RESHARD_RETURN_IF_ERROR(crc);
  if (choice.replicas == CheckReplicas::kAll) {
    RESHARD_ASSIGN_OR_RETURN(replicas, CompareReplicas(source.files(), source.shards(), parameters,
                                                       checks.replica_stages, work));
    RESHARD_RETURN_IF_ERROR(CheckNoneDiffer(*replicas));
  }
  return replicas;
}

}  // namespace reshard

// The checks of a conversion's sources before the first write, without the check of the strategy.
#ifndef RESHARD_SRC_CONVERT_SOURCE_CHECKS_H_
#define RESHARD_SRC_CONVERT_SOURCE_CHECKS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
#include "src/convert/rounded_count.h"
#include "src/io/shared_work.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/verify/shard_sample.h"

namespace reshard {

struct CrcFiles {
  std::vector<FileId> files;
  uint64_t bytes = 0;  // that a check of all reads
};

// Returns the chosen files of `ranks` that state their CRC. Errors: as CoveredByCrc.
Result<CrcFiles> FindCrcFiles(OpenedSource& source, const std::set<int64_t>& ranks);

// Checks these files, several at a time. Errors: as CheckCrc and TableCache; kCancelled.
Status CheckCrcFiles(OpenedSource& source, const CrcFiles& files, const SharedWork& work);

// Compares dtype and full shape of all written parameters in `findings` with those in `file`. That
// file has full tensors under the names of the source. Reads only its headers. Adds a warning if it
// lacks some. Errors: kMismatch, naming the first differences and their number; as ReadFileTable.
Status CheckReference(const std::string& path, const std::shared_ptr<const EncryptionKey>& key,
                      const PlanFindings& findings, std::vector<Warning>& warnings);

// Returns the source stages that these target ranks need, ascending. Ranks that there are not need
// none.
std::vector<int64_t> StagesOf(const ConversionRule& rule, std::span<const int64_t> target_ranks);

// Returns how many bytes CompareReplicas counts for these source stages.
uint64_t ReplicaBytes(const OpenedSource& source, std::span<const int64_t> stages);

// Returns ok when no replicas differ. `has_strategy`: whether a strategy says which ought to be the
// same. Errors: kMismatch, which says which do.
Status CheckNoneDiffer(const ReplicaReport& replicas, bool has_strategy);

// Adds to `findings` the totals of `source`, if the files tell them, and the part that `choice`
// takes. Also adds a warning about repeated weights, and whether the source is a stage alone.
// Returns the reads and openings that only this took: a part of SampleLimitsFor, or more if totals
// are expected.
// Errors:
//   kMismatch: the totals differ from the expected ones
//   kInvalidArgument: totals are expected, but the files do not tell them
//   kCancelled
Result<SampleLimits> CheckTotals(const OpenedSource& source, const ParameterChoice& choice,
                                 const std::optional<RoundedCount>& expected,
                                 const std::stop_token& stop, Findings& findings);

struct SourceChecks {
  CrcFiles crc;
  std::vector<int64_t> replica_stages;  // stages with replicas to compare
  uint64_t bytes = 0;                   // that all checks read
};

// Returns the checks that `choice` asks for, when files of `source_ranks` are read for
// `target_ranks`.
// Errors: as FindCrcFiles.
Result<SourceChecks> FindChecks(OpenedSource& source, const std::set<int64_t>& source_ranks,
                                const std::vector<int64_t>& target_ranks,
                                const CheckChoice& choice);

// Makes the checks; replicas are checked for `parameters`. Returns the report about replicas if
// they are compared: all are equal. Errors: as CheckCrcFiles; kMismatch if replicas differ;
// kCancelled.
Result<std::optional<ReplicaReport>> RunChecks(OpenedSource& source, const SourceChecks& checks,
                                               const ParameterChoice& parameters,
                                               const CheckChoice& choice, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_SOURCE_CHECKS_H_

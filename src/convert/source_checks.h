// What a conversion checks of its sources before it writes anything, but for the strategy.
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
#include "reshard/parameters.h"
#include "reshard/status.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
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

// Returns those of the files chosen for `ranks` that state a CRC of themselves. Errors: those of
// CoveredByCrc.
Result<CrcFiles> FindCrcFiles(OpenedSource& source, const std::set<int64_t>& ranks);

// Checks each of them, several at a time. Errors: those of CheckCrc and TableCache; kCancelled.
Status CheckCrcFiles(OpenedSource& source, const CrcFiles& files, const SharedWork& work);

// Compares dtype and full shape of everything that `findings` say is written with those in
// `reference`, a file or a folder of full tensors under the names of the source. Only headers are
// read. Adds a warning if the reference lacks some. Errors: kMismatch, naming the first that differ
// and how many; those of OpenSource.
Status CheckReference(const std::string& path, const std::shared_ptr<const EncryptionKey>& key,
                      const PlanFindings& findings, std::vector<Warning>& warnings);

// Returns the source stages that these target ranks need, ascending. Ranks that there are not need
// none.
std::vector<int64_t> StagesOf(const ConversionRule& rule, std::span<const int64_t> target_ranks);

// Returns how many bytes CompareReplicas counts for these source stages.
uint64_t ReplicaBytes(const OpenedSource& source, std::span<const int64_t> stages);

// Returns ok when no replicas differ. Errors: kMismatch, which says which do.
Status CheckNoneDiffer(const ReplicaReport& replicas);

// Adds the totals of `source` to `findings`, where the files tell them, the part of them that
// `choice` takes, a warning of weights that are in it several times, and whether it is a stage
// alone. Returns what was read and opened for that only: a part of SampleLimitsFor, more where
// totals are expected. Errors: kMismatch for totals that are not the expected ones;
// kInvalidArgument where some are expected and the files do not tell; kCancelled.
Result<SampleLimits> CheckTotals(const OpenedSource& source, const ParameterChoice& choice,
                                 const std::optional<RoundedCount>& expected,
                                 const std::stop_token& stop, Findings& findings);

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

// Plan record: the facts about the sources of a conversion that the worker that planned it leaves
// for the others, so that they need not list and open all sources (SPEC.md).
//
// Plain values; no file is touched.
#ifndef RESHARD_SRC_RECORD_PLAN_RECORD_H_
#define RESHARD_SRC_RECORD_PLAN_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// A source file as the planning worker saw it, and the folder that it was found in.
struct PlannedSource {
  uint64_t rank = 0;
  std::string path;  // relative to PlanRecord::base
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t inode = 0;
  int64_t folder_mtime_ns = 0;

  friend bool operator==(const PlannedSource&, const PlannedSource&) = default;
};

struct PlanRecord {
  std::string options;  // digest of the options that the plan follows from
  std::string job;      // digest of the job that it belongs to
  std::string base;     // the folder of all sources, as the workers name it; may be empty
  int64_t base_mtime_ns = 0;
  uint64_t states_redundancy = 0;  // 1: a source states whether redundancy was removed
  std::string strategy;            // in JSON, that was made for the target's cluster; empty: none
  std::vector<PlannedSource> sources;  // ascending by rank, at least one

  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

// Returns the record's bytes. Errors: kInvalidArgument for values that a plan record cannot hold.
Result<std::string> EncodePlanRecord(const PlanRecord& record);

// Parses a whole record; `path` names it in messages. Any byte that is not as it was written is
// noticed. Errors: kCorrupt; kUnsupported for another schema_version.
Result<PlanRecord> ParsePlanRecord(std::string_view bytes, const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_PLAN_RECORD_H_

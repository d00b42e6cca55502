// Comparing parameters of two checkpoints byte by byte, whatever the layouts of the two.
//
// Thread-safe as their arguments are.
#ifndef RESHARD_SRC_VERIFY_PARAMETER_COMPARISON_H_
#define RESHARD_SRC_VERIFY_PARAMETER_COMPARISON_H_

#include <vector>

#include "reshard/differences.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/mindspore/full_parameter.h"
#include "src/mindspore/source_shards.h"
#include "src/verify/shared_work.h"

namespace reshard {

// Where the parameters of one of the two come from.
struct ComparedCheckpoint {
  SourceFiles& files;
  const SourceShards& shards;
};

// Two parameters of one dtype, full shape and length in bytes.
struct ParameterPair {
  const FullParameter* a = nullptr;
  const FullParameter* b = nullptr;
};

struct PairDifference {
  bool differs = false;
  ValueDifference values;  // only where they were asked for and HasComparableValues
};

// Returns how each pair differs. Without `with_values` a pair's reading ends soon after the first
// difference. Errors: kMismatch when no file holds a shard; those of SourceFiles; kCancelled.
Result<std::vector<PairDifference>> CompareParameters(const ComparedCheckpoint& a,
                                                      const ComparedCheckpoint& b,
                                                      const std::vector<ParameterPair>& pairs,
                                                      bool with_values, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_PARAMETER_COMPARISON_H_

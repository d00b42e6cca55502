// The values of whole parameters, added up whatever their layouts.
//
// Thread-safe as the arguments are.
#ifndef RESHARD_SRC_VERIFY_PARAMETER_VALUES_H_
#define RESHARD_SRC_VERIFY_PARAMETER_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/mindspore/full_parameter.h"
#include "src/mindspore/source_shards.h"
#include "src/verify/shared_work.h"
#include "src/verify/value_sums.h"

namespace reshard {

// Returns whether a parameter has values to be added up.
bool HasValues(const FullParameter& parameter);

// Returns the sums of each of `parameters`, which are of `shards`; nothing of those without values.
// The values are added up in their row-major order, in stretches of fixed length: the same sums for
// every layout and number of workers. Errors: kMismatch when no file holds a shard; those of
// SourceFiles; kCancelled.
Result<std::vector<std::optional<ValueSums>>> SumParameters(
    SourceFiles& files, const SourceShards& shards, const std::vector<FullParameter>& parameters,
    const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_PARAMETER_VALUES_H_

#include "src/verify/full_parameters.h"

#include <mutex>
#include <string>
#include <utility>

#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/in_steps.h"
#include "src/mindspore/planner.h"
#include "src/verify/copied_digest.h"

namespace reshard {

Result<std::vector<FullParameter>> ListFullParameters(const SourceShards& shards,
                                                      PlanNotes& notes) {
  const Planner planner(shards, "", UnmatchedPolicy::kCopy);
  RESHARD_ASSIGN_OR_RETURN(const Planner::Selection selection, planner.Select(0, notes));
  std::vector<FullParameter> parameters;
  for (const auto* names : {&selection.converted, &selection.copied}) {
    for (const std::string& name : *names) {
      RESHARD_ASSIGN_OR_RETURN(FullParameter parameter, DescribeFull(shards, name));
      parameters.push_back(std::move(parameter));
    }
  }
  return parameters;
}

Result<std::vector<Digest128>> DigestFullParameters(SourceFiles& files, const SourceShards& shards,
                                                    const std::vector<FullParameter>& parameters,
                                                    const SharedWork& work) {
  std::vector<uint64_t> sizes;
  sizes.reserve(parameters.size());
  for (const FullParameter& parameter : parameters) sizes.push_back(parameter.bytes);
  std::vector<Digest128> digests(parameters.size());
  std::mutex mutex;  // guards digests
  const auto add = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    const FullParameter& parameter = parameters[index];
    RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies,
                             CopiesOf(shards, parameter, Box::Whole(parameter.tensor.full_shape)));
    LogicalHasher hasher;
    Digest128 sum;
    RESHARD_RETURN_IF_ERROR(
        InSteps(piece, kDigestStepBytes, stop, work.progress,
                [&](ByteRange part) { return AddCopied(files, copies, part, hasher, sum); }));
    const std::scoped_lock lock(mutex);
    digests[index] ^= sum;
    return {};
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, add));
  return digests;
}

}  // namespace reshard

#include "src/verify/shard_evidence.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/shared_work.h"
#include "src/os/threads.h"
#include "src/plan/make_copies.h"
#include "src/source/shard_grid.h"
#include "src/tensor/block_copy.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

// Numbers for the distinct contents of a parameter, in their order of arrival.
class Contents {
 public:
  ContentClass ClassOf(const Digest128& digest) {
    const auto next = static_cast<ContentClass>(classes_.size());
    return classes_.emplace(std::pair(digest.high, digest.low), next).first->second;
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, ContentClass> classes_;
};

Result<Digest128> DigestOf(SourceFiles& files, const std::vector<BlockCopy>& copies, uint64_t bytes,
                           const SharedWork& work, const std::stop_token& stop) {
  LogicalHasher hasher;
  Digest128 sum;
  RESHARD_RETURN_IF_ERROR(
      InSteps({0, bytes}, kDigestStepBytes, stop, work.progress,
              [&](ByteRange part) { return AddCopied(files, copies, part, hasher, sum); }));
  return sum;
}

Result<Digest128> DigestOf(SourceFiles& files, FileId file, const StoredArray& parameter,
                           const SharedWork& work, const std::stop_token& stop) {
  return DigestOf(files, LayOut(file, parameter.content), parameter.bytes, work, stop);
}

Status Differs(const SourceFiles& files, FileId file, const StageParameter& expected,
               std::string_view what) {
  return MismatchError(fmt::format("{}: parameter {}: {}; do the ranks belong to one checkpoint?",
                                   Escape(files.path(file)), Quote(expected.name), what));
}

}  // namespace

Status CollectEvidence(const Source& source, RankRange stage, const Source& reference,
                       std::vector<StageParameter>& parameters, const SharedWork& work) {
  SourceFiles& files = source.files();
  const auto count = static_cast<size_t>(stage.end - stage.begin);
  std::mutex mutex;  // guards the evidence of the parameters
  std::vector<Contents> contents(parameters.size());
  std::vector<std::optional<DType>> dtypes(parameters.size());
  for (StageParameter& parameter : parameters) parameter.evidence.ranks.resize(count);

  const auto add_rank = [&](size_t rank, const std::stop_token& stop) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index,
                             source.TableOf(0, stage.begin + static_cast<int64_t>(rank)));
    const FileId file = index->file();
    for (size_t i = 0; i < parameters.size(); ++i) {
      StageParameter& parameter = parameters[i];
      const StoredArray* found = index->Find(parameter.name);
      if (found == nullptr || found->kind != ArrayKind::kTensor) {
        return Differs(files, file, parameter, "expected it as on other ranks, found none");
      }
      if (found->shape != parameter.shard_shape) {
        return Differs(files, file, parameter,
                       fmt::format("expected the shape {} of other ranks, found {}",
                                   ToString(parameter.shard_shape), ToString(found->shape)));
      }
      RESHARD_ASSIGN_OR_RETURN(const Digest128 digest, DigestOf(files, file, *found, work, stop));
      const std::scoped_lock lock(mutex);
      if (!dtypes[i]) dtypes[i] = found->dtype;
      if (*dtypes[i] != found->dtype) {
        return Differs(files, file, parameter,
                       fmt::format("expected the dtype {} of other ranks, found {}",
                                   DTypeName(*dtypes[i]), DTypeName(found->dtype)));
      }
      parameter.evidence.ranks[rank] = contents[i].ClassOf(digest);
    }
    return {};
  };
  RESHARD_RETURN_IF_ERROR(RunWorkers(work.workers, count, add_rank, work.stop));

  const auto add_parts = [&](size_t i, const std::stop_token& stop) -> Status {
    StageParameter& parameter = parameters[i];
    if (parameter.reference == nullptr || parameter.full_shape == parameter.shard_shape) return {};
    const SourceTensor& full = *parameter.reference;
    if (full.dtype != *dtypes[i]) {
      return Differs(files, source.ranks().files.at(stage.begin), parameter,
                     fmt::format("expected the dtype {} of the reference, found {}",
                                 DTypeName(full.dtype), DTypeName(*dtypes[i])));
    }
    size_t parts = 1;
    for (const int64_t cut : parameter.evidence.cuts) parts *= static_cast<size_t>(cut);
    for (size_t part = 0; part < parts; ++part) {
      const Box box = ShardGrid::BoxOfParts(
          PartAt(static_cast<int64_t>(part), parameter.evidence.cuts), parameter.shard_shape);
      RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies, CopiesOf(reference, full, box));
      RESHARD_ASSIGN_OR_RETURN(const Digest128 digest, DigestOf(reference.files(), copies,
                                                                full.Bytes() / parts, work, stop));
      parameter.evidence.parts.push_back(contents[i].ClassOf(digest));
    }
    return {};
  };
  return RunWorkers(work.workers, parameters.size(), add_parts, work.stop);
}

}  // namespace reshard

// Replicas: ranks that by their layouts hold the same shard of a parameter, compared.
//
// StageShards keeps what the ranks of one source stage hold of the parameters that its layouts cut,
// as digests: of each part of a parameter's grid that of the lowest rank that has it, and which
// parts came with several. Shards may be added from several threads at a time; the rest is for one
// thread, when no shard is added any more.
//
// Parameters in no strategy are each rank's own and never compared.
#ifndef RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_
#define RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/digest/digest128.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/plan/parameter_choice.h"
#include "src/source/source.h"
#include "src/tensor/block_copy.h"
#include "src/verify/copied_bytes.h"
#include "src/verify/rank_file_digests.h"

namespace reshard {

class StageShards {
 public:
  // Of the parameters of `choice`. The arguments must outlive this.
  StageShards(const Source& source, const Strategy& strategy, const ParameterChoice& choice,
              int64_t stage);

  // Returns the place of a parameter in the stage's layouts, if it is one of the choice.
  std::optional<size_t> Find(std::string_view name) const;

  // Returns whether several ranks ought to hold the same shard of it, by the layout.
  // Errors: kMismatch when the layout does not fit the tensor, or it has another number of
  // dimensions than in the file of another rank.
  Result<bool> HasReplicas(size_t layout, const RankFileOfStage& rank,
                           const StoredArray& parameter);

  // Returns whether the layout cuts it. Errors: as above.
  Result<bool> IsCut(size_t layout, const RankFileOfStage& rank, const StoredArray& parameter);

  // Appends to `copies` those that move the shard to its place in the full tensor. Errors: as
  // above; kMismatch for a full tensor of too many bytes.
  Status AddPlaces(size_t layout, const RankFileOfStage& rank, const StoredArray& parameter,
                   std::vector<BlockCopy>& copies);

  // Adds the digest of a shard whose places were added.
  void Add(size_t layout, const RankFileOfStage& rank, const StoredArray& parameter,
           const Digest128& digest);

  // A parameter as a lower stage holds it, and the digest of the full tensor there.
  struct Original {
    const SourceTensor* parameter = nullptr;
    Digest128 digest;
  };
  struct ReportOptions {
    // Whether replicas of a parameter may differ; empty: none may.
    std::function<bool(std::string_view name)> may_differ;
    // What the stage's shards of a parameter are compared with as well, if anything; may be empty.
    std::function<std::optional<Original>(std::string_view name)> original;
  };
  // Adds what was found of replicas to `report`. The parameters whose replicas differ, as they may,
  // are added to `noted` instead. Reads shards that differ once more.
  // Errors: those of SourceFiles and TableCache.
  Status Report(const ReportOptions& options, ReplicaReport& report,
                std::vector<std::string>& noted) const;

  // Returns the digest of the full tensor, from the lowest rank that has each part; nothing where
  // a part is in no file, or of another dtype or shape than `tensor`.
  std::optional<Digest128> SumOf(const SourceTensor& tensor) const;

 private:
  struct Type {
    DType dtype = DType::kFloat32;
    Shape shape;
    uint64_t bytes = 0;
  };
  struct Part {
    Digest128 digest;   // of the lowest rank that came
    int64_t local = 0;  // that rank
    uint32_t type = 0;  // of its shard, in Seen::types
    bool repeated = false;
  };
  // What was seen of one parameter.
  struct Seen {
    std::optional<ShardGrid> grid;            // never changes
    std::vector<Type> types;                  // mostly one
    std::unordered_map<int64_t, Part> parts;  // by number
    uint64_t shards = 0;                      // that are replicas of one another, and their bytes
    uint64_t bytes = 0;
    std::set<int64_t> differing;  // parts that came with several digests or types
  };

  std::mutex& MutexOf(size_t layout) { return mutexes_[layout % mutexes_.size()].mutex; }
  Result<const ShardGrid*> GridOf(size_t layout, const RankFileOfStage& rank,
                                  const StoredArray& parameter);
  // Adds what differs among the replicas of a part.
  Status ComparePart(const std::string& name, const ShardGrid& grid,
                     const std::vector<int64_t>& parts,
                     ReplicaReport::Difference& difference) const;
  // Whether the full tensor is the original; nothing where parts are in no file.
  std::optional<bool> IsOriginal(const Seen& seen, const Original& original) const;
  // Adds where the lowest ranks that hold the parts differ from the original.
  Status CompareWithOriginal(const Seen& seen, const SourceTensor& original,
                             ReplicaReport::Difference& difference) const;
  // Returns the first byte of the first `size` ones that differs, if one does.
  Result<std::optional<ByteDifference>> FirstDifference(std::span<const BlockCopy> expected,
                                                        std::span<const BlockCopy> found,
                                                        uint64_t size) const;

  const Source& source_;
  const Strategy& strategy_;
  const int64_t stage_;
  const StrategyStage& layouts_;
  std::unordered_map<std::string_view, size_t> by_name_;  // places in layouts() of the chosen
  // Several, in lines of the processor's cache of their own, so that threads that are at other
  // parameters do not wait for each other.
  struct alignas(64) OwnMutex {
    std::mutex mutex;
  };
  std::array<OwnMutex, 64> mutexes_;
  std::vector<Seen> seen_;  // as layouts(); each guarded by its MutexOf
};

// Compares the replicas of the parameters of `choice` in the files of these source stages; without
// a source strategy, when it is null, there are none. What has replicas is read once, in file
// order, to digests, of which one is kept for each shard; shards whose digests differ are then read
// again and compared byte by byte. Work is counted in bytes of the files, whether or not they are
// read. Errors: kMismatch where a layout does not fit; those of SourceFiles; kCancelled.
Result<ReplicaReport> CompareReplicas(const Source& source, const Strategy* strategy,
                                      const ParameterChoice& choice,
                                      std::span<const int64_t> stages, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_

// Replicas: compares ranks that hold the same shard of a parameter by their layouts.
//
// StageShards keeps digests of the parameters that the layouts of a source stage cut. For each part
// of a parameter's grid it keeps the digest of the lowest rank, and whether other ranks have
// another one. Several threads may add shards at a time. Once all shards are added, one thread uses
// the rest.
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

  // Returns whether, by the layout, several ranks should hold the same shard of the parameter.
  // Errors: kMismatch if the layout does not fit the tensor, or if the file of another rank has
  // another number of dimensions.
  Result<bool> HasReplicas(size_t layout, const RankFileOfStage& rank,
                           const StoredArray& parameter);

  // Appends the copies that move the shard to its place in the full tensor to `copies`. Errors: as
  // above; kMismatch if the full tensor has too many bytes.
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
  // Returns a further value to compare the stage's shards of a parameter with, if there is one.
  using FindOriginal = std::function<std::optional<Original>(std::string_view name)>;
  // Adds the results about replicas to `report`. `original` may be empty. Reads differing shards
  // again. Errors: as SourceFiles and TableCache.
  Status Report(const FindOriginal& original, ReplicaReport& report) const;

  // Returns the digest of the full tensor, from the lowest rank that has each part. No value if no
  // file has a part, or if a part has another dtype or shape than `tensor`.
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
  // The observations of a parameter.
  struct Seen {
    std::optional<ShardGrid> grid;            // never changes
    std::vector<Type> types;                  // mostly one
    std::unordered_map<int64_t, Part> parts;  // by number
    uint64_t shards = 0;  // the shards that are replicas of each other, and their bytes
    uint64_t bytes = 0;
    std::set<int64_t> differing;  // parts that came with several digests or types
  };

  std::mutex& MutexOf(size_t layout) { return mutexes_[layout % mutexes_.size()].mutex; }
  Result<const ShardGrid*> GridOf(size_t layout, const RankFileOfStage& rank,
                                  const StoredArray& parameter);
  // Adds the differences among the replicas of a part.
  Status ComparePart(const std::string& name, const ShardGrid& grid,
                     const std::vector<int64_t>& parts,
                     ReplicaReport::Difference& difference) const;
  // Whether the full tensor is the original; no value if no file has a part.
  std::optional<bool> IsOriginal(const Seen& seen, const Original& original) const;
  // Adds differences between the original and the lowest ranks that hold the parts.
  Status CompareWithOriginal(const Seen& seen, const SourceTensor& original,
                             ReplicaReport::Difference& difference) const;

  const Source& source_;
  const Strategy& strategy_;
  const int64_t stage_;
  const Strategy::Stage& layouts_;
  std::unordered_map<std::string_view, size_t> by_name_;  // places in layouts() of the chosen
  // Several, in lines of the processor's cache of their own, so that threads that are at other
  // parameters do not wait for each other.
  struct alignas(64) OwnMutex {
    std::mutex mutex;
  };
  std::array<OwnMutex, 64> mutexes_;
  std::vector<Seen> seen_;  // as layouts(); each guarded by its MutexOf
};

// Compares the replicas of the parameters of `choice` in the files for these source stages. If
// `strategy` is null, only a source that lists its tensors may have some (listed_replicas.h).
// Parameters with replicas are read once, in file order, and one digest is kept for each shard.
// Shards with different digests are read again and compared byte by byte. Work is counted in bytes
// of the files, whether or not they are read. Errors: kMismatch if a layout does not fit; as
// SourceFiles; kCancelled.
Result<ReplicaReport> CompareReplicas(const Source& source, const Strategy* strategy,
                                      const ParameterChoice& choice,
                                      std::span<const int64_t> stages, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_

// StageSample: the parts of shards of one source stage that are sampled, and their bytes.
//
// Chosen by one thread; then ranks may be read by several, each by one. What it is made of has to
// outlive it.
#ifndef RESHARD_SRC_VERIFY_STAGE_SAMPLE_H_
#define RESHARD_SRC_VERIFY_STAGE_SAMPLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/plan/parameter_choice.h"
#include "src/source/shard_grid.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"

namespace reshard {

// What may still be read and opened, and what was read.
struct SampleBudget {
  std::atomic<int64_t> reads = 0;
  int64_t granted = 0;  // reads that were added for unmatched tensors, which few checkpoints have
  std::atomic<int64_t> files = 0;
  std::atomic<uint64_t> bytes = 0;
};

// Which parameters are sampled. What it refers to has to outlive it.
struct SampledNames {
  // NOLINTNEXTLINE(google-explicit-constructor): mostly there is nothing else
  SampledNames(const ParameterChoice& takes, std::span<const std::string> others = {})
      : choice(takes), unmatched(others) {}

  const ParameterChoice& choice;
  // Names that ought to be the same in all ranks of a stage, whatever a layout says; sorted.
  std::span<const std::string> unmatched;
};

enum class SampledAs {
  kPlaced,     // by its layout
  kUnmatched,  // SampledNames::unmatched
  kCounter,    // what training counts, the same in all ranks
};

struct SampledParameter {
  // Some bytes of a shard.
  struct Place {
    uint64_t offset = 0;  // in the shard
    ByteRange head;       // of the file, what stands before the content; empty in its middle
    ByteRange content;    // of the file
    std::string header;   // the bytes of `head` in the reference
  };

  const StoredArray* info = nullptr;  // as in the reference, a file of the stage
  const ShardGrid* grid = nullptr;    // of kPlaced
  bool cut = false;
  std::vector<Place> places;  // ascending
  SampledAs as = SampledAs::kPlaced;
};

struct SampledShard {
  bool held = false;               // the rank's file has the parameter
  bool other_type = false;         // but in another dtype or shape than the reference
  bool constant = false;           // one value throughout
  std::vector<std::string> bytes;  // as SampledParameter::places
};

struct SampledRank {
  int64_t local = 0;
  bool known = false;  // its file was opened before
  bool read = false;
  std::string unread;                // why it could not be
  std::vector<SampledShard> shards;  // as StageSample::parameters()
};

class StageSample {
 public:
  StageSample(SourceFiles& others, const Source& source, const Strategy& strategy,
              const SampledNames& names, int64_t stage, SampleBudget& budget)
      : others_(others),
        source_(source),
        strategy_(strategy),
        names_(names),
        stage_(stage),
        budget_(budget) {}
  StageSample(const StageSample&) = delete;
  StageSample& operator=(const StageSample&) = delete;

  // Chooses parameters and ranks, so that about `reads` are enough, and at most `files` files that
  // nobody opened yet. Errors: those of reading a file of
  // the stage; kMismatch where a layout does not fit.
  Status Choose(int64_t reads, int64_t files);

  // Reads what rank number `index` of ranks() holds. Errors: those of reading, for a file that was
  // opened before; of others `unread` says it.
  Status Read(size_t index);

  bool any_cut() const { return any_cut_; }
  bool any_matrix_has_replicas() const { return any_matrix_has_replicas_; }
  const std::vector<SampledParameter>& parameters() const { return parameters_; }
  const std::vector<SampledRank>& ranks() const { return ranks_; }
  int64_t RankOf(const SampledRank& rank) const { return source_.RankOf(stage_, rank.local); }

 private:
  // Parameters of one layout.
  struct Group {
    ShardGrid grid = ShardGrid::Whole(0);
    bool cut = false;
    bool replicas = false;
    std::vector<const StoredArray*> parameters;  // those that tell most first
  };

  // Chooses the file that the others are compared with: of those that were opened, as far as they
  // differ, the one that holds the most; one of no parameters only where all are so.
  Status ChooseReference();
  Status ListGroups();
  // Returns up to `most` ranks that are there: all, or those that differ in one device axis.
  std::vector<int64_t> ChooseRanks(size_t most) const;
  // Puts the ranks first that hold the same as `base`, or that differ from it in one axis.
  void AddRelatives(int64_t base, std::vector<int64_t>& order) const;
  // Returns the parameter of `group` that is looked at as number `i`.
  static const StoredArray* InTurn(const Group& group, size_t i);
  // Has a server send what is probably going to be read of the files of `locals` that have the
  // table of the reference: the first `count` parameters of each of `groups` groups.
  void AskAhead(const std::vector<int64_t>& locals, size_t groups, size_t count, bool all_places);
  // The same for all that is going to be read of a file. Nothing happens where none is remote, or
  // where it fails: who reads it says why.
  void AskAhead(SourceFiles& files, FileId file) const;
  // Chooses up to `count` parameters of `group` whose bytes in the reference tell something; looks
  // at others as long as more than `least` reads are left.
  Status ChooseParameters(const Group& group, size_t count, bool all_places, int64_t least);
  // Returns about how many reads AddOthers makes necessary where `ranks` ranks are read.
  int64_t ReadsOfOthers(size_t ranks) const;
  // Chooses of what is not placed.
  Status AddOthers();
  // Reads `parameter` in the reference.
  Result<SampledShard> ReadReference(SampledParameter& parameter);
  // Whether it is read in that rank: two ranks of a stage tell whether all have the same.
  bool IsReadIn(const SampledParameter& parameter, int64_t local) const;
  // Whether one rank of the stage has a file.
  bool IsAlone() const { return present_.size() == 1; }
  // Whether unmatched tensors are compared in this rank, one of those chosen.
  bool IsForUnmatched(int64_t local) const;

  Status ReadOpened(SampledRank& rank, FileId file);
  Status ReadUnopened(SampledRank& rank, const std::string& path);
  // Reads a parameter at the places of the reference. Returns false where other headers are there.
  Result<bool> ReadAlike(SourceFiles& files, FileId file, const SampledParameter& parameter,
                         SampledShard& shard);
  // Reads it where `info`, which may be null, has it in a file with another table.
  Status ReadElsewhere(SourceFiles& files, FileId file, const StoredArray* info,
                       const SampledParameter& parameter, SampledShard& shard);
  // Reads one place: what stands before it, and its bytes.
  Status ReadPlace(SourceFiles& files, FileId file, const SampledParameter::Place& place,
                   std::string& header, std::string& bytes);

  SourceFiles& others_;
  const Source& source_;
  const Strategy& strategy_;
  const SampledNames& names_;
  const int64_t stage_;
  SampleBudget& budget_;
  std::vector<int64_t> present_;  // local ranks, ascending
  TableHandle reference_;
  int64_t reference_local_ = 0;
  uint64_t reference_size_ = 0;
  std::vector<Group> groups_;
  std::vector<const StoredArray*> unmatched_;  // in the order of the reference
  std::vector<const StoredArray*> counters_;
  bool any_cut_ = false;
  bool any_matrix_has_replicas_ = false;
  bool is_remote_ = false;  // the reference: each request waits for a server
  std::vector<SampledParameter> parameters_;
  std::vector<SampledShard> reference_shards_;  // as parameters_
  std::vector<SampledRank> ranks_;
  int64_t reads_of_index_ = 0;      // that a file with another table may cost
  int64_t reads_of_unmatched_ = 0;  // likewise, where unmatched tensors are compared
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STAGE_SAMPLE_H_

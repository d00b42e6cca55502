// StageSample: the sampled parts of the shards of a source stage, and their bytes.
//
// One thread makes the choice. Then several threads may read, each its own ranks. The arguments of
// the constructor have to outlive the object.
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

// The reads and files that are left, and counts of finished reads.
struct SampleBudget {
  std::atomic<int64_t> reads = 0;
  int64_t granted = 0;  // reads that were added for unmatched tensors, which few checkpoints have
  std::atomic<int64_t> files = 0;
  std::atomic<uint64_t> bytes = 0;
};

// The choice of the sampled parameters. Referenced objects have to outlive it.
struct SampledNames {
  // NOLINTNEXTLINE(google-explicit-constructor): mostly there are no other arguments
  SampledNames(const ParameterChoice& takes, std::span<const std::string> others = {})
      : choice(takes), unmatched(others) {}

  const ParameterChoice& choice;
  // Names whose tensors should be the same in all ranks of a stage, under any layout; sorted.
  std::span<const std::string> unmatched;
};

enum class SampledAs {
  kPlaced,     // by its layout
  kUnmatched,  // SampledNames::unmatched
  kCounter,    // a counter of training, the same in all ranks
};

struct SampledParameter {
  // Some bytes of a shard.
  struct Place {
    uint64_t offset = 0;  // in the shard
    ByteRange head;       // of the file, the bytes before the content; empty inside the content
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

  // Chooses parameters and ranks for about `reads` reads, with at most `files` files that were not
  // opened yet. Errors: from reading a file of the stage; kMismatch if a layout does not fit.
  Status Choose(int64_t reads, int64_t files);

  // Reads the sampled bytes of rank number `index` of ranks(). Errors: from reading, for a file
  // that was opened before. For other files, `unread` has the error.
  Status Read(size_t index);

  bool any_cut() const { return any_cut_; }
  bool any_matrix_has_replicas() const { return any_matrix_has_replicas_; }
  const std::vector<SampledParameter>& parameters() const { return parameters_; }
  const std::vector<SampledRank>& ranks() const { return ranks_; }
  int64_t RankOf(const SampledRank& rank) const { return source_.RankOf(stage_, rank.local); }

 private:
  // The parameters of a layout.
  struct Group {
    ShardGrid grid = ShardGrid::Whole(0);
    bool cut = false;
    bool replicas = false;
    std::vector<const StoredArray*> parameters;  // the most telling ones first
  };

  // Chooses the file that the others are compared with: among the opened files that differ, the one
  // with the most arrays. A file without parameters is chosen only if all are empty.
  Status ChooseReference();
  Status ListGroups();
  // Returns up to `most` ranks that exist: all, or ranks that differ in one device axis.
  std::vector<int64_t> ChooseRanks(size_t most) const;
  // Puts the ranks first that hold the same as `base`, or that differ from it in one axis.
  void AddRelatives(int64_t base, std::vector<int64_t>& order) const;
  // Returns the parameter of `group` that is looked at as number `i`.
  static const StoredArray* InTurn(const Group& group, size_t i);
  // Makes a server send the bytes that will probably be read of the files of `locals`. These files
  // have the table of the reference. The bytes are the first `count` parameters in each of `groups`
  // groups.
  void AskAhead(const std::vector<int64_t>& locals, size_t groups, size_t count, bool all_places);
  // As above, for all bytes that will be read of a file. Has no effect if no file is remote. Errors
  // are ignored, because the later read reports them.
  void AskAhead(SourceFiles& files, FileId file) const;
  // Chooses up to `count` parameters of `group` whose bytes in the reference have evidence. Looks
  // at other parameters while more than `least` reads are left.
  Status ChooseParameters(const Group& group, size_t count, bool all_places, int64_t least);
  // Returns about how many reads AddOthers makes necessary where `ranks` ranks are read.
  int64_t ReadsOfOthers(size_t ranks) const;
  // Chooses among arrays that are not placed.
  Status AddOthers();
  // Reads `parameter` in the reference.
  Result<SampledShard> ReadReference(SampledParameter& parameter);
  // Whether it is read in that rank: two ranks of a stage tell whether all have the same.
  bool IsReadIn(const SampledParameter& parameter, int64_t local) const;
  // Whether one rank of the stage has a file.
  bool IsAlone() const { return present_.size() == 1; }
  // Whether unmatched tensors are compared in this chosen rank.
  bool IsForUnmatched(int64_t local) const;

  Status ReadOpened(SampledRank& rank, FileId file);
  Status ReadUnopened(SampledRank& rank, const std::string& path);
  // Reads a parameter at the places of the reference. Returns false if there are other headers.
  Result<bool> ReadAlike(SourceFiles& files, FileId file, const SampledParameter& parameter,
                         SampledShard& shard);
  // Reads it where `info`, which may be null, has it in a file with another table.
  Status ReadElsewhere(SourceFiles& files, FileId file, const StoredArray* info,
                       const SampledParameter& parameter, SampledShard& shard);
  // Reads a place: the header before it, and its bytes.
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
  int64_t reads_of_unmatched_ = 0;  // likewise, if unmatched tensors are compared
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STAGE_SAMPLE_H_

// Source: a sharded checkpoint to take from: what it holds, and where the bytes of a box lie.
//
// A placement says which files ought to hold what; their tables, read on demand, say what they do.
// Nothing is read but headers. Thread-safe; what it is made of must outlive it.
#ifndef RESHARD_SRC_SOURCE_SOURCE_H_
#define RESHARD_SRC_SOURCE_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"
#include "src/source/placement.h"
#include "src/source/table_cache.h"

namespace reshard {

class Source {
 public:
  Source(SourceFiles& files, TableCache& tables, const Placement& placement,
         MemoryCheck memory = {});

  const Placement& placement() const { return placement_; }
  const RankedFiles& ranks() const { return placement_.ranks(); }
  SourceFiles& files() const { return files_; }
  // Whom planning asks now and then whether it may go on.
  const MemoryCheck& memory() const { return memory_; }
  const std::string& PathOf(FileId file) const { return files_.path(file); }
  // "rank_3/net-1_100.ckpt: parameter \"w\"", for messages.
  std::string Where(FileId file, std::string_view name) const;

  // Returns the rank that is number `local` of a stage.
  int64_t RankOf(int64_t stage, int64_t local) const {
    return ranks().RanksOf(stage).begin + local;
  }
  // Returns whether the file of local rank `local` of a stage is there and was never opened.
  bool HasNewFile(int64_t stage, int64_t local) const;
  // Returns the FileTable::id() of that file, 0 where it is not there or was never opened.
  uint64_t KnownTableId(int64_t stage, int64_t local) const;
  // Returns whether the file of `rank` was opened and states no CRC of itself.
  bool IsKnownWithoutCrc(int64_t rank) const;
  // Returns the index of that file, null where there is none.
  Result<TableHandle> TableOf(int64_t stage, int64_t local) const;
  // Returns the index of the file that tells of `tensor`.
  Result<TableHandle> TableOf(const SourceTensor& tensor) const { return tables_.Get(tensor.file); }
  // Returns the FileTable::id() of that index, 0 where there is no file, or where one of a
  // rank that by a list holds the same has another: then the table does not tell all. Files of one
  // id hold the same parameters at the same places, whatever indexes are there still. Opens the
  // file the first time only. Errors: as TableOf.
  Result<uint64_t> TableIdOf(int64_t stage, int64_t local) const;

  // Which files of one stage hold which parameters.
  struct Census {
    std::vector<std::string> names;  // as first seen, in the order in which the stage's files count
    struct Holders {
      int64_t lowest = 0;  // local rank
      int64_t count = 0;
    };
    std::unordered_map<std::string, Holders> holders;  // by name
    int64_t files = 0;                                 // of the stage's ranks
    // Whether some file lacks a parameter that another one has: saved without redundancy.
    bool files_differ = false;
  };
  // Looks into every file of a stage, once in the life of this object. For the rare cases in which
  // a few files do not tell what the stage holds.
  Result<const Census*> CensusOf(int64_t stage) const;

  // Returns FileTable::metadata() of that file, null where there is none. Opens the file the first
  // time only. Errors: as TableOf.
  Result<std::shared_ptr<const FileStrings>> MetadataOf(int64_t stage, int64_t local) const;

  // Returns whether the source has a parameter `name` beside those of `file`: that file has it, or
  // the placement knows where it is. A file that cannot be opened has nothing.
  bool HasBeside(const IndexedFile& file, std::string_view name) const;
  // As above, beside `tensor`; a file that cannot be opened has nothing.
  bool HasBeside(const SourceTensor& tensor, std::string_view name) const;

  // Returns the tensor `name`, which is placed, as its placement or else a shard that is there
  // tells it, mostly that of local rank `near`. Errors: kMismatch, and those of opening a file.
  Result<SourceTensor> Describe(std::string_view name, int64_t near) const {
    size_t next = 0;
    return Describe(name, near, next);
  }
  // As above, for one who asks in the order of a file, with FileTable::Find's `next`.
  Result<SourceTensor> Describe(std::string_view name, int64_t near, size_t& next) const;
  // Returns the tensor `name`, or a text or a MapTensor, as it stands in one file of the stages
  // `stages`, ascending: in that of local rank `near`, or else of one that by a list holds the
  // same, of the lowest stage that has it there; else, where it is placed, in that of the lowest
  // rank that holds the same part as that rank ought to; else in the lowest rank that has it.
  // Errors: kMismatch when no file has it, or that part of it; those of opening a file.
  Result<SourceTensor> FindWhole(std::string_view name, std::span<const int64_t> stages,
                                 int64_t near) const;
  // Returns the tensor `name` as a target without layouts gets it: where it is placed, as Describe,
  // else as it stands in the file of the lowest rank. Errors: as theirs.
  Result<SourceTensor> DescribeFull(std::string_view name) const {
    size_t next = 0;
    return DescribeFull(name, next);
  }
  // As above, for one who asks in the order of a file, with FileTable::Find's `next`.
  Result<SourceTensor> DescribeFull(std::string_view name, size_t& next) const;
  // Returns pieces that together hold `box`, each element once, near `near` if it can be. Of what
  // stands as it is the one piece that it is. Errors: kMismatch when arrays disagree in dtype or
  // shape, or when no file holds a part (names the ranks that would).
  Result<std::vector<PlacedPiece>> Cover(const SourceTensor& tensor, const Box& box,
                                         int64_t near) const;
  // A part of a tensor, and the ranks whose files hold it, ascending.
  struct HeldPart {
    Box box;
    std::vector<int64_t> ranks;
  };
  // Returns all parts of a tensor; looks into the files of all that ought to hold them. Errors:
  // those of opening a file.
  Result<std::vector<HeldPart>> PartsOf(const SourceTensor& tensor) const;

 private:
  // What is known of the file of one rank.
  struct RankEntry {
    RankEntry(int64_t r, FileId f) : rank(r), file(f) {}
    int64_t rank;
    FileId file;
    std::atomic<uint64_t> table = 0;              // 0: not yet opened
    std::atomic<bool> no_crc = false;             // it was, and states no CRC
    std::shared_ptr<const FileStrings> metadata;  // of the table; guarded by metadata_mutex_
  };

  // Returns the entry of a rank, or null. Costs the same for any number of ranks, where none is
  // missing.
  RankEntry* Find(int64_t rank) const;
  // Returns the other local ranks that by a list hold what `local` holds, ascending.
  std::vector<int64_t> StandIns(int64_t stage, int64_t local) const;
  Result<uint64_t> TableIdOf(RankEntry& entry) const;
  Result<TableHandle> Open(RankEntry& entry) const;
  // Returns the tensor `name` as the placement alone tells it.
  SourceTensor ToldTensor(std::string_view name, const Placement::Told& told) const;
  // Returns the tensor `name`, which is placed, as it stands in the file of the lowest rank that
  // has the part that local rank `local` ought to hold; nothing where it is not cut. Errors:
  // kMismatch where no file has that part; those of opening a file.
  Result<std::optional<SourceTensor>> FindReplica(std::string_view name, int64_t local) const;
  // Takes the box of `part`.
  Result<PlacedPiece> Locate(const SourceTensor& tensor, Placement::Part& part) const;
  // A stored array and the table that has it; null if the file of its rank is missing or lacks it.
  struct Found {
    TableHandle table;
    const StoredArray* array = nullptr;
  };
  Result<Found> FindArray(const ArrayPlace& place) const;
  bool HasElsewhere(std::string_view name) const;
  // Says that no file holds a part.
  Status NotHeld(const SourceTensor& tensor, const Placement::Part& part) const;
  // Looks into the file of the nearest array, and for another one where that does not have it.
  Result<PlacedPiece> LocateElsewhere(const SourceTensor& tensor, Placement::Part& part) const;

  SourceFiles& files_;
  TableCache& tables_;
  const Placement& placement_;
  const MemoryCheck memory_;
  mutable std::deque<RankEntry> ranks_;  // ascending; a deque, as entries cannot be moved
  mutable std::mutex metadata_mutex_;
  mutable std::mutex census_mutex_;
  mutable std::map<int64_t, Census>
      census_;  // by stage; guarded by census_mutex_, entries never change
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_SOURCE_H_

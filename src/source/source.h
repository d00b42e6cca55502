// Source: a sharded checkpoint to take from: its tensors, and the places of a box's bytes.
//
// A placement says which files should hold which parts. The files' tables, read on demand, say what
// they hold. Reads headers only. Thread-safe; the constructor's arguments must outlive it.
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
  // The check that planning calls now and then.
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
  // Returns the FileTable::id() of the file; 0 if it does not exist or was never opened.
  uint64_t KnownTableId(int64_t stage, int64_t local) const;
  // Returns whether the file of `rank` was opened and states no CRC of itself.
  bool IsKnownWithoutCrc(int64_t rank) const;
  // Returns the index of the file; null if there is no file.
  Result<TableHandle> TableOf(int64_t stage, int64_t local) const;
  // Returns the index of the file that describes `tensor`.
  Result<TableHandle> TableOf(const SourceTensor& tensor) const { return tables_.Get(tensor.file); }
  // Returns the FileTable::id() of the index. Returns 0 if there is no file. Also returns 0 if a
  // rank that, by a list, holds the same has another table, because then the table is incomplete.
  // Files with the same id have the same parameters at the same places, even after their indexes
  // are dropped. Opens the file the first time only. Errors: as TableOf.
  Result<uint64_t> TableIdOf(int64_t stage, int64_t local) const;

  // The parameters in each file of a stage.
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
  // Reads the tables of all files of a stage, once in the life of this object. For the rare cases
  // in which a few files do not tell the parameters of the stage.
  Result<const Census*> CensusOf(int64_t stage) const;

  // Returns FileTable::metadata() of the file; null if there is no file. Opens the file the first
  // time only. Errors: as TableOf.
  Result<std::shared_ptr<const FileStrings>> MetadataOf(int64_t stage, int64_t local) const;

  // Returns whether the source has a parameter `name` beside those of `file`: either that file has
  // it, or the placement knows its place. A file that cannot be opened counts as empty.
  bool HasBeside(const IndexedFile& file, std::string_view name) const;
  // As above, beside `tensor`. A file that cannot be opened counts as empty.
  bool HasBeside(const SourceTensor& tensor, std::string_view name) const;

  // Returns the placed tensor `name`, as its placement describes it, or else from any available
  // shard, preferably the one of local rank `near`. Errors: kMismatch, and those of opening a file.
  Result<SourceTensor> Describe(std::string_view name, int64_t near) const {
    size_t next = 0;
    return Describe(name, near, next);
  }
  // As above, for callers that ask in the order of a file, with FileTable::Find's `next`.
  Result<SourceTensor> Describe(std::string_view name, int64_t near, size_t& next) const;
  // Returns the tensor, text or MapTensor `name` as it is in one file of the stages `stages`,
  // ascending. The first that exists is taken:
  //
  // 1. the file of local rank `near`, or of a rank that by a list holds the same, in the lowest
  //    stage
  // 2. if it is placed: the lowest rank that holds the part that `near` should hold
  // 3. the lowest rank that has it
  //
  // Errors: kMismatch if no file has it, or that part; from opening a file.
  Result<SourceTensor> FindWhole(std::string_view name, std::span<const int64_t> stages,
                                 int64_t near) const;
  // Returns the tensor `name` as a target without layouts gets it: if it is placed, as Describe;
  // else as it is in the file of the lowest rank. Errors: as there.
  Result<SourceTensor> DescribeFull(std::string_view name) const {
    size_t next = 0;
    return DescribeFull(name, next);
  }
  // As above, for callers that ask in the order of a file, with FileTable::Find's `next`.
  Result<SourceTensor> DescribeFull(std::string_view name, size_t& next) const;
  // Returns pieces that together hold `box`, each element once, near `near` if possible. A tensor
  // that stands by itself has a single piece. Errors: kMismatch if arrays disagree in dtype or
  // shape, or if no file holds a part (the message names the ranks that would).
  Result<std::vector<PlacedPiece>> Cover(const SourceTensor& tensor, const Box& box,
                                         int64_t near) const;
  // A part of a tensor, and the ranks whose files hold it, ascending.
  struct HeldPart {
    Box box;
    std::vector<int64_t> ranks;
  };
  // Returns all parts of a tensor. Reads the tables of all files that should hold them. Errors:
  // those of opening a file.
  Result<std::vector<HeldPart>> PartsOf(const SourceTensor& tensor) const;

 private:
  // The facts about the file of a rank.
  struct RankEntry {
    RankEntry(int64_t r, FileId f) : rank(r), file(f) {}
    int64_t rank;
    FileId file;
    std::atomic<uint64_t> table = 0;              // 0: not yet opened
    std::atomic<bool> no_crc = false;             // it was, and states no CRC
    std::shared_ptr<const FileStrings> metadata;  // of the table; guarded by metadata_mutex_
  };

  // Returns the entry of a rank, or null. If no rank is missing, the cost does not depend on the
  // number of ranks.
  RankEntry* Find(int64_t rank) const;
  // Returns the other local ranks that, by a list, hold the same as `local`, ascending.
  std::vector<int64_t> StandIns(int64_t stage, int64_t local) const;
  Result<uint64_t> TableIdOf(RankEntry& entry) const;
  Result<TableHandle> Open(RankEntry& entry) const;
  // Returns the tensor `name` as the placement alone tells it.
  SourceTensor ToldTensor(std::string_view name, const Placement::Told& told) const;
  // Returns the placed tensor `name` as it is in the file of the lowest rank with the part that
  // local rank `local` should hold. Returns no value if it is not cut. Errors: kMismatch if no file
  // has that part; from opening a file.
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
  // Reads the table of the nearest array's file, and of another file if that one lacks the array.
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

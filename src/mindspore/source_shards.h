// SourceShards: the source side of a plan: which file holds which box of which parameter.
//
// Knows the rank files that were found, the layouts, and, on demand, the indexes of the files.
// Nothing is read but headers. Thread-safe; the SourceFiles, TableCache and ConversionRule must
// outlive it.
#ifndef RESHARD_SRC_MINDSPORE_SOURCE_SHARDS_H_
#define RESHARD_SRC_MINDSPORE_SOURCE_SHARDS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/box.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/holder_groups.h"
#include "src/mindspore/layout_grid.h"
#include "src/source/placement.h"
#include "src/source/table_cache.h"

namespace reshard {

class SourceShards {
 public:
  SourceShards(SourceFiles& files, TableCache& indexes, const ConversionRule& rule,
               std::map<int64_t, FileId> rank_files, HolderGroups groups = {},
               MemoryCheck memory = {});

  const ConversionRule& rule() const { return rule_; }
  // By rank, as the folders are numbered.
  const std::map<int64_t, FileId>& rank_files() const { return rank_files_; }
  const HolderGroups& groups() const { return groups_; }
  // Whom planning asks now and then whether it may go on.
  const MemoryCheck& memory() const { return memory_; }

  // Returns whether a file of any rank of source stage `stage` is there.
  bool HasFiles(int64_t stage) const;

  // Returns the local ranks of source stage `stage` whose files are there, ascending.
  std::vector<int64_t> LocalRanks(int64_t stage) const;

  // Returns whether the file of local rank `local` of source stage `stage` is there and was never
  // opened by TableOf.
  bool HasNewFile(int64_t stage, int64_t local) const;

  // Returns the FileTable::id() of the index of that file, 0 where it is not there or was
  // never opened.
  uint64_t KnownTable(int64_t stage, int64_t local) const;

  // The parameters in files of one stage that the source strategy has in other stages only.
  struct Strays {
    int64_t rank = 0;  // the lowest that holds some of them, and its file
    FileId file = 0;
    std::set<std::string, std::less<>> names;
  };
  // Returns those of the files that were opened so far, by stage; of a few stages.
  std::map<int64_t, Strays> FoundStrays() const;

  // Returns the index of the file of local rank `local` of source stage `stage`, null where there
  // is no file.
  Result<TableHandle> IndexOf(int64_t stage, int64_t local) const;

  // Returns the FileTable::id() of that index, 0 where there is no file, or where one of a
  // rank that by a list holds the same weights has another: then the table does not tell all. Files
  // of one id hold the same parameters at the same places, whatever indexes are there still. Opens
  // the file the first time only. Errors: as IndexOf.
  Result<uint64_t> TableOf(int64_t stage, int64_t local) const;

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

  // Where a parameter that no layout cuts is copied from.
  struct Holder {
    int64_t stage = 0;
    int64_t rank = 0;
    TableHandle index;
  };
  // Finds `name` in the files of the source stages `stages`, ascending: in that of local rank
  // `preferred`, or else of one that by a list holds the same weights, of the lowest stage that has
  // it there, else in the lowest rank that has it. Errors: kMismatch when no file has it, and those
  // of opening a file.
  Result<Holder> FindWhole(std::string_view name, const std::vector<int64_t>& stages,
                           int64_t preferred) const;

  // Returns the shape and grid of a parameter that a layout cuts, from one shard that is there,
  // that of local rank `preferred` if it can be. Errors: kMismatch, and those of opening a file.
  Result<SourceTensor> Describe(std::string_view name, int64_t preferred) const;

  // Returns shards that together hold `box`, one replica of each overlapping part, near `preferred`
  // if it can be. Errors: kMismatch when shards disagree in dtype or shape, or when no file holds a
  // part (names the ranks that would).
  Result<std::vector<PlacedPiece>> Cover(const SourceTensor& tensor, const Box& box,
                                         int64_t preferred) const;

  // Returns the ranks whose files hold the part `parts` of a tensor that a layout cuts, ascending.
  // Errors: those of opening a file.
  Result<std::vector<int64_t>> Holders(const SourceTensor& tensor,
                                       const std::vector<int64_t>& parts) const;

  const std::string& PathOf(FileId file) const { return files_.path(file); }
  // "rank_3/net-1_100.ckpt: parameter \"w\"", for messages.
  std::string Where(FileId file, std::string_view name) const;

 private:
  // What is known of the file of one rank.
  struct RankEntry {
    RankEntry(int64_t r, FileId f) : rank(r), file(f) {}
    int64_t rank;
    FileId file;
    std::atomic<uint64_t> table = 0;  // 0: not yet opened
  };

  // Returns the entry of a rank as the folders are numbered, or null. Costs the same for any number
  // of ranks, where none is missing.
  RankEntry* Find(int64_t rank) const;
  std::deque<RankEntry>::iterator LowerBound(int64_t rank) const;
  // Returns the rank behind those of a stage. Without a source strategy all that there are hold
  // full tensors.
  int64_t EndOf(int64_t stage) const;
  // Returns the other local ranks that by a list hold the weights of `local`, ascending.
  std::vector<int64_t> HoldersLike(int64_t stage, int64_t local) const;
  Result<uint64_t> TableOf(RankEntry& entry) const;
  // Returns the index of a rank's file, and looks for strays in its table, if that is new.
  Result<TableHandle> Open(RankEntry& entry) const;
  void FindStrays(const RankEntry& entry, const IndexedFile& index) const;
  // Returns the local ranks whose grid part is `parts` and whose files are there, ascending.
  std::vector<int64_t> FilesOf(const SourceTensor& tensor, const std::vector<int64_t>& parts) const;
  Result<PlacedPiece> Locate(const SourceTensor& tensor, const std::vector<int64_t>& parts,
                             int64_t preferred) const;
  // Looks for another replica where the file of the preferred one does not have the tensor.
  Result<PlacedPiece> LocateElsewhere(const SourceTensor& tensor, const std::vector<int64_t>& parts,
                                      int64_t preferred) const;

  SourceFiles& files_;
  TableCache& indexes_;
  const ConversionRule& rule_;
  const std::map<int64_t, FileId> rank_files_;
  const HolderGroups groups_;
  const MemoryCheck memory_;
  mutable std::deque<RankEntry> ranks_;  // ascending; a deque, as entries cannot be moved
  mutable GridCache grids_;
  mutable std::mutex census_mutex_;
  mutable std::map<int64_t, Census>
      census_;  // by stage; guarded by census_mutex_, entries never change
  mutable std::mutex strays_mutex_;
  // Whether the tables that were looked at have strays, by stage and id; both guarded by
  // strays_mutex_.
  mutable std::map<std::pair<int64_t, uint64_t>, bool> tables_;
  mutable std::map<int64_t, Strays> strays_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SOURCE_SHARDS_H_

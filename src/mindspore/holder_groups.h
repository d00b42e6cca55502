// HolderGroups: lists of ranks that hold the same weights, from group_info files.
//
// Layouts have priority in questions about replicas. The lists count for parameters that no layout
// cuts, and for ranks whose file is missing. Immutable, so any number of threads may read it.
#ifndef RESHARD_SRC_MINDSPORE_HOLDER_GROUPS_H_
#define RESHARD_SRC_MINDSPORE_HOLDER_GROUPS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

class ConversionRule;

class HolderGroups {
 public:
  struct List {
    std::string path;            // of the file, for messages
    std::vector<int64_t> ranks;  // ascending, each once
  };

  HolderGroups() = default;
  // Takes each list once, of whichever files. Errors: kMismatch when a rank is in two lists that
  // differ.
  static Result<HolderGroups> Make(std::vector<List> lists);

  // Fails with kMismatch if a list has ranks that the source does not have, or that hold different
  // shards by its layouts. Without a source strategy any ranks may be full replicas.
  Status CheckAgainst(const ConversionRule& rule) const;

  // By their lowest rank.
  const std::vector<List>& lists() const { return lists_; }
  // Returns the ranks in the list of `rank`, with itself; empty if no list has it.
  std::span<const int64_t> HoldersLike(int64_t rank) const;

 private:
  std::vector<List> lists_;
  std::map<int64_t, size_t> list_of_;  // by rank
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_HOLDER_GROUPS_H_

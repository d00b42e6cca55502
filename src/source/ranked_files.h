// RankedFiles: the files of a source by rank, and the stages of its ranks.
//
// A rank is the number of a file, whether the file exists or not. Ranks are grouped into stages. A
// tensor that is cut lies in the files of one stage, and `local` counts the ranks of a stage from
// 0. A plain value; opens no file.
#ifndef RESHARD_SRC_SOURCE_RANKED_FILES_H_
#define RESHARD_SRC_SOURCE_RANKED_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "src/io/source_files.h"

namespace reshard {

// The ranks [begin, end).
struct RankRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct RankedFiles {
  // The files that are there, by rank.
  std::map<int64_t, FileId> files = {};
  // The lowest rank of stage 0, and how many ranks each stage has; 0: one stage has all ranks.
  int64_t first = 0;
  int64_t stage_ranks = 0;
  // The stages that a target without layouts takes tensors from, ascending.
  std::vector<int64_t> taken_stages = {0};
  // Whether the files of a stage are listed from the lowest rank on, else from the highest.
  bool is_ascending = true;
  // Whether the files are one set, with tensors in the order of a target's strategy.
  bool is_folder = false;
  // Returns the ranks that, by a list, hold the same as a rank, with itself, ascending. Null: there
  // are no lists.
  std::function<std::span<const int64_t>(int64_t rank)> stand_ins = {};

  // Returns the ranks of a stage, whether their files are there or not.
  RankRange RanksOf(int64_t stage) const;
  // Returns whether a file of any rank of a stage is there.
  bool HasFiles(int64_t stage) const;
  // Returns the local ranks of a stage with existing files, ascending.
  std::vector<int64_t> LocalRanks(int64_t stage) const;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_RANKED_FILES_H_

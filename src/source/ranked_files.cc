#include "src/source/ranked_files.h"

namespace reshard {

RankRange RankedFiles::RanksOf(int64_t stage) const {
  if (stage_ranks == 0) return {0, files.empty() ? 0 : files.rbegin()->first + 1};
  const int64_t begin = first + stage * stage_ranks;
  return {begin, begin + stage_ranks};
}

bool RankedFiles::HasFiles(int64_t stage) const {
  const auto [begin, end] = RanksOf(stage);
  const auto file = files.lower_bound(begin);
  return file != files.end() && file->first < end;
}

std::vector<int64_t> RankedFiles::LocalRanks(int64_t stage) const {
  std::vector<int64_t> locals;
  const auto [begin, end] = RanksOf(stage);
  for (auto file = files.lower_bound(begin); file != files.end() && file->first < end; ++file) {
    locals.push_back(file->first - begin);
  }
  return locals;
}

}  // namespace reshard

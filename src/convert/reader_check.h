// The files that readers of a target folder would take, by their own rules about names: files of
// the set, or left-overs beside it.
//
// Looks at names only. No state; any thread.
#ifndef RESHARD_SRC_CONVERT_READER_CHECK_H_
#define RESHARD_SRC_CONVERT_READER_CHECK_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_spec.h"

namespace reshard {

// A set of files in a folder, there or to come. Paths are relative to the folder.
struct SetInFolder {
  std::string folder;           // need not exist
  std::set<std::string> files;  // of the set
  std::set<std::string> gone;   // there, but removed when the set is there
  // Named by a pattern, by which readers find exactly them.
  bool has_own_names = false;
  // Written each by itself, perhaps beside their sources of the other format.
  bool each_alone = false;
};

struct LeftOver {
  std::string path;  // relative to the folder
  std::string why;   // readers take it, in words
};

// Returns the left-overs that readers would take instead of the set's files, or besides. In folders
// of ranks with a file of the set, these are the files that `FindRankFiles` or MindSpore would
// take. In the folder itself, these are files that add to the set, or turn it into another folder
// of full tensors. Ranks without a file of the set do not matter. Errors: kIo.
Result<std::vector<LeftOver>> FindLeftOvers(const SetInFolder& set);

// Returns the facts for CheckReaders about the last run in `origin`. `origin` is an origin.jsonl,
// or the line of a run that begins. `has_strategy`: the run had a strategy on any side.
SetInFolder RulesOf(const std::string& folder, std::string_view origin, bool has_strategy);

// Fails with kAlreadyExists if readers would take other files than the job's after its publication
// in `folder`. `rules` has the other facts for FindLeftOvers.
Status CheckReaders(const SetInFolder& rules, const NamesToCome& names);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_READER_CHECK_H_

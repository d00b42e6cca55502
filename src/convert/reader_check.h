// What readers of a target folder take there, by their own rules over names: files of the set, or
// left-overs beside it.
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

// Returns what readers would take instead of the set's files, or besides: in folders of ranks of
// which the set has a file, what `FindRankFiles` or MindSpore takes; in the folder itself what
// makes it another folder of whole tensors than the set is, or adds to it. Ranks of which the set
// has no file do not matter. Errors: kIo.
Result<std::vector<LeftOver>> FindLeftOvers(const SetInFolder& set);

// Returns what CheckReaders wants to know of the last run that `origin`, the bytes of an
// origin.jsonl or the line of a run that begins, tells of. `has_strategy`: it had one, of whatever
// side.
SetInFolder RulesOf(const std::string& folder, std::string_view origin, bool has_strategy);

// Fails with kAlreadyExists where readers would take other files than those of the job, once it is
// published in `folder`; `rules` has what FindLeftOvers wants to know besides.
Status CheckReaders(const SetInFolder& rules, const NamesToCome& names);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_READER_CHECK_H_

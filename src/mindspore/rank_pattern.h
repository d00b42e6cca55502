// The checkpoint files that there are of each rank, and rank patterns: paths with {rank} in them,
// which name a file or a folder for each rank. Any number of threads may call these functions.
#ifndef RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_
#define RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/path_kind.h"

namespace reshard {

// When a checkpoint was taken; the step counts within the epoch.
struct TrainingStep {
  int64_t epoch = 0;
  int64_t step = 0;

  friend auto operator<=>(const TrainingStep&, const TrainingStep&) = default;
};

// A checkpoint file among which there may be a choice.
struct Candidate {
  std::string name;
  std::optional<TrainingStep> step;  // if the name ends in -EPOCH_STEP and the extension
};

// The existing checkpoint files of a rank.
struct RankListing {
  int64_t rank = 0;
  std::string label;   // for messages: "rank_3", or the path of a file that a pattern names
  std::string folder;  // the folder of the candidates, in the source's folder: "rank_3"
  std::vector<Candidate> candidates;
  std::vector<Candidate> breakpoints;  // *_breakpoint files, which count only if they are named
  // the file that MindSpore takes among all .ckpt files of a folder, even those that do not count
  // here; empty without such a folder
  std::string last_by_name;
};

// How the names of checkpoints end that MindSpore writes when training fails.
inline constexpr std::string_view kBreakpointEnd = "_breakpoint";

// Returns `name` without the extension, if it has that.
std::string_view Stem(std::string_view name);

// Returns the step of a stem PREFIX-EPOCH_STEP, which kBreakpointEnd may follow.
std::optional<TrainingStep> StepOf(std::string_view stem);

// Returns "-1_100", or "no step".
std::string StepName(const std::optional<TrainingStep>& step);

// Returns "1_100", or "".
std::string StepText(const std::optional<TrainingStep>& step);

// Returns the files among `names`, sorted, that count in a rank folder with the name `folder`.
RankListing CheckpointsAmong(const std::vector<std::string>& names, int64_t rank,
                             const std::string& folder);

// Lists the checkpoints of `folder`, which lies in `base`. Errors: kNotFound, kIo.
Result<RankListing> ListRankFolder(const std::string& base, int64_t rank,
                                   const std::string& folder);

// A pattern may be node{rank}/CKP_1-4_32.ckpt, ckpt/rank_{rank}/llm_rank_{rank}-1_100.ckpt,
// run/node{rank}. All {rank} in a path stand for the same digits. Looks at names only.
inline constexpr std::string_view kRankPlaceholder = "{rank}";

bool IsRankPattern(std::string_view path);

struct PatternListing {
  std::string base;  // the folder before the first name with {rank}; may be empty
  // ascending, at least one; a file that a pattern names is the only candidate of its rank
  std::vector<RankListing> ranks;
};

// Lists the entries that match a pattern. Costs one listing, and one more for each folder at its
// end. Errors: kInvalidArgument for "." and ".." behind {rank}; kNotFound without a match;
// kMismatch if two names stand for one rank; kIo.
Result<PatternListing> ListPattern(const std::string& pattern);

// Returns the name with {rank} that most of `entries` (folders and checkpoints, at least two) have,
// apart from one number; empty if there is none.
std::string GuessPattern(const std::vector<DirectoryEntry>& entries);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_

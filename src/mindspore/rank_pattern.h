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
  std::optional<TrainingStep> step;  // where the name ends in -EPOCH_STEP and the extension
};

// The checkpoint files that there are of one rank.
struct RankListing {
  int64_t rank = 0;
  std::string label;  // what messages call it: "rank_3", or the path of a file that a pattern names
  std::string folder;  // of the candidates, relative to that of the source: "rank_3"
  std::vector<Candidate> candidates;
  std::vector<Candidate> breakpoints;  // *_breakpoint files, which count only if they are named
  std::string last_by_name;  // what MindSpore takes: of all .ckpt files of a folder, those included
                             // that do not count here; empty where there is no such folder
};

// How the names of checkpoints end that MindSpore writes when training fails.
inline constexpr std::string_view kBreakpointEnd = "_breakpoint";

// Returns `name` without the extension, where it has it.
std::string_view Stem(std::string_view name);

// Returns the step of a stem PREFIX-EPOCH_STEP, which kBreakpointEnd may follow.
std::optional<TrainingStep> StepOf(std::string_view stem);

// Returns "-1_100", or "no step".
std::string StepName(const std::optional<TrainingStep>& step);

// Returns "1_100", or nothing.
std::string StepText(const std::optional<TrainingStep>& step);

// Returns which of the files of these names, sorted, count in a rank folder that is called so.
RankListing CheckpointsAmong(const std::vector<std::string>& names, int64_t rank,
                             const std::string& folder);

// Lists the checkpoints of `folder`, which lies in `base`. Errors: kNotFound, kIo.
Result<RankListing> ListRankFolder(const std::string& base, int64_t rank,
                                   const std::string& folder);

// A pattern may be node{rank}/CKP_1-4_32.ckpt, ckpt/rank_{rank}/llm_rank_{rank}-1_100.ckpt,
// run/node{rank}. All {rank} of one path stand for the same digits. Only names are looked at.
inline constexpr std::string_view kRankPlaceholder = "{rank}";

bool IsRankPattern(std::string_view path);

struct PatternListing {
  std::string base;                // the folder before the first name with {rank}; may be empty
  std::vector<RankListing> ranks;  // ascending, at least one; of a file that a pattern names as the
                                   // only candidate, of a folder those in it
};

// Lists what there is for a pattern. Costs one listing, and one more for each folder that it ends
// at. Errors: kInvalidArgument for "." and ".." behind {rank}; kNotFound where nothing matches;
// kMismatch where two names stand for one rank; kIo.
Result<PatternListing> ListPattern(const std::string& pattern);

// Returns the name with {rank} that the most of `entries` (folders and checkpoints, at least two)
// differ from by one number; empty where there is none.
std::string GuessPattern(const std::vector<DirectoryEntry>& entries);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_

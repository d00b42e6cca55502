// RankListing: the checkpoint files that there are of one rank. Plain values and pure functions but
// for ListRankFolder, which lists one folder; any number of threads may call them.
#ifndef RESHARD_SRC_MINDSPORE_RANK_LISTING_H_
#define RESHARD_SRC_MINDSPORE_RANK_LISTING_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

inline constexpr std::string_view kCheckpointExtension = ".ckpt";

// When a checkpoint was taken; the step counts within the epoch.
struct TrainingStep {
  int64_t epoch = 0;
  int64_t step = 0;

  friend auto operator<=>(const TrainingStep&, const TrainingStep&) = default;
};

// A checkpoint file among which there may be a choice.
struct Candidate {
  std::string name;
  std::optional<TrainingStep> step;  // where the name ends in -EPOCH_STEP.ckpt
};

struct RankListing {
  int64_t rank = 0;
  std::string label;  // what messages call it: "rank_3", or the path of a file that a pattern names
  std::string folder;  // of the candidates, relative to that of the source: "rank_3"
  std::vector<Candidate> candidates;
  std::string last_by_name;  // what MindSpore takes: of all .ckpt files of a folder, those included
                             // that do not count here; empty where there is no folder to choose in
};

// Returns the number that decimal digits, and nothing else, spell, if it fits 63 bits.
std::optional<int64_t> ParseNumber(std::string_view digits);

// Returns `name` without the extension, where it has it.
std::string_view Stem(std::string_view name);

// Returns the step of a stem PREFIX-EPOCH_STEP.
std::optional<TrainingStep> StepOf(std::string_view stem);

// Returns "-1_100", or "no step".
std::string StepName(const std::optional<TrainingStep>& step);

// Returns folder/name; `name` where the folder is empty.
std::string PathIn(const std::string& folder, const std::string& name);

// Fails with kUnsupported where `file`, which lies at `place`, is a safetensors file.
Status CheckNotSafetensors(const std::string& place, std::string_view file);

// Lists the checkpoints of `folder`, which lies in `base`. Errors: kNotFound, kUnsupported, kIo.
Result<RankListing> ListRankFolder(const std::string& base, int64_t rank,
                                   const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_LISTING_H_

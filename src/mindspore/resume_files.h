// The names of checkpoint files, and the meta.json beside each, by which MindFormers resumes
// training.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_MINDSPORE_RESUME_FILES_H_
#define RESHARD_SRC_MINDSPORE_RESUME_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/mindspore/rank_pattern.h"

namespace reshard {

// Stands for the pattern of these names in TargetSpec::names.
inline constexpr std::string_view kMindFormersNames = "mindformers";

inline bool HasMindFormersNames(const TargetSpec& target) {
  return target.names == kMindFormersNames;
}

// Whether `names` is a pattern of names that readers of rank folders need not find.
inline bool HasOwnNames(std::string_view names) {
  return !names.empty() && names != kMindFormersNames;
}

// Returns the pattern of the names of the target files, for MindSporeTarget. `step` is the
// source's. Errors: kInvalidArgument if the pattern needs a step and there is none.
Result<std::string> PatternOfNames(const TargetSpec& target,
                                   const std::optional<TrainingStep>& step);

// Returns the path of a rank's meta.json.
std::string MetaPath(int64_t rank);

// Returns the content of meta.json beside the checkpoint file at `path`, which is of `step`.
std::string MetaOf(const TrainingStep& step, std::string_view path);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RESUME_FILES_H_

#include "src/mindspore/resume_files.h"

#include <fmt/format.h>

#include "src/base/json_string.h"

namespace reshard {

Result<std::string> PatternOfNames(const TargetSpec& target,
                                   const std::optional<TrainingStep>& step) {
  if (!HasMindFormersNames(target)) return target.names;
  if (!step) {
    return InvalidArgumentError(
        "`names=mindformers` needs the epoch and step of the source, and the names of its files do "
        "not end in -EPOCH_STEP; give a pattern instead, such as "
        "`names=rank_{rank}/{prefix}rank_{rank}-1_100.{ext}`");
  }
  // MindFormers looks for "_rank_N" in the name.
  return fmt::format("rank_{{rank}}/{{prefix}}{}rank_{{rank}}{}.{{ext}}",
                     target.prefix.ends_with('_') ? "" : "_", StepName(step));
}

std::string MetaPath(int64_t rank) { return fmt::format("rank_{}/meta.json", rank); }

std::string MetaOf(const TrainingStep& step, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return fmt::format(R"({{"last_epoch":{},"last_step":{},"last_ckpt_file":{}}})", step.epoch,
                     step.step, JsonString(name));
}

}  // namespace reshard

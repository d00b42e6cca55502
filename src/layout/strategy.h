// Strategy: the layouts of all parameters of a model, stage by stage.
//
// A value without I/O; a codec of format/ yields StrategyFiles, MakeStrategy and MergeStages join
// them. Immutable once made, so any number of threads may read it.
#ifndef RESHARD_SRC_LAYOUT_STRATEGY_H_
#define RESHARD_SRC_LAYOUT_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/layout/parameter_layout.h"

namespace reshard {

// One strategy file, parsed.
struct StrategyFile {
  std::string path;  // for messages
  int64_t current_stage = 0;
  std::optional<int64_t>
      first_item_stage;  // the stage of the first strategy item; the file's stage number
  // In file order; a parameter that was listed twice stands here once, with its last layout.
  std::vector<std::pair<std::string, ParameterLayout>> layouts;
};

struct NamedLayout {
  std::string name;  // without the stage prefix of a merged file
  ParameterLayout layout;
};

// The layouts of one stage. Local rank r of stage s is the global rank s * devices + r.
class StrategyStage {
 public:
  // Returns the layout of `name`, or null.
  const ParameterLayout* Find(std::string_view name) const;
  const std::vector<NamedLayout>& layouts() const { return layouts_; }

 private:
  friend class StrategyBuilder;
  std::vector<NamedLayout> layouts_;  // in file order
  std::unordered_map<std::string, size_t> by_name_;
};

class Strategy {
 public:
  // Makes the strategy of one file: a pipeline's when every layout name matches ^[0-9]+- (only the
  // first dash counts), else one stage. Errors: kMismatch when stages are missing, when device
  // counts differ within a stage (both parameters are named) or between stages; kCorrupt when there
  // is no layout or a device matrix makes no sense.
  static Result<Strategy> FromFile(StrategyFile file);

  // Merges the stage files of one folder; `files` may come in any order. Files whose layouts are
  // equal are skipped when they name one stage; a file that is already merged is skipped too; both
  // with a note. Errors: as FromFile, and kMismatch when two files of one stage differ.
  static Result<Strategy> FromStageFiles(std::vector<StrategyFile> files);

  const std::string& path() const { return path_; }
  bool is_pipeline() const { return is_pipeline_; }
  int64_t devices_per_stage() const { return devices_per_stage_; }
  int64_t ranks() const { return devices_per_stage_ * static_cast<int64_t>(stages_.size()); }
  const std::vector<StrategyStage>& stages() const { return stages_; }
  // The stage number that a file of one stage gives for itself (its first strategy item), 0 where
  // it has none.
  int64_t own_stage() const { return own_stage_; }
  // True when some stage has a layout for `name`.
  bool Contains(std::string_view name) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class StrategyBuilder;
  std::string path_;
  bool is_pipeline_ = false;
  int64_t devices_per_stage_ = 1;
  int64_t own_stage_ = 0;
  std::vector<StrategyStage> stages_;
  std::vector<std::string> notes_;
};

// Splits "3-dense.weight" into 3 and "dense.weight"; nothing when `name` does not match ^[0-9]+-.
std::optional<std::pair<int64_t, std::string_view>> SplitStagePrefix(std::string_view name);

}  // namespace reshard

#endif  // RESHARD_SRC_LAYOUT_STRATEGY_H_

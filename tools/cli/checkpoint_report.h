// A checkpoint file as text and as JSON, and what many of them hold in all, for `inspect`.
#ifndef RESHARD_TOOLS_CLI_CHECKPOINT_REPORT_H_
#define RESHARD_TOOLS_CLI_CHECKPOINT_REPORT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/stored_array.h"
#include "tools/cli/text_format.h"

namespace reshard {

// The parameters of `checkpoint` whose names match the glob pattern `filter` (empty: all), in file
// order. They belong to the checkpoint.
std::vector<const StoredArray*> SelectParameters(const Checkpoint& checkpoint,
                                                 const std::string& filter);

// A line about the file. `rank` is that of the folder it was chosen from.
std::string CheckpointLine(const Checkpoint& checkpoint, std::optional<int64_t> rank);

// A table of parameters. `verbose` adds a row for each stretch of a content that lies in several,
// and for each part of a MapTensor.
std::string ParametersAsText(const std::vector<const StoredArray*>& parameters, bool verbose);

nlohmann::ordered_json CheckpointAsJson(const Checkpoint& checkpoint, std::optional<int64_t> rank,
                                        const std::vector<const StoredArray*>& parameters);

// The part of training that a parameter belongs to: its OptimizerGroup; "others" for notes and
// single elements (learning_rate, global_step); else "weights".
std::string_view ParameterGroup(const StoredArray& parameter);

// Parameters and content bytes by dtype and by group. A plain value.
class CheckpointTotals {
 public:
  void Add(const std::vector<const StoredArray*>& parameters);

  std::string ToText() const;
  nlohmann::ordered_json ToJson() const;

 private:
  struct Total {
    uint64_t parameters = 0;
    uint64_t bytes = 0;
  };
  using Totals = std::map<std::string_view, Total>;  // keys are literals

  static std::string ToText(std::string_view header, const Totals& totals);
  static nlohmann::ordered_json ToJson(const Totals& totals);

  uint64_t files_ = 0;
  Total all_;
  Totals by_dtype_;
  Totals by_group_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_CHECKPOINT_REPORT_H_

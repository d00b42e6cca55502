#include "tools/cli/source_summary.h"

#include <fmt/format.h>

#include <algorithm>

namespace reshard {

std::string TotalsText(const ParameterTotals& totals) {
  std::string text = fmt::format("weights {} parameters", ParameterCountText(totals.weights));
  if (totals.optimizer > 0) {
    text += fmt::format(", optimizer {}", ParameterCountText(totals.optimizer));
  }
  return text;
}

std::string StageAloneText(int64_t stage) {
  return fmt::format("stage {} of {} or more, alone: load all parts together", stage,
                     std::max<int64_t>(stage + 1, 2));
}

void AddSourceSummary(const std::optional<ParameterTotals>& totals,
                      const std::optional<int64_t>& stage_alone, nlohmann::ordered_json& document) {
  document["source_parameters"] = nullptr;
  if (totals) {
    document["source_parameters"] = {{"weights", totals->weights},
                                     {"optimizer", totals->optimizer}};
  }
  document["stage_alone"] = nullptr;
  if (stage_alone) document["stage_alone"] = *stage_alone;
}

}  // namespace reshard

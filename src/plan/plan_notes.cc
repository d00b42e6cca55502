#include "src/plan/plan_notes.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

void PlanNotes::AddFindings(const PlanNotes& other) {
  const auto add = [](const std::set<std::string>& from, std::set<std::string>& to) {
    to.insert(from.begin(), from.end());
  };
  add(other.left_out, left_out);
  add(other.unmatched_copied, unmatched_copied);
  add(other.unmatched_dropped, unmatched_dropped);
  add(other.not_in_source_strategy, not_in_source_strategy);
  add(other.not_in_target_strategy, not_in_target_strategy);
  add(other.absent, absent);
  add(other.other_shapes, other_shapes);
  add(other.empty_files, empty_files);
}

std::vector<std::string> PlanNotes::Warnings() const {
  std::vector<std::string> warnings;
  const auto add = [&](const std::set<std::string>& items, std::string_view what) {
    if (!items.empty()) {
      warnings.push_back(fmt::format("{} parameter{} {}: {}", items.size(),
                                     items.size() == 1 ? "" : "s", what,
                                     FirstOf({items.begin(), items.end()})));
    }
  };
  add(unmatched_copied,
      "in only one of the two strategies, copied as they stand from one source rank "
      "(--unmatched drop leaves them out)");
  add(unmatched_dropped, "in only one of the two strategies, left out");
  add(not_in_source_strategy,
      "without a layout in the source strategy, taken from one source rank as if it had the full "
      "tensor (where ranks have shards, the strategy is not complete)");
  add(not_in_target_strategy,
      "without a layout in the target strategy, written in full for each rank");
  add(absent, "of the strategies that no source file holds, left out");
  add(other_shapes, "of other full shapes than the tensor_shape of a strategy says");
  if (!empty_files.empty()) {
    warnings.push_back(fmt::format(
        "{} target file{} without a parameter, empty, which MindSpore does not load: {}",
        empty_files.size(), empty_files.size() == 1 ? "" : "s",
        FirstOf({empty_files.begin(), empty_files.end()})));
  }
  return warnings;
}

}  // namespace reshard

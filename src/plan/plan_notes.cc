#include "src/plan/plan_notes.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

std::string FirstNames(const std::set<std::string>& names) {
  constexpr size_t kMost = 20;
  std::string out;
  size_t count = 0;
  for (const std::string& name : names) {
    if (count == kMost) {
      out += fmt::format(" and {} more", names.size() - kMost);
      break;
    }
    if (count++ != 0) out += ", ";
    out += Quote(name);
  }
  return out;
}

std::vector<std::string> PlanNotes::Warnings() const {
  std::vector<std::string> warnings;
  const auto add = [&](const std::set<std::string>& names, std::string_view what) {
    if (!names.empty()) {
      warnings.push_back(fmt::format("{} parameter{} {}: {}", names.size(),
                                     names.size() == 1 ? "" : "s", what, FirstNames(names)));
    }
  };
  add(unmatched_copied,
      "in only one of the two strategies, copied as they stand from one source rank "
      "(--unmatched drop leaves them out)");
  add(unmatched_dropped, "in only one of the two strategies, left out");
  add(absent, "of the strategies that no source file holds, left out");
  warnings.insert(warnings.end(), other_messages.begin(), other_messages.end());
  return warnings;
}

}  // namespace reshard

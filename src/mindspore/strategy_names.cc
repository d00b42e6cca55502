#include "src/mindspore/strategy_names.h"

#include <string>
#include <utility>

#include "src/base/status_macros.h"
#include "src/mindspore/strategy_tables.h"

namespace reshard {
namespace {

// Returns the old name of `name`, or `name` itself if it is no new name of one parameter.
std::string OldNameOf(const Renaming& renaming, const Renaming& inverse, const std::string& name) {
  Result<std::string> old_name = inverse.NewNameOf(name);
  if (!old_name.ok()) return name;
  const Result<std::string> again = renaming.NewNameOf(*old_name);
  return again.ok() && *again == name ? *std::move(old_name) : name;
}

}  // namespace

Result<Strategy> WithNewNames(const Strategy& strategy, const Renaming& renaming) {
  return StrategyTables::Renamed(strategy,
                                 [&](const std::string& name) { return renaming.NewNameOf(name); });
}

Result<bool> HasOldNames(const Strategy& strategy, const Renaming& renaming) {
  for (const Strategy::Stage& stage : strategy.stages()) {
    for (const Strategy::Entry layout : stage) {
      RESHARD_ASSIGN_OR_RETURN(const bool changes, Changes(renaming, std::string(layout.name)));
      if (changes) return true;
    }
  }
  return false;
}

Result<std::optional<Strategy>> WithOldNames(const Strategy& strategy, const Renaming& renaming) {
  RESHARD_ASSIGN_OR_RETURN(const bool has_old_names, HasOldNames(strategy, renaming));
  Result<Renames> opposite = InverseOf(renaming.renames());
  if (has_old_names || !opposite.ok()) return std::optional<Strategy>();
  const Renaming inverse(*std::move(opposite));
  bool any = false;
  const auto old_name = [&](const std::string& name) -> Result<std::string> {
    std::string found = OldNameOf(renaming, inverse, name);
    any = any || found != name;
    return found;
  };
  RESHARD_ASSIGN_OR_RETURN(const Strategy renamed, StrategyTables::Renamed(strategy, old_name));
  return any ? std::optional(renamed) : std::nullopt;
}

}  // namespace reshard

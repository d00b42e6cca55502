// A strategy as text and as JSON, for `strategy show` and `inspect`. Pure functions.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_REPORT_H_
#define RESHARD_TOOLS_CLI_STRATEGY_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "reshard/strategy_files.h"

namespace reshard {

// `filter` is a glob pattern on parameter names; empty: all. A line about the file, and a table;
// with `verbose` it has a column for everything that the file says.
std::string StrategyAsText(const StrategySummary& strategy, const std::string& filter,
                           bool verbose);

// Whether the filter leaves any.
bool AnyLayoutMatches(const StrategySummary& strategy, const std::string& filter);

// {"path", "is_pipeline", "stages", "devices_per_stage", "parameters": [...], "notes": [...]}
nlohmann::ordered_json StrategyAsJson(const StrategySummary& strategy, const std::string& filter);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_REPORT_H_

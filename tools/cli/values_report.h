// Values of parameters as text and as JSON, for `inspect --values`. Pure functions.
#ifndef RESHARD_TOOLS_CLI_VALUES_REPORT_H_
#define RESHARD_TOOLS_CLI_VALUES_REPORT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reshard/value_statistics.h"

namespace reshard {

// A table, a row for each; six digits of what is no integer.
std::string ValuesAsText(const std::vector<ParameterStatistics>& parameters);

// Exact figures; null where there are no values.
nlohmann::ordered_json ValuesAsJson(const std::optional<ValueStatistics>& statistics);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_VALUES_REPORT_H_

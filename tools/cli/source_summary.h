// What `convert` and `plan` say of the source as a whole. Pure functions.
#ifndef RESHARD_TOOLS_CLI_SOURCE_SUMMARY_H_
#define RESHARD_TOOLS_CLI_SOURCE_SUMMARY_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reshard/parameter_count.h"

namespace reshard {

// Returns "weights 6.74 B parameters, optimizer 13.48 B".
std::string TotalsText(const ParameterTotals& totals);

// Returns "stage 0 of 2 or more, alone: load all parts together".
std::string StageAloneText(int64_t stage);

// Adds "source_parameters" and "stage_alone", null for nothing.
void AddSourceSummary(const std::optional<ParameterTotals>& totals,
                      const std::optional<int64_t>& stage_alone, nlohmann::ordered_json& document);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SOURCE_SUMMARY_H_

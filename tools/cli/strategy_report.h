// A strategy as text, for `strategy show` and `inspect`. Pure functions.
#ifndef RESHARD_TOOLS_CLI_STRATEGY_REPORT_H_
#define RESHARD_TOOLS_CLI_STRATEGY_REPORT_H_

#include <string>

#include "reshard/strategy.h"
#include "src/frontend/report_fields.h"

namespace reshard {

// How much of a strategy is shown.
struct StrategyDetail {
  bool every_parameter = false;  // and not one line for alike ones
  bool every_field = false;      // that the file has
};

// A line about the file, its meaning, and a table of the shown parameters.
std::string StrategyAsText(const ShownStrategy& shown, const StrategyDetail& detail);

// "s8.ckpt: 1 stage of 8 devices, 63 layouts, 4.0 KiB"
std::string WrittenStrategyText(const std::string& output, const StrategyReport& report);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_STRATEGY_REPORT_H_

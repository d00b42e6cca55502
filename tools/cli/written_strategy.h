// What the commands say that write a strategy of stages and devices.
#ifndef RESHARD_TOOLS_CLI_WRITTEN_STRATEGY_H_
#define RESHARD_TOOLS_CLI_WRITTEN_STRATEGY_H_

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/cli/text_format.h"

namespace reshard {

// Adds the fields that all reports have to `document`.
template <typename Report>
void AddWrittenStrategy(const std::string& output, const Report& report,
                        nlohmann::ordered_json& document) {
  document["output"] = output;
  document["stages"] = report.stages;
  document["devices_per_stage"] = report.devices_per_stage;
  document["layouts"] = report.layouts;
  document["bytes"] = report.bytes;
  document["warnings"] = report.warnings;
}

// "s8.ckpt: 1 stage of 8 devices, 63 layouts, 4.0 KiB"
template <typename Report>
std::string WrittenStrategyText(const std::string& output, const Report& report) {
  return fmt::format("{}: {} of {}, {}, {}", output,
                     FormatCount(static_cast<uint64_t>(report.stages), "stage"),
                     FormatCount(static_cast<uint64_t>(report.devices_per_stage), "device"),
                     FormatCount(report.layouts, "layout"), FormatBytes(report.bytes));
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_WRITTEN_STRATEGY_H_

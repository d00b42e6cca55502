// The device grid of a parameter: a square for each rank, coloured by the shard that it holds.
#ifndef RESHARD_TOOLS_CLI_DEVICE_GRID_CHART_H_
#define RESHARD_TOOLS_CLI_DEVICE_GRID_CHART_H_

#include <string>
#include <string_view>

#include "reshard/layout_report.h"

namespace reshard {

// Returns an <svg>. The hue tells the shard, the lightness the replica; ranks without the parameter
// are empty. Up to 256 squares have numbers in them.
std::string DeviceGridChart(const LayoutSide& side, const DeviceGrid& grid, std::string_view title);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_DEVICE_GRID_CHART_H_

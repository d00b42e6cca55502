// Bars: standing ones for numbered things (ranks, lengths), lying ones for named things.
#ifndef RESHARD_TOOLS_CLI_BAR_CHARTS_H_
#define RESHARD_TOOLS_CLI_BAR_CHARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// What stands side by side: a value for each series.
struct BarGroup {
  std::string label;  // HTML
  std::string tip;    // HTML; begins what is shown where the pointer rests
  std::vector<uint64_t> values;
};

struct BarChart {
  std::string_view title;
  std::string_view description;
  std::vector<std::string_view> series;  // at most two
  std::vector<BarGroup> groups;          // each with as many values as there are series
  std::function<std::string(uint64_t)> format;
};

// Returns an <svg>. Where labels would touch, some are left out.
std::string StandingBars(const BarChart& chart);

// Returns an <svg> with a row of text and bars for each group.
std::string LyingBars(const BarChart& chart);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_BAR_CHARTS_H_

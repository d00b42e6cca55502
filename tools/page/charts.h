// The pictures of a report. Pure functions.
#ifndef RESHARD_TOOLS_PAGE_CHARTS_H_
#define RESHARD_TOOLS_PAGE_CHARTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/convert.h"
#include "src/frontend/layout_report.h"

namespace reshard {

// Returns "rank 3" or "ranks 16-31", "3" or "16-31".
std::string RankWords(const FileBin& bin);
std::string RankNumbers(const FileBin& bin);

// Returns an <svg> that shows which source ranks feed which target ranks: source ranks downwards,
// target ranks to the right, darker for more bytes. Only for a report with a plan.
std::string FlowChart(const LayoutReport& report);

// Returns an <svg> with a square for each rank, coloured by the shard of a parameter that it holds.
// The hue tells the shard, the lightness the replica; ranks without the parameter
// are empty. Up to 256 squares have numbers in them.
std::string DeviceGridChart(const LayoutSide& side, const DeviceGrid& grid, std::string_view title);

// The memory that a run might hold at the most.
struct MemoryMarks {
  uint64_t planned = 0;
  uint64_t limit = 0;
};

// Returns the section of the page about how a run went: two pictures with the phases as bands, and
// tables.
std::string TimelineSection(const ConvertReport::Timeline& timeline, const MemoryMarks& memory);

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_CHARTS_H_

// How a run went: bytes read, gathered and written, and memory, over time.
#ifndef RESHARD_TOOLS_CLI_TIMELINE_CHART_H_
#define RESHARD_TOOLS_CLI_TIMELINE_CHART_H_

#include <cstdint>
#include <string>

#include "reshard/timeline.h"

namespace reshard {

// The memory that a run might hold at the most.
struct MemoryMarks {
  uint64_t planned = 0;
  uint64_t limit = 0;
};

// Returns the section of the page: two pictures with the phases as bands, and tables.
std::string TimelineSection(const Timeline& timeline, const MemoryMarks& memory);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_TIMELINE_CHART_H_

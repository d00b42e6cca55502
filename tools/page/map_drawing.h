// A picture of a parameter for the terminal: which ranks hold which box. Pure functions.
#ifndef RESHARD_TOOLS_PAGE_MAP_DRAWING_H_
#define RESHARD_TOOLS_PAGE_MAP_DRAWING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/frontend/parameter_map.h"

namespace reshard {

// Returns the ranks, which ascend, in one short word: "0-3,8", "0,2,...,62" for ranges at equal
// distances, or "0,7,... (30 ranks)".
std::string ShortRanks(const std::vector<int64_t>& ranks);

// Returns the drawing, in lines of at most 80 columns except for names. Unless `every_box` is set,
// it leaves boxes out after a screen, and a line tells how many.
std::string DrawMap(const ParameterMap& map, bool every_box);

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_MAP_DRAWING_H_

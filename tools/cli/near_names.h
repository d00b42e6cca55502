// What somebody who mistyped a name may have meant. Pure functions.
#ifndef RESHARD_TOOLS_CLI_NEAR_NAMES_H_
#define RESHARD_TOOLS_CLI_NEAR_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// The fewest bytes to insert, delete or replace that make `a` of `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the name, the first of several, that is nearest to `typed`: at most 2 edits away, or a
// third of its length; 1 where it is that short. Empty where none is.
std::string NearestName(std::string_view typed, const std::vector<std::string>& names);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_NEAR_NAMES_H_

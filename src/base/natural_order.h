// Natural order: as names are, but runs of digits count as numbers.
//
// Pure; any thread.
#ifndef RESHARD_SRC_BASE_NATURAL_ORDER_H_
#define RESHARD_SRC_BASE_NATURAL_ORDER_H_

#include <string_view>

namespace reshard {

// Returns whether `a` comes before `b`: "part2" before "part10". A strict total order: names that
// differ in leading zeros only are ordered by their bytes.
bool IsNaturallyBefore(std::string_view a, std::string_view b);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_NATURAL_ORDER_H_

// GlobMatch: patterns on parameter names.
//
// A pure function, for any thread.
//
// Implemented in src/base.
#ifndef RESHARD_GLOB_H_
#define RESHARD_GLOB_H_

#include <string_view>

namespace reshard {

// Returns whether `pattern` matches the whole of `name`: * any bytes, ? one byte, [a-z] one of a
// set, [!a-z] one not in it, \ takes the next character as it is. A [ without its ] stands for
// itself. Takes time proportional to the product of the lengths at most.
bool GlobMatch(std::string_view pattern, std::string_view name);

}  // namespace reshard

#endif  // RESHARD_GLOB_H_

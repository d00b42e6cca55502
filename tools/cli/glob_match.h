// Glob patterns on parameter names.
#ifndef RESHARD_TOOLS_CLI_GLOB_MATCH_H_
#define RESHARD_TOOLS_CLI_GLOB_MATCH_H_

#include <string_view>

namespace reshard {

// Returns whether `pattern` matches the whole of `name`: * any bytes, ? one byte, [a-z] one of a
// set, [!a-z] one not in it, \ takes the next character as it is. A [ without its ] stands for
// itself. Takes time proportional to the product of the lengths at most.
bool GlobMatch(std::string_view pattern, std::string_view name);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_GLOB_MATCH_H_

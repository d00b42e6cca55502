// What is said where a --filter leaves nothing. A pure function.
#ifndef RESHARD_TOOLS_CLI_FILTER_WARNING_H_
#define RESHARD_TOOLS_CLI_FILTER_WARNING_H_

#include <fmt/format.h>

#include <string>

#include "tools/cli/printable.h"

namespace reshard {

inline std::string FilterWarning(const std::string& filter) {
  return fmt::format(
      "--filter matches no parameter: \"{}\"; a pattern has to match a whole name, as *head* does",
      PrintableName(filter));
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_FILTER_WARNING_H_

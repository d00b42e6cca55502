// Turns the text that is given for an option into its value: on a command line, and in Python for
// texts.
#ifndef RESHARD_SRC_FRONTEND_READ_OPTION_H_
#define RESHARD_SRC_FRONTEND_READ_OPTION_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/options/option_table.h"

namespace reshard {

// Returns the value of an option from `texts`, one for each time it was given; for a switch, "true"
// or "false"; for a kSwitchOrFile without a path, "". Reads files with names, and keys from their
// places. Errors:
//   kInvalidArgument: a message such as "has to be ...; found ...", to be put behind the option's
//     name
//   for files those of ReadRenames and EncryptionKey, with complete messages
Result<OptionValue> ReadOption(const Option& option, std::span<const std::string> texts);

// Returns the patterns between the commas of `text`. A comma in [...] or behind a backslash belongs
// to its pattern.
// Errors:
//   kInvalidArgument: an empty pattern beside a comma; a message as of ReadOption
Result<std::vector<std::string>> SplitPatterns(std::string_view text);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_READ_OPTION_H_

// What is given for an option, as text, becomes its value: of a command line, and of Python where
// a text is given.
#ifndef RESHARD_SRC_FRONTEND_READ_OPTION_H_
#define RESHARD_SRC_FRONTEND_READ_OPTION_H_

#include <span>
#include <string>

#include "reshard/status.h"
#include "src/options/option_table.h"

namespace reshard {

// Returns the value that `texts` are, of an option that is given once for each; of a switch, "true"
// or "false". Reads the files that hold names, and keys from where they are. Errors:
// kInvalidArgument, with a message such as "has to be ...; found ...", which the name of the option
// goes before; of files those of ReadRenames and EncryptionKey, whose messages stand by themselves.
Result<OptionValue> ReadOption(const Option& option, std::span<const std::string> texts);

// Returns whether the value comes from a file of names, which is read when the call is made.
inline bool IsOfNameFile(OptionType type) {
  return type == OptionType::kRenames || type == OptionType::kNameMap;
}

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_READ_OPTION_H_

// Front ends' words for the options and functions that messages of the library name in backticks
// (reshard/status.h).
//
// Constants and pure functions; any thread.
#ifndef RESHARD_SRC_FRONTEND_OPTION_WORDS_H_
#define RESHARD_SRC_FRONTEND_OPTION_WORDS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

enum class FrontEnd { kCommandLine, kPython };

// A call's own words in place of the option table's words, by the library's names.
using OwnWords = std::map<std::string, std::string, std::less<>>;

// Returns the text that a user types for an option or a function with the library's name `name`:
// "--force" for "force", and "unmatched=copy" for itself. Returns "" for other names.
std::string WordsFor(std::string_view name, FrontEnd front_end, const OwnWords& own = {});

// Returns `message` with the typed text in place of each such name. Other text in backticks stays
// as it is.
std::string InWords(std::string_view message, FrontEnd front_end, const OwnWords& own = {});

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_OPTION_WORDS_H_

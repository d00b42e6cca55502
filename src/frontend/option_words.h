// How front ends say what messages of the library name: options and functions, in backticks
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

// What a call has in place of the words of the option table, by the library's names.
using OwnWords = std::map<std::string, std::string, std::less<>>;

// Returns what is typed for an option or a function that the library names so, such as "--force"
// for "force" and "unmatched=copy" for itself; nothing for other names.
std::string WordsFor(std::string_view name, FrontEnd front_end, const OwnWords& own = {});

// Returns `message` with what is typed in place of each such name; anything else in backticks stays
// as it is.
std::string InWords(std::string_view message, FrontEnd front_end, const OwnWords& own = {});

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_OPTION_WORDS_H_

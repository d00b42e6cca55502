// The rules for names that come with the library: a rename map for each model (rules/*.json), from
// the names of Hugging Face to those of MindFormers. Each is also read backwards.
//
// Any thread.
#ifndef RESHARD_FORMAT_RENAME_MAP_NAME_RULES_H_
#define RESHARD_FORMAT_RENAME_MAP_NAME_RULES_H_

#include <string>
#include <string_view>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

inline constexpr std::string_view kToHuggingFace = ":mindformers-to-hf";

// Returns the rules for "MODEL:DIRECTION" as names and patterns, or null if there are none.
const Renames* FindNameRules(std::string_view named);

// Returns the failure that there are no rules for `named`; kInvalidArgument.
Status UnknownNameRules(std::string_view named);

// Returns "llama:mindformers-to-hf" for "llama:hf-to-mindformers". There are rules for `named`.
std::string OppositeRules(std::string_view named);

// Returns "llama:hf-to-mindformers" and the others, sorted by model.
std::vector<std::string> AllNameRules();

}  // namespace reshard

#endif  // RESHARD_FORMAT_RENAME_MAP_NAME_RULES_H_

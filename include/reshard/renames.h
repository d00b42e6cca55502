// ReadRenames: the file that says under which names a conversion writes parameters.
//
// A pure function of the file; any number of threads may call it.
//
// Implemented in src/api.
#ifndef RESHARD_RENAMES_H_
#define RESHARD_RENAMES_H_

#include <map>
#include <string>

#include "reshard/status.h"

namespace reshard {

// Returns the map of a JSON object {"old name": "new name", ...} (format/rename_map/SPEC.md), as
// ConvertOptions and AgainstOptions take it.
// Errors: kNotFound; kCorrupt for what is no flat object of strings, and for names that stand there
// twice; kInvalidArgument for names that no parameter may have, and for two of one new name; kIo.
Result<std::map<std::string, std::string>> ReadRenames(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_RENAMES_H_

// The files of a folder that a metadata file lists, as the files of a source.
//
// Functions without state; any thread.
#ifndef RESHARD_SRC_SHARDED_LISTED_FILES_H_
#define RESHARD_SRC_SHARDED_LISTED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/sharded/sharded_folder.h"
#include "src/source/found_source.h"
#include "src/source/part_list.h"

namespace reshard {

// Whether the request wants the tensor of a name in the source.
bool IsWanted(const SourceRequest& request, std::string_view name);

// Pins a file, by its path relative to the source.
Result<ChosenFile> PinFile(const SourceRequest& request, const std::string& relative,
                           int64_t number);

// Adds the files of `names` to `found`, with their places as numbers. Returns the numbers of
// missing files. Errors: kMismatch if all are missing.
Result<std::vector<size_t>> AddListedFiles(const ShardedFolder& folder,
                                           const SourceRequest& request,
                                           const std::vector<std::string>& names,
                                           FoundSource& found);

// Fails with kMismatch if a part of a wanted tensor is in missing files only. Else warns of these.
// `metadata` is the path of the file that lists `names`.
Status CheckMissingFiles(const std::string& metadata, const std::vector<std::string>& names,
                         const std::vector<size_t>& missing, const PartList& parts,
                         const SourceRequest& request, FoundSource& found);

// Warns of the files of the folder that `is_other` finds, by their names. `what` says why they are
// left out.
void WarnOfOtherFiles(const ShardedFolder& folder,
                      const std::function<bool(const std::string& name)>& is_other,
                      const std::string& what, FoundSource& found);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_LISTED_FILES_H_

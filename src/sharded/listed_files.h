// The files of a folder as those of a source: pinned, numbered, read.
//
// Functions without state; any thread.
#ifndef RESHARD_SRC_SHARDED_LISTED_FILES_H_
#define RESHARD_SRC_SHARDED_LISTED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/base/quote.h"
#include "src/sharded/sharded_folder.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"
#include "src/source/part_list.h"

namespace reshard {

// Whether the request wants the tensor of a name in the source.
bool IsWanted(const SourceRequest& request, std::string_view name);

// Pins a file, by its path relative to the source.
Result<ChosenFile> PinFile(const SourceRequest& request, const std::string& relative,
                           int64_t number);

// Returns the numbers from `first` on that are missing among `numbers`, which ascend, and up to
// `end`; without it up to the last of them.
NumberRanges Gaps(const std::vector<int64_t>& numbers, int64_t first,
                  std::optional<int64_t> end = {});

// Calls take(file, table) for each file of `found`, at least one, in their order. Tables are read
// by `read`, some side by side. Errors: kCorrupt for a file of another container; as both.
Status ForEachTable(const FoundSource& found, const SourceRequest& request,
                    const std::function<Result<IndexedFile>(FileId file)>& read,
                    const std::function<Status(const ChosenFile& file, const IndexedFile&)>& take);

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

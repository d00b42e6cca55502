// ShardedFolder: a folder of a family whose files hold parts of tensors and say which. It is found
// by names alone.
//
// Plain values. Functions without state; any thread.
#ifndef RESHARD_SRC_SHARDED_SHARDED_FOLDER_H_
#define RESHARD_SRC_SHARDED_SHARDED_FOLDER_H_

#include <optional>
#include <string>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/os/path_kind.h"

namespace reshard {

struct ShardedFolder {
  SourceFormat family = SourceFormat::kHuggingFaceShards;  // never kPlain
  std::string below;  // the folder with the files, below the path that was given; "" or with a '/'
  std::vector<DirectoryEntry> entries;  // of that folder
};

// Whether an entry of a folder is of full tensors, or of a folder of ranks.
bool IsWholeOrOfRanks(const DirectoryEntry& entry);

// Returns the kind of the folder `path`, or of its folder sharded/ if it has no checkpoint files of
// its own, or of the latest checkpoint in a folder of MindFormers or Megatron. Returns no value for
// other paths. With `format`, files of other kinds do not count, and kPlain has no value. Errors:
//   kMismatch: the folder has files of another family, too, and there is no `format`; `path` is one
//     file of DCP; the latest checkpoint has several models
//   kUnsupported: as CheckFamilyIsRead and CheckFileStandsAlone
//   kCorrupt: the file that names the latest checkpoint has other content
//   kNotFound: that checkpoint is not there, or nothing of `format`
//   as Storage::List
Result<std::optional<ShardedFolder>> FindShardedFolder(const std::string& path,
                                                       std::optional<SourceFormat> format);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_SHARDED_FOLDER_H_

// The files of a target folder: found by their paths without following symbolic links, and the
// proof that staged files can be moved there, before anything there is given up.
//
// No state. Any thread, but for the proof: one thread, which holds the right to the target, and not
// while another one publishes.
#ifndef RESHARD_SRC_JOB_TARGET_PLACE_H_
#define RESHARD_SRC_JOB_TARGET_PLACE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

// Returns whether `file` lies below `root` as a regular file of its size. Errors: as FindPlace.
Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file);

// Returns whether any path is in both lists, each sorted by path.
bool ShareAny(const std::vector<ManifestFile>& a, const std::vector<ManifestFile>& b);

// Adds all folders on the way to `path`.
void AddFolders(std::string_view path, std::set<std::string>& folders);

// Makes the entries of those of `folders`, below `root`, that exist durable. Errors: as FindPlace.
Status SyncFolders(const OutputDirectory& root, const std::set<std::string>& folders);

// The most bytes of a part record that is read back whole.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{2} << 30;

// Returns the content of the regular file at `path`. Errors: kNotFound, and those of
// OutputDirectory::ReadFile.
Result<std::string> ReadFileAt(const OutputDirectory& root, const std::string& path,
                               uint64_t max_bytes);

// Moves an empty file from `staging` into `target`, from there into the next folder that `files`
// or their part records go to, and so on, and removes it. Folders that are not there yet will be
// made in `target`. A process that is killed meanwhile leaves the file in one of them; the next
// call for the same files clears it, too. Errors: kIo, naming the folder.
Status ProveMoves(const OutputDirectory& staging, const OutputDirectory& target,
                  const std::vector<ManifestFile>& files);

// Removes what a killed ProveMoves may have left in `target`, its folders and those of the part
// records. Errors: kIo.
Status RemoveProbes(const OutputDirectory& target);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_TARGET_PLACE_H_
